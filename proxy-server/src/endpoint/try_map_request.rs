//! A phase that turns a request into the request of the next phase, or refuses it.
//!
//! `tower::filter` does this, too, but its error is a boxed `dyn Error`, so the last phase would have to guess which
//! refusal it was. Here, the error keeps its type.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use tower::{Layer, Service};

/// Calls the inner service with what a function makes of the request, unless the function fails.
#[derive(Clone, Copy, Debug)]
pub(super) struct TryMapRequest<F, S> {
    phase: F,
    inner: S,
}

/// Makes [`TryMapRequest`] of a service.
#[derive(Clone, Copy, Debug)]
pub(super) struct TryMapRequestLayer<F> {
    phase: F,
}

pin_project! {
    /// The response of the inner service, or the refusal.
    #[derive(Debug)]
    #[project = StateProjection]
    pub(super) enum State<F, E> {
        Refused { error: Option<E> },
        Passed { #[pin] inner: F },
    }
}

/// A layer for this phase.
pub(super) fn try_map_request<F>(phase: F) -> TryMapRequestLayer<F> {
    TryMapRequestLayer { phase }
}

// === impl TryMapRequest ===

impl<F, S, R, T> Service<R> for TryMapRequest<F, S>
where
    F: FnMut(R) -> Result<T, S::Error>,
    S: Service<T>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = State<S::Future, S::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: R) -> Self::Future {
        match (self.phase)(request) {
            Ok(request) => State::Passed { inner: self.inner.call(request) },
            Err(error) => State::Refused { error: Some(error) },
        }
    }
}

// === impl TryMapRequestLayer ===

impl<F: Clone, S> Layer<S> for TryMapRequestLayer<F> {
    type Service = TryMapRequest<F, S>;

    fn layer(&self, inner: S) -> Self::Service {
        TryMapRequest { phase: self.phase.clone(), inner }
    }
}

// === impl State ===

impl<F, T, E> Future for State<F, E>
where
    F: Future<Output = Result<T, E>>,
{
    type Output = Result<T, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project() {
            StateProjection::Passed { inner } => inner.poll(cx),
            StateProjection::Refused { error } => {
                Poll::Ready(Err(error.take().expect("a future is not polled after it is ready")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tower::{ServiceBuilder, ServiceExt, service_fn};

    use super::*;

    #[tokio::test]
    async fn a_refused_request_does_not_reach_the_next_phase() {
        let phase = |text: &str| text.parse::<u8>().map_err(|_| "no number");
        let stack = ServiceBuilder::new().layer(try_map_request(phase)).service(service_fn(|number: u8| async move {
            if number == 0 { Err("zero") } else { Ok(u16::from(number) + 1) }
        }));
        assert_eq!(stack.oneshot("255").await, Ok(256));
        assert_eq!(stack.oneshot("0").await, Err("zero"));
        assert_eq!(stack.oneshot("256").await, Err("no number"));
    }
}

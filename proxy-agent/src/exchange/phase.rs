//! Phases: layers that turn a request into what the next phase takes.
//!
//! A phase is an `async fn` that takes a value, and returns the value for the next phase or an error, which ends the path.
//! `tower::filter::AsyncFilter` does the same, but boxes every error. [`Phase`] keeps the type of the error, and allocates
//! nothing.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tower::{Layer, Service};

/// A layer with a phase.
#[derive(Clone, Copy, Debug)]
pub(super) struct Phase<F>(F);

/// A phase, and the service for its output.
#[derive(Clone, Copy, Debug)]
pub(super) struct Phased<F, S> {
    phase: F,
    next: S,
}

pin_project! {
    /// A phase, and then what follows it.
    #[project = Projected]
    #[derive(Debug)]
    pub(super) enum Running<Fut, S, R> {
        Phase { #[pin] phase: Fut, next: S },
        Next { #[pin] response: R },
    }
}

/// The layer with this phase.
pub(super) fn phase<F>(phase: F) -> Phase<F> {
    Phase(phase)
}

// === impl Phase ===

impl<F: Clone, S> Layer<S> for Phase<F> {
    type Service = Phased<F, S>;

    fn layer(&self, next: S) -> Phased<F, S> {
        Phased { phase: self.0.clone(), next }
    }
}

// === impl Phased ===

impl<F, In, Fut, Out, S> Service<In> for Phased<F, S>
where
    F: FnMut(In) -> Fut,
    Fut: Future<Output = Result<Out, S::Error>>,
    S: Service<Out> + Clone,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Running<Fut, S, S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.next.poll_ready(cx)
    }

    fn call(&mut self, request: In) -> Self::Future {
        // The service that is ready takes this request, and its clone the next one (the documentation of
        // `tower::Service` explains this under "Be careful when cloning inner services").
        let clone = self.next.clone();
        let next = std::mem::replace(&mut self.next, clone);
        Running::Phase { phase: (self.phase)(request), next }
    }
}

// === impl Running ===

impl<Fut, Out, S> Future for Running<Fut, S, S::Future>
where
    Fut: Future<Output = Result<Out, S::Error>>,
    S: Service<Out>,
{
    type Output = Result<S::Response, S::Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            let response = match self.as_mut().project() {
                Projected::Phase { phase, next } => next.call(ready!(phase.poll(cx))?),
                Projected::Next { response } => return response.poll(cx),
            };
            self.set(Self::Next { response });
        }
    }
}

#[cfg(test)]
mod tests {
    use tower::{ServiceBuilder, ServiceExt as _, service_fn};

    use super::*;

    async fn double(number: u32) -> Result<u64, String> {
        tokio::task::yield_now().await;
        Ok(u64::from(number) * 2)
    }

    async fn even(number: u64) -> Result<u64, String> {
        if number.is_multiple_of(4) { Ok(number) } else { Err(format!("{number} is refused")) }
    }

    #[tokio::test]
    async fn a_value_passes_through_the_phases_in_order() {
        let last = service_fn(async |number: u64| Ok::<_, String>(format!("{number} is served")));
        let stack = ServiceBuilder::new().layer(phase(double)).layer(phase(even)).service(last);
        assert_eq!(stack.oneshot(6).await, Ok("12 is served".to_owned()));
        assert_eq!(stack.oneshot(5).await, Err("10 is refused".to_owned()));
    }
}

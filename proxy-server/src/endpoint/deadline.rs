//! The time limit for an agent to send the head of a response.
//!
//! `tower::timeout` has one duration for all requests and sets a timer for each. Most open requests are watches, which
//! have no deadline and so need no timer. Its error is boxed, too.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use pin_project_lite::pin_project;
use tokio::time::{Sleep, sleep};
use tower::Service;

use super::refusal::Refusal;

/// The time limit for a request that is not long-running. An API server limits such a request to 60 s
/// (`--request-timeout`), so this longer time ends only requests that got lost.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(75);

/// A request with its deadline.
#[derive(Debug)]
pub(super) struct Timed<R> {
    /// Whether it has no deadline.
    pub(super) is_long_running: bool,
    pub(super) request: R,
}

/// Drops the work of the inner service at the deadline.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline<S> {
    inner: S,
}

pin_project! {
    /// The result of the inner service, if it comes in time.
    #[derive(Debug)]
    pub(super) struct InTime<F> {
        #[pin]
        inner: F,
        #[pin]
        sleep: Option<Sleep>,
    }
}

// === impl Deadline ===

impl<S> Deadline<S> {
    pub(super) fn new(inner: S) -> Self {
        Self { inner }
    }
}

impl<S, R> Service<Timed<R>> for Deadline<S>
where
    S: Service<R, Error = Refusal>,
{
    type Response = S::Response;
    type Error = Refusal;
    type Future = InTime<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Refusal>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, Timed { is_long_running, request }: Timed<R>) -> Self::Future {
        let inner = self.inner.call(request);
        InTime { inner, sleep: (!is_long_running).then(|| sleep(RESPONSE_TIMEOUT)) }
    }
}

// === impl InTime ===

impl<F, T> Future for InTime<F>
where
    F: Future<Output = Result<T, Refusal>>,
{
    type Output = Result<T, Refusal>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if let Poll::Ready(result) = this.inner.poll(cx) {
            return Poll::Ready(result);
        }
        match this.sleep.as_pin_mut() {
            Some(sleep) => sleep.poll(cx).map(|()| Err(Refusal::Silent)),
            None => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{Instant, timeout};
    use tower::{ServiceExt, service_fn};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_a_short_request_ends_at_the_deadline() {
        let inner = service_fn(|after| async move {
            sleep(after).await;
            Ok(after)
        });
        let stack = Deadline::new(inner);
        let timed = |is_long_running, request| stack.oneshot(Timed { is_long_running, request });
        let (prompt, late) = (RESPONSE_TIMEOUT / 2, 2 * RESPONSE_TIMEOUT);
        assert_eq!(timed(false, prompt).await.unwrap(), prompt);
        let begun = Instant::now();
        assert!(matches!(timed(false, late).await, Err(Refusal::Silent)));
        assert_eq!(begun.elapsed(), RESPONSE_TIMEOUT);
        assert_eq!(timed(true, late).await.unwrap(), late);
        assert!(timeout(10 * late, timed(true, Duration::MAX)).await.is_err());
    }
}

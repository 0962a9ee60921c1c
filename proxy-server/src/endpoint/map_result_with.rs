//! A phase that keeps a value while the inner service works, and completes the result with it.
//!
//! tower's `MapResult` sees the result only, and not what a request has left behind. Its error must also be made from the
//! inner one without that value. If the client cancels the request, the value is dropped, and it notices that.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tower::{Layer, Service};

/// Calls the inner service with the first half of a pair, and a function with the second half and the result.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keep<F, S> {
    complete: F,
    inner: S,
}

/// Makes [`Keep`] of a service.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeepLayer<F> {
    complete: F,
}

pin_project! {
    /// The result of the inner service, completed.
    #[derive(Debug)]
    pub(super) struct Completed<I, K, F> {
        #[pin]
        inner: I,
        kept: Option<(K, F)>,
    }
}

/// A layer that completes results with this function.
pub(super) fn keep<F>(complete: F) -> KeepLayer<F> {
    KeepLayer { complete }
}

// === impl Keep ===

impl<F, S, R, K, T, E> Service<(R, K)> for Keep<F, S>
where
    F: FnOnce(K, Result<S::Response, S::Error>) -> Result<T, E> + Clone,
    S: Service<R>,
{
    type Response = T;
    type Error = E;
    type Future = Completed<S::Future, K, F>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), E>> {
        // An error would come without a value that completes it, so it is left to the call. The services of the stack
        // are always ready.
        self.inner.poll_ready(cx).map(|_| Ok(()))
    }

    fn call(&mut self, (request, kept): (R, K)) -> Self::Future {
        Completed { inner: self.inner.call(request), kept: Some((kept, self.complete.clone())) }
    }
}

// === impl KeepLayer ===

impl<F: Clone, S> Layer<S> for KeepLayer<F> {
    type Service = Keep<F, S>;

    fn layer(&self, inner: S) -> Self::Service {
        Keep { complete: self.complete.clone(), inner }
    }
}

// === impl Completed ===

impl<I, K, F, A, B, T, E> Future for Completed<I, K, F>
where
    I: Future<Output = Result<A, B>>,
    F: FnOnce(K, Result<A, B>) -> Result<T, E>,
{
    type Output = Result<T, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let result = ready!(this.inner.poll(cx));
        let (kept, complete) = this.kept.take().expect("a future is not polled after it is ready");
        Poll::Ready(complete(kept, result))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use tower::{ServiceBuilder, ServiceExt, service_fn};

    use super::*;

    /// Notes whether it was completed or dropped.
    struct Kept(Rc<Cell<&'static str>>);

    impl Drop for Kept {
        fn drop(&mut self) {
            if self.0.get().is_empty() {
                self.0.set("cancelled");
            }
        }
    }

    fn complete(kept: Kept, result: Result<u8, u8>) -> Result<u8, String> {
        kept.0.set("completed");
        drop(kept);
        result.map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn a_result_is_completed_with_what_its_request_left() {
        for result in [Ok(1), Err(2)] {
            let inner = service_fn(move |()| async move { result });
            let stack = ServiceBuilder::new().layer(keep(complete)).service(inner);
            let state = Rc::new(Cell::new(""));
            assert_eq!(stack.oneshot(((), Kept(state.clone()))).await, result.map_err(|error| error.to_string()));
            assert_eq!(state.get(), "completed");
        }
    }

    #[tokio::test]
    async fn a_cancelled_request_drops_what_it_left() {
        let inner = service_fn(|()| std::future::pending());
        let mut stack = ServiceBuilder::new().layer(keep(complete)).service(inner);
        let state = Rc::new(Cell::new(""));
        let running = stack.call(((), Kept(state.clone())));
        assert_eq!(state.get(), "");
        drop(running);
        assert_eq!(state.get(), "cancelled");
    }
}

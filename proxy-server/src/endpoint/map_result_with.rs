//! Maps the result of the inner service, together with a context value that the outer service has passed with the
//! request.
//!
//! The function of tower's `MapResult` gets the result without a context. It is also not called for an error of
//! `poll_ready`. If the client cancels the request, the context is dropped.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tower::{Layer, Service};

/// Takes a pair of a request and a context. Calls the inner service with the request, and the function with the context
/// and the result.
#[derive(Clone, Copy, Debug)]
pub(super) struct MapResultWith<F, S> {
    map: F,
    inner: S,
}

/// The layer of [`MapResultWith`].
#[derive(Clone, Copy, Debug)]
pub(super) struct MapResultWithLayer<F> {
    map: F,
}

pin_project! {
    /// The mapped result of the inner service.
    #[derive(Debug)]
    pub(super) struct MapFuture<I, C, F> {
        #[pin]
        inner: I,
        context: Option<(C, F)>,
    }
}

/// A layer that maps results with this function.
pub(super) fn map_result_with<F>(map: F) -> MapResultWithLayer<F> {
    MapResultWithLayer { map }
}

// === impl MapResultWith ===

impl<F, S, R, C, T, E> Service<(R, C)> for MapResultWith<F, S>
where
    F: FnOnce(C, Result<S::Response, S::Error>) -> Result<T, E> + Clone,
    S: Service<R>,
{
    type Response = T;
    type Error = E;
    type Future = MapFuture<S::Future, C, F>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), E>> {
        // An error here has no context, so it is ignored, and the call reports it. The services of the stack are always
        // ready.
        self.inner.poll_ready(cx).map(|_| Ok(()))
    }

    fn call(&mut self, (request, context): (R, C)) -> Self::Future {
        MapFuture { inner: self.inner.call(request), context: Some((context, self.map.clone())) }
    }
}

// === impl MapResultWithLayer ===

impl<F: Clone, S> Layer<S> for MapResultWithLayer<F> {
    type Service = MapResultWith<F, S>;

    fn layer(&self, inner: S) -> Self::Service {
        MapResultWith { map: self.map.clone(), inner }
    }
}

// === impl MapFuture ===

impl<I, C, F, A, B, T, E> Future for MapFuture<I, C, F>
where
    I: Future<Output = Result<A, B>>,
    F: FnOnce(C, Result<A, B>) -> Result<T, E>,
{
    type Output = Result<T, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let result = ready!(this.inner.poll(cx));
        let (context, map) = this.context.take().expect("a future is not polled after it is ready");
        Poll::Ready(map(context, result))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use tower::{ServiceBuilder, ServiceExt, service_fn};

    use super::*;

    /// Records whether it was mapped or dropped.
    struct DropProbe(Rc<Cell<&'static str>>);

    impl Drop for DropProbe {
        fn drop(&mut self) {
            if self.0.get().is_empty() {
                self.0.set("cancelled");
            }
        }
    }

    fn map(context: DropProbe, result: Result<u8, u8>) -> Result<u8, String> {
        context.0.set("mapped");
        drop(context);
        result.map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn a_result_is_mapped_with_its_context() {
        for result in [Ok(1), Err(2)] {
            let inner = service_fn(move |()| async move { result });
            let stack = ServiceBuilder::new().layer(map_result_with(map)).service(inner);
            let state = Rc::new(Cell::new(""));
            assert_eq!(stack.oneshot(((), DropProbe(state.clone()))).await, result.map_err(|error| error.to_string()));
            assert_eq!(state.get(), "mapped");
        }
    }

    #[tokio::test]
    async fn a_cancelled_request_drops_its_context() {
        let inner = service_fn(|()| std::future::pending());
        let mut stack = ServiceBuilder::new().layer(map_result_with(map)).service(inner);
        let state = Rc::new(Cell::new(""));
        let running = stack.call(((), DropProbe(state.clone())));
        assert_eq!(state.get(), "");
        drop(running);
        assert_eq!(state.get(), "cancelled");
    }
}

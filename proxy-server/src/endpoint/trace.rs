//! The span of a request, so that every log line below names it.
//!
//! tower's `MapFuture` does not see the request that the span describes.

use std::task::{Context, Poll};

use http::Request;
use tower::Service;
use tracing::instrument::{Instrument, Instrumented};

/// Runs the inner service in a span.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trace<S> {
    inner: S,
}

// === impl Trace ===

impl<S> Trace<S> {
    pub(super) fn new(inner: S) -> Self {
        Self { inner }
    }
}

impl<S, B> Service<Request<B>> for Trace<S>
where
    S: Service<Request<B>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Instrumented<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let span = tracing::debug_span!("request", method = %request.method(), path = request.uri().path());
        let future = span.in_scope(|| self.inner.call(request));
        future.instrument(span)
    }
}

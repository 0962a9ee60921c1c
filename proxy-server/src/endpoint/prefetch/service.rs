//! The phase that answers a request whose response was prefetched. All others go to the inner service.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use tower::Service;

use super::round::Prefetched;

/// A request, or the response to one that needs no agent.
#[derive(Debug)]
pub(crate) enum Forward<R> {
    Request(R),
    Prefetched(Prefetched),
}

/// The response of the inner service, or one that was prefetched.
#[derive(Debug)]
pub(crate) enum Reply<T> {
    Agent(T),
    Prefetched(Prefetched),
}

/// Calls the inner service with requests only.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prefetch<S> {
    inner: S,
}

pin_project! {
    /// The reply.
    #[derive(Debug)]
    #[project = ReplyingProjection]
    pub(crate) enum Replying<F> {
        Ready { prefetched: Option<Prefetched> },
        Waiting { #[pin] inner: F },
    }
}

// === impl Prefetch ===

impl<S> Prefetch<S> {
    pub(crate) fn new(inner: S) -> Self {
        Self { inner }
    }
}

impl<S, R> Service<Forward<R>> for Prefetch<S>
where
    S: Service<R>,
{
    type Response = Reply<S::Response>;
    type Error = S::Error;
    type Future = Replying<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, forward: Forward<R>) -> Self::Future {
        match forward {
            Forward::Request(request) => Replying::Waiting { inner: self.inner.call(request) },
            Forward::Prefetched(prefetched) => Replying::Ready { prefetched: Some(prefetched) },
        }
    }
}

// === impl Replying ===

impl<F, T, E> Future for Replying<F>
where
    F: Future<Output = Result<T, E>>,
{
    type Output = Result<Reply<T>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project() {
            ReplyingProjection::Waiting { inner } => inner.poll(cx).map_ok(Reply::Agent),
            ReplyingProjection::Ready { prefetched } => {
                let prefetched = prefetched.take().expect("a future is not polled after it is ready");
                Poll::Ready(Ok(Reply::Prefetched(prefetched)))
            }
        }
    }
}

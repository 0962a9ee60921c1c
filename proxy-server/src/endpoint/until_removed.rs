//! The end of a request whose cluster is removed from the configuration before the response.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tower::Service;

use super::refusal::Refusal;
use crate::config::Cluster;

/// A request to a cluster that may be removed.
#[derive(Debug)]
pub(super) struct Lasting<R> {
    pub(super) cluster: Arc<Cluster>,
    /// Cancelled when the requests for that cluster must end.
    pub(super) end: CancellationToken,
    pub(super) request: R,
}

/// Drops the work of the inner service when the cluster is removed.
#[derive(Clone, Copy, Debug)]
pub(super) struct UntilRemoved<S> {
    inner: S,
}

pin_project! {
    /// The result of the inner service, if it comes before the end of the cluster.
    #[derive(Debug)]
    pub(super) struct BeforeEnd<F> {
        #[pin]
        inner: F,
        cluster: Arc<Cluster>,
        #[pin]
        end: WaitForCancellationFutureOwned,
    }
}

// === impl UntilRemoved ===

impl<S> UntilRemoved<S> {
    pub(super) fn new(inner: S) -> Self {
        Self { inner }
    }
}

impl<S, R> Service<Lasting<R>> for UntilRemoved<S>
where
    S: Service<R, Error = Refusal>,
{
    type Response = S::Response;
    type Error = Refusal;
    type Future = BeforeEnd<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Refusal>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, Lasting { cluster, end, request }: Lasting<R>) -> Self::Future {
        BeforeEnd { inner: self.inner.call(request), cluster, end: end.cancelled_owned() }
    }
}

// === impl BeforeEnd ===

impl<F, T> Future for BeforeEnd<F>
where
    F: Future<Output = Result<T, Refusal>>,
{
    type Output = Result<T, Refusal>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if let Poll::Ready(result) = this.inner.poll(cx) {
            return Poll::Ready(result);
        }
        this.end.poll(cx).map(|()| Err(Refusal::NoCluster(this.cluster.name.to_string())))
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, poll_fn, ready};
    use std::pin::pin;

    use tower::{ServiceExt, service_fn};

    use super::super::fixture;
    use super::*;

    #[tokio::test]
    async fn a_request_ends_with_its_cluster() {
        let end = CancellationToken::new();
        let lasting = || Lasting { cluster: fixture::cluster(), end: end.clone(), request: "answer" };
        let (silent, prompt) = (service_fn(|_: &str| pending::<Result<&str, _>>()), service_fn(|one| ready(Ok(one))));
        let mut waiting = pin!(UntilRemoved::new(silent).oneshot(lasting()));
        assert!(poll_fn(|cx| Poll::Ready(waiting.as_mut().poll(cx).is_pending())).await);
        end.cancel();
        assert!(matches!(waiting.await, Err(Refusal::NoCluster(name)) if name == "ke-beijing"));
        // A response that is there counts.
        assert_eq!(UntilRemoved::new(prompt).oneshot(lasting()).await.unwrap(), "answer");
    }
}

//! The future of a task, until the drain of its scope is given up.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// Whether the tasks of a scope, or of one around it, are dropped.
#[derive(Debug, Default)]
pub(super) struct Dropping {
    parent: Option<Arc<Self>>,
    /// Set before the token is cancelled.
    flag: AtomicBool,
    token: CancellationToken,
}

pin_project! {
    /// Runs a future until it ends, or until the drain of its scope is given up. Then the output is `None`.
    ///
    /// `CancellationToken::run_until_cancelled` does the same, but takes the lock of the token, which all tasks share, in
    /// every poll. Here, a flag is read instead, and the token only wakes the task.
    pub(super) struct Kept<F> {
        dropping: Arc<Dropping>,
        // From the first time on that the future is not ready. The waker of a task never changes.
        #[pin]
        waiting: Option<WaitForCancellationFutureOwned>,
        #[pin]
        future: F,
    }
}

// === impl Dropping ===

impl Dropping {
    /// That of a scope within this one.
    pub(super) fn child(self: &Arc<Self>) -> Arc<Self> {
        let (parent, token) = (Some(Arc::clone(self)), self.token.child_token());
        Arc::new(Self { parent, token, ..Self::default() })
    }

    /// Drops the tasks at their next await.
    pub(super) fn begin(&self) {
        self.flag.store(true, Ordering::Release);
        self.token.cancel();
    }

    fn has_begun(&self) -> bool {
        let scopes = std::iter::successors(Some(self), |dropping| dropping.parent.as_deref());
        scopes.into_iter().any(|dropping| dropping.flag.load(Ordering::Acquire))
    }
}

// === impl Kept ===

impl<F> Kept<F> {
    pub(super) fn new(dropping: Arc<Dropping>, future: F) -> Self {
        Self { dropping, waiting: None, future }
    }
}

impl<F: Future> Future for Kept<F> {
    type Output = Option<F::Output>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<F::Output>> {
        let mut this = self.project();
        if this.dropping.has_begun() {
            return Poll::Ready(None);
        }
        if let Poll::Ready(output) = this.future.poll(cx) {
            return Poll::Ready(Some(output));
        }
        if this.waiting.is_none() {
            this.waiting.set(Some(this.dropping.token.clone().cancelled_owned()));
            let waiting = this.waiting.as_pin_mut().expect("it was set");
            ready!(waiting.poll(cx));
            return Poll::Ready(None);
        }
        Poll::Pending
    }
}

//! A call that continues after its caller was dropped.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

/// Keeps a call alive while no future waits for it. Without this, a consumer that uses `select!` would start the same
/// list again and again.
pub(super) struct PendingCall<T>(Option<Pin<Box<dyn Future<Output = T> + Send>>>);

// === impl PendingCall ===

impl<T> PendingCall<T> {
    /// The response to the pending call, or to a new call that `begin` starts.
    pub(super) async fn answer<F>(&mut self, begin: impl FnOnce() -> F) -> T
    where
        F: Future<Output = T> + Send + 'static,
    {
        let call = self.0.get_or_insert_with(|| Box::pin(begin()));
        let answer = call.as_mut().await;
        self.0 = None;
        answer
    }
}

impl<T> Default for PendingCall<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> fmt::Debug for PendingCall<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PendingCall").field(&self.0.is_some()).finish()
    }
}

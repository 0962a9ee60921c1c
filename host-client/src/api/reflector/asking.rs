//! A call that is taken up again where it was left.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

/// Holds a call while nobody waits for it: a consumer that selects between changes and something else would otherwise
/// begin the same list again and again.
pub(super) struct Asking<T>(Option<Pin<Box<dyn Future<Output = T> + Send>>>);

// === impl Asking ===

impl<T> Asking<T> {
    /// The answer to the call that goes on, else to the one that `begin` begins.
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

impl<T> Default for Asking<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> fmt::Debug for Asking<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Asking").field(&self.0.is_some()).finish()
    }
}

//! How others hear of namespaces.

use rewrite::HostNamespace;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

/// A place in the stream of changes. Never holds the index up: who is too slow is told so.
#[derive(Debug)]
pub struct Subscription(broadcast::Receiver<HostNamespace>);

/// What has changed. Look it up in [`Namespaces`](super::Namespaces): there may be later changes already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamespaceEvent {
    /// This namespace: it is new, is ending, or is gone.
    Changed(HostNamespace),
    /// More than is remembered.
    Everything,
}

// === impl Subscription ===

impl Subscription {
    pub(super) fn new(changes: broadcast::Receiver<HostNamespace>) -> Self {
        Self(changes)
    }

    /// The next change; `None` when the index is gone. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<NamespaceEvent> {
        match self.0.recv().await {
            Ok(host) => Some(NamespaceEvent::Changed(host)),
            Err(RecvError::Lagged(_)) => Some(NamespaceEvent::Everything),
            Err(RecvError::Closed) => None,
        }
    }
}

//! Subscriptions to changes of namespaces.

use rewrite::HostNamespace;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

/// A subscription. A slow subscriber never blocks the index: it gets [`NamespaceEvent::Everything`] instead.
#[derive(Debug)]
pub struct Subscription(broadcast::Receiver<HostNamespace>);

/// A change. Read the current state from [`Namespaces`](super::Namespaces), which may already have newer changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamespaceEvent {
    /// This namespace was created, changed or deleted.
    Changed(HostNamespace),
    /// The subscriber has missed changes, so any namespace may have changed.
    Everything,
}

// === impl Subscription ===

impl Subscription {
    pub(super) fn new(changes: broadcast::Receiver<HostNamespace>) -> Self {
        Self(changes)
    }

    /// The next change; `None` if the index no longer exists. Cancel-safe.
    pub async fn next(&mut self) -> Option<NamespaceEvent> {
        match self.0.recv().await {
            Ok(host) => Some(NamespaceEvent::Changed(host)),
            Err(RecvError::Lagged(_)) => Some(NamespaceEvent::Everything),
            Err(RecvError::Closed) => None,
        }
    }
}

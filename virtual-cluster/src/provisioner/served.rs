//! The virtual clusters that the agent serves, as the configuration names them.

use std::sync::Arc;

use rewrite::ClusterName;
use tokio::sync::watch;

/// The clusters to reconcile.
#[derive(Debug)]
pub(super) struct ServedClusters(watch::Sender<Arc<[ClusterName]>>);

// === impl ServedClusters ===

impl ServedClusters {
    pub(super) fn new(clusters: Vec<ClusterName>) -> Self {
        Self(watch::Sender::new(clusters.into()))
    }

    /// From now on, exactly these clusters are reconciled.
    pub(super) fn replace(&self, clusters: Vec<ClusterName>) {
        self.0.send_replace(clusters.into());
    }

    pub(super) fn all(&self) -> Arc<[ClusterName]> {
        Arc::clone(&self.0.borrow())
    }

    pub(super) fn contains(&self, cluster: &ClusterName) -> bool {
        self.0.borrow().contains(cluster)
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<Arc<[ClusterName]>> {
        self.0.subscribe()
    }
}

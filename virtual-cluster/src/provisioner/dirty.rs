//! Clusters whose mirrors may differ from the catalog, because a request that should have written them failed or was
//! dropped. The watch of the root namespace shows no change then, so the request notifies the control loop here.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use rewrite::ClusterName;
use tokio::sync::Notify;

/// The clusters to reconcile again.
#[derive(Default)]
pub(super) struct DirtyClusters {
    clusters: Mutex<BTreeSet<ClusterName>>,
    added: Notify,
}

/// Guards a write of a cluster's mirrors. If it is dropped before [`finish`](Self::finish), the control loop is
/// notified.
pub(super) struct PendingWrite<'u> {
    dirty: &'u DirtyClusters,
    cluster: Option<ClusterName>,
}

// === impl DirtyClusters ===

impl DirtyClusters {
    /// Call this before writing the mirrors of a cluster.
    pub(super) fn begin(&self, cluster: &ClusterName) -> PendingWrite<'_> {
        PendingWrite { dirty: self, cluster: Some(cluster.clone()) }
    }

    /// Waits for clusters to reconcile, and returns each once. This is cancel safe.
    pub(super) async fn next(&self) -> BTreeSet<ClusterName> {
        loop {
            self.added.notified().await;
            let clusters = std::mem::take(&mut *self.clusters.lock().unwrap_or_else(PoisonError::into_inner));
            if !clusters.is_empty() {
                return clusters;
            }
        }
    }
}

// === impl PendingWrite ===

impl PendingWrite<'_> {
    /// All mirrors were written.
    pub(super) fn finish(mut self) {
        self.cluster = None;
    }
}

impl Drop for PendingWrite<'_> {
    fn drop(&mut self) {
        if let Some(cluster) = self.cluster.take() {
            self.dirty.clusters.lock().unwrap_or_else(PoisonError::into_inner).insert(cluster);
            self.dirty.added.notify_one();
        }
    }
}

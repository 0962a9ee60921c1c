//! Clusters whose mirrors may differ from the catalog, because a request that should have written them failed or was
//! dropped. The watch of the root namespace shows no change then, so the request notifies the control loop here.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use rewrite::ClusterName;
use tokio::sync::Notify;

/// The clusters to reconcile again.
#[derive(Default)]
pub(super) struct Unsettled {
    clusters: Mutex<BTreeSet<ClusterName>>,
    told: Notify,
}

/// Guards a write of a cluster's mirrors. If it is dropped before [`settled`](Self::settled), the control loop is
/// notified.
pub(super) struct Unfinished<'u> {
    unsettled: &'u Unsettled,
    cluster: Option<ClusterName>,
}

// === impl Unsettled ===

impl Unsettled {
    /// Call this before writing the mirrors of a cluster.
    pub(super) fn begin(&self, cluster: &ClusterName) -> Unfinished<'_> {
        Unfinished { unsettled: self, cluster: Some(cluster.clone()) }
    }

    /// Waits for clusters to reconcile, and returns each once. This is cancel safe.
    pub(super) async fn next(&self) -> BTreeSet<ClusterName> {
        loop {
            self.told.notified().await;
            let clusters = std::mem::take(&mut *self.clusters.lock().unwrap_or_else(PoisonError::into_inner));
            if !clusters.is_empty() {
                return clusters;
            }
        }
    }
}

// === impl Unfinished ===

impl Unfinished<'_> {
    /// All mirrors were written.
    pub(super) fn settled(mut self) {
        self.cluster = None;
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if let Some(cluster) = self.cluster.take() {
            self.unsettled.clusters.lock().unwrap_or_else(PoisonError::into_inner).insert(cluster);
            self.unsettled.told.notify_one();
        }
    }
}

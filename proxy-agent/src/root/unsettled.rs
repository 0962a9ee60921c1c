//! Clusters whose mirrors may not be what the catalog says: who was to write them has failed, or is gone with its request.
//! The watch of the root namespace then has no news for the loop, so it is told here.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use rewrite::ClusterName;
use tokio::sync::Notify;

/// What is to be looked at again.
#[derive(Default)]
pub(super) struct Unsettled {
    clusters: Mutex<BTreeSet<ClusterName>>,
    told: Notify,
}

/// Held by who writes the mirrors of a cluster. Dropped before they are [settled](Self::settled), the cluster is told of.
pub(super) struct Unfinished<'u> {
    unsettled: &'u Unsettled,
    cluster: Option<ClusterName>,
}

// === impl Unsettled ===

impl Unsettled {
    /// Somebody begins to write the mirrors of this cluster.
    pub(super) fn begin(&self, cluster: &ClusterName) -> Unfinished<'_> {
        Unfinished { unsettled: self, cluster: Some(cluster.clone()) }
    }

    /// Waits for clusters that are told of, each once. May be dropped.
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
    /// All that was to be written is.
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

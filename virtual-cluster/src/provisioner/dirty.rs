//! Clusters whose mirrors may differ from the catalog, because a request that should have written them failed or was
//! dropped, or because the catalog is complete now. No watch shows that, so the control loop is notified here.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rewrite::ClusterName;
use tokio::sync::Notify;

/// The clusters to reconcile again.
#[derive(Default)]
pub(super) struct DirtyClusters {
    dirty: Mutex<Dirty>,
    added: Notify,
}

/// What to do.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Dirty {
    /// Clusters whose mirrors are reconciled.
    pub(super) mirrors: BTreeSet<ClusterName>,
    /// Clusters whose root namespace is listed.
    pub(super) roots: BTreeSet<ClusterName>,
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

    /// The mirrors of a cluster are reconciled.
    pub(super) fn mark_mirrors(&self, cluster: &ClusterName) {
        self.lock().mirrors.insert(cluster.clone());
        self.added.notify_one();
    }

    /// The mirrors of a cluster are reconciled, and its root namespace is listed.
    pub(super) fn mark_all(&self, cluster: &ClusterName) {
        self.lock().roots.insert(cluster.clone());
        self.mark_mirrors(cluster);
    }

    /// Waits for clusters to reconcile, and returns each once. This is cancel safe.
    pub(super) async fn next(&self) -> Dirty {
        loop {
            self.added.notified().await;
            let dirty = std::mem::take(&mut *self.lock());
            if dirty != Dirty::default() {
                return dirty;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Dirty> {
        self.dirty.lock().unwrap_or_else(PoisonError::into_inner)
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
            self.dirty.mark_mirrors(&cluster);
        }
    }
}

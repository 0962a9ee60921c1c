//! The clusters that have left, and for which work may still be in progress.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rewrite::ClusterName;

/// Clusters that have left, until nothing works for them any more.
#[derive(Debug, Default)]
pub(super) struct Departures(Mutex<BTreeSet<ClusterName>>);

// === impl Departures ===

impl Departures {
    /// From now on, exactly `now` are served instead of `before`.
    pub(super) fn replace(&self, before: &[ClusterName], now: &[ClusterName]) {
        let mut leaving = self.lock();
        leaving.extend(before.iter().cloned());
        leaving.retain(|cluster| !now.contains(cluster));
    }

    /// Nothing works for this cluster any more.
    pub(super) fn end(&self, cluster: &ClusterName) {
        self.lock().remove(cluster);
    }

    pub(super) fn contains(&self, cluster: &ClusterName) -> bool {
        self.lock().contains(cluster)
    }

    pub(super) fn all(&self) -> BTreeSet<ClusterName> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<ClusterName>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

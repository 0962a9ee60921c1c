//! Numbers for virtual clusters.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use hub::ClusterId;
use rewrite::ClusterName;

/// The numbers of virtual clusters. A name keeps its number, also when its cluster is removed and added again.
#[derive(Debug, Default)]
pub struct Clusters(RwLock<Known>);

#[derive(Debug, Default)]
struct Known {
    numbers: HashMap<ClusterName, ClusterId>,
    names: Vec<ClusterName>,
}

// === impl Clusters ===

impl Clusters {
    /// The number of a virtual cluster.
    pub fn number(&self, cluster: &ClusterName) -> ClusterId {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner).numbers.get(cluster).copied();
        known.unwrap_or_else(|| self.0.write().unwrap_or_else(PoisonError::into_inner).add(cluster))
    }

    /// The name of a virtual cluster.
    pub fn name(&self, number: ClusterId) -> Option<ClusterName> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).names.get(number.0 as usize).cloned()
    }
}

// === impl Known ===

impl Known {
    fn add(&mut self, cluster: &ClusterName) -> ClusterId {
        let next = ClusterId(u32::try_from(self.names.len()).expect("fewer clusters than numbers"));
        *self.numbers.entry(cluster.clone()).or_insert_with(|| {
            self.names.push(cluster.clone());
            next
        })
    }
}

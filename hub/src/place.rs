//! The virtual clusters to which an object belongs.

use std::sync::Arc;

/// The number of a virtual cluster. The driver assigns it, and never assigns it again to another cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterId(pub u32);

/// The virtual clusters that show an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// No virtual cluster. The hub does not store such an object.
    Nobody,
    /// The cluster of the object's namespace, for example.
    One(ClusterId),
    /// Several clusters, such as those that select a node.
    Several(ClusterSet),
    /// Every cluster, such as for a shared object.
    Everybody,
}

/// Two clusters or more, sorted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterSet(Arc<[ClusterId]>);

// === impl Place ===

impl Place {
    /// The place for these clusters.
    pub fn of(mut clusters: Vec<ClusterId>) -> Self {
        clusters.sort_unstable();
        clusters.dedup();
        match clusters.as_slice() {
            [] => Self::Nobody,
            [one] => Self::One(*one),
            _ => Self::Several(ClusterSet(clusters.into())),
        }
    }

    /// Whether the cluster shows the object.
    pub fn contains(&self, cluster: ClusterId) -> bool {
        match self {
            Self::Nobody => false,
            Self::One(one) => *one == cluster,
            Self::Several(ClusterSet(clusters)) => clusters.binary_search(&cluster).is_ok(),
            Self::Everybody => true,
        }
    }

    /// The clusters that are listed: none for `Everybody`.
    pub fn listed(&self) -> &[ClusterId] {
        match self {
            Self::Nobody | Self::Everybody => &[],
            Self::One(one) => std::slice::from_ref(one),
            Self::Several(ClusterSet(clusters)) => clusters,
        }
    }
}

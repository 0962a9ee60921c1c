//! One object.

use std::collections::BTreeMap;

use rewrite::ClusterName;
use rewrite::name::{LEFT_PREFIX, OVERLAY_PREFIX};
use serde::Deserialize;

/// A cluster-scoped object of the host, and one virtual cluster that has a part in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The virtual cluster.
    pub cluster: ClusterName,
    /// The resource, as `plural.group`.
    pub resource: String,
    /// The name of the object on the host.
    pub name: String,
    /// The uid of the object.
    pub uid: String,
    /// The path of the object.
    pub path: String,
    /// What belongs to the virtual cluster.
    pub hold: Hold,
}

/// What belongs to the virtual cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// The whole object.
    Whole,
    /// Its overlay on a shared object: `overlay.atoll.dev/CLUSTER`.
    Overlay,
    /// A record that it had an overlay: `left.atoll.dev/CLUSTER`.
    Former,
    /// The label of its [nodes](crate::node_labels).
    Label,
}

/// An object in a list.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Listed {
    pub(super) metadata: Metadata,
}

/// What a search reads of it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Metadata {
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) annotations: BTreeMap<String, String>,
}

/// The virtual clusters that these annotations of a shared object name.
pub(super) fn holders(annotations: &BTreeMap<String, String>) -> impl Iterator<Item = (ClusterName, Hold)> {
    annotations.keys().filter_map(|key| {
        let overlay = key.strip_prefix(OVERLAY_PREFIX).map(|name| (name, Hold::Overlay));
        let (name, hold) = overlay.or_else(|| Some((key.strip_prefix(LEFT_PREFIX)?, Hold::Former)))?;
        Some((ClusterName::new(name).ok()?, hold))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotations_name_the_virtual_clusters() {
        let keys = ["overlay.atoll.dev/ke", "left.atoll.dev/hz", "overlay.atoll.dev/K E", "other/ke"];
        let annotations = keys.map(|key| (key.to_owned(), String::new())).into();
        let found: Vec<_> = holders(&annotations).map(|(name, hold)| (name.to_string(), hold)).collect();
        assert_eq!(found, [("hz".to_owned(), Hold::Former), ("ke".to_owned(), Hold::Overlay)]);
    }
}

//! The requirement that confines a selector over namespaces to those of the virtual cluster.

use bytes::Bytes;

use crate::name::{CLUSTER_LABEL, ClusterName};

/// The requirement that confines a selector, written once for a body: as a member with a comma.
#[derive(Default)]
pub(super) struct Confinement(Option<Bytes>);

/// The key of the requirements, with its colon.
const KEY: &str = r#""matchExpressions":"#;

// === impl Confinement ===

impl Confinement {
    /// A member of a selector, with a comma.
    pub(super) fn member(&mut self, cluster: &ClusterName) -> Bytes {
        let write = || {
            let requirement = format!(r#"{{"key":"{CLUSTER_LABEL}","operator":"In","values":["{cluster}"]}}"#);
            Bytes::from(format!("{KEY}[{requirement}],"))
        };
        self.0.get_or_insert_with(write).clone()
    }

    /// The value of that member.
    pub(super) fn array(&mut self, cluster: &ClusterName) -> Bytes {
        let member = self.member(cluster);
        member.slice(KEY.len()..member.len() - ",".len())
    }

    /// The element of that array.
    pub(super) fn element(&mut self, cluster: &ClusterName) -> Bytes {
        let array = self.array(cluster);
        array.slice("[".len()..array.len() - "]".len())
    }
}

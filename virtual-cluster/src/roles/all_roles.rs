//! The ClusterRoles that virtual clusters see, by their owners.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use rewrite::ClusterName;
use rewrite::name::CLUSTER_LABEL;
use serde_json::Value;

use super::role::Role;
use super::sum::Snapshot;
use super::version::Version;

/// The label, and its value, of the `rbac.authorization.k8s.io` objects that an API server creates and repairs itself
/// (`bootstrappolicy`).
const BOOTSTRAPPING: (&str, &str) = ("kubernetes.io/bootstrapping", "rbac-defaults");

/// All known roles.
#[derive(Debug, Default)]
pub(super) struct AllRoles {
    pub(super) shared: BTreeMap<String, Arc<Role>>,
    /// The aggregated roles of the API server. Every virtual cluster has a copy of them.
    pub(super) copied: BTreeMap<String, Arc<Role>>,
    pub(super) own: HashMap<ClusterName, Own>,
    /// The number of changes of shared roles.
    pub(super) changes: u64,
}

/// The roles of a virtual cluster.
#[derive(Debug, Default)]
pub(super) struct Own {
    /// By virtual name.
    pub(super) roles: BTreeMap<String, Arc<Role>>,
    /// The number of their changes.
    pub(super) changes: u64,
}

/// The owner of a ClusterRole.
#[derive(Debug, PartialEq)]
pub(super) enum Owner {
    Shared(String),
    Copied(String),
    Cluster(ClusterName, String),
}

// === impl AllRoles ===

impl AllRoles {
    /// The version of the roles that a virtual cluster sees; `None` if it has no roles of its own.
    pub(super) fn version(&self, cluster: &ClusterName) -> Option<Version> {
        self.own.get(cluster).map(|own| Version { shared: self.changes, own: own.changes })
    }

    /// The roles that a virtual cluster sees; `None` if it has no roles of its own.
    pub(super) fn snapshot(&self, cluster: &ClusterName) -> Option<Snapshot> {
        let of = |roles: &BTreeMap<String, Arc<Role>>| {
            roles.iter().map(|(name, role)| (name.clone(), Arc::clone(role))).collect()
        };
        let version = self.version(cluster)?;
        Some(Snapshot { version, shared: of(&self.shared), own: of(&self.own.get(cluster)?.roles) })
    }
}

/// The owner. A role of a virtual cluster has both its label and a name with its prefix.
pub(super) fn owner(object: &Value, name: &str) -> Option<Owner> {
    let labels = &object["metadata"]["labels"];
    if labels[BOOTSTRAPPING.0] == BOOTSTRAPPING.1 {
        let shared = object["aggregationRule"].is_null();
        return Some(if shared { Owner::Shared(name.to_owned()) } else { Owner::Copied(name.to_owned()) });
    }
    let cluster = ClusterName::new(labels[CLUSTER_LABEL].as_str()?).ok()?;
    let own = name.strip_prefix(&format!("vc:{cluster}:"))?.to_owned();
    Some(Owner::Cluster(cluster, own))
}

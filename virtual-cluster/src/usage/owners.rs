//! The virtual clusters to which an object counts.

use std::collections::BTreeMap;

use rewrite::ClusterName;
use rewrite::facts::Facts;
use rewrite::name::{CLUSTER_LABEL, OVERLAY_PREFIX, SHARED_LABEL, is_root};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::accounts::Accounts;
use crate::provisioner::MIRROR_LABEL;
use crate::shared::OVERLAY_LABEL;

/// The virtual clusters to which an object counts.
#[derive(Debug)]
pub(super) enum Owners {
    /// The one that has its namespace. In a root namespace, only its bytes count: clients do not see the object.
    Namespace { is_root: bool },
    /// This one. The object is cluster-scoped.
    Cluster(ClusterName),
    /// All virtual clusters that have this shared object. There is at least one.
    Sharing(Box<[ClusterName]>),
}

/// To whom a written version counts.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) enum Payer {
    /// The virtual cluster that has this namespace.
    Namespace(Box<str>),
    Cluster(ClusterName),
}

// === impl Owners ===

impl Owners {
    /// Those of an object; `None` if it counts to none.
    pub(super) fn of(facts: &Facts<'_>, object: &[u8]) -> Option<Self> {
        let label = |key: &str| facts.labels.iter().find(|label| label.key == key);
        if !facts.namespace.is_empty() {
            let is_root = is_root(&facts.namespace);
            // ClusterRoleBindings, which are in root namespaces, and their copies have limits of their own. Only agents write the
            // labels.
            let counts = if is_root { label(OVERLAY_LABEL).is_some() } else { label(MIRROR_LABEL).is_none() };
            return counts.then_some(Self::Namespace { is_root });
        }
        // Clients of virtual clusters cannot write these keys. Agents and the operator of the host do.
        if let Some(cluster) = label(CLUSTER_LABEL) {
            return ClusterName::new(&cluster.value).ok().map(Self::Cluster);
        }
        label(SHARED_LABEL)?;
        let object: Annotated<'_> = serde_json::from_slice(object).ok()?;
        let overlays = object.metadata.annotations.keys().filter_map(|key| key.strip_prefix(OVERLAY_PREFIX));
        let sharing: Box<[_]> = overlays.filter_map(|cluster| ClusterName::new(cluster).ok()).collect();
        (!sharing.is_empty()).then_some(Self::Sharing(sharing))
    }

    /// The virtual clusters of a cluster-scoped object.
    pub(super) fn clusters(&self) -> &[ClusterName] {
        match self {
            Self::Namespace { .. } => &[],
            Self::Cluster(cluster) => std::slice::from_ref(cluster),
            Self::Sharing(clusters) => clusters,
        }
    }
}

// === impl Payer ===

impl Payer {
    /// The one for a new version of an object. Objects that do not count otherwise are paid for, too: clients decide how often the
    /// copies of their ClusterRoleBindings change. `None` if several virtual clusters share the object, because it does not say who
    /// has written it. The agent counts such versions when it writes them.
    pub(super) fn of(facts: &Facts<'_>, owners: Option<&Owners>) -> Option<Self> {
        match owners {
            _ if !facts.namespace.is_empty() => Some(Self::Namespace((*facts.namespace).into())),
            Some(Owners::Cluster(cluster)) => Some(Self::Cluster(cluster.clone())),
            Some(Owners::Sharing(clusters)) => match &**clusters {
                [cluster] => Some(Self::Cluster(cluster.clone())),
                _ => None,
            },
            Some(Owners::Namespace { .. }) | None => None,
        }
    }

    /// Counts the bytes of written versions.
    pub(super) fn pay(self, bytes: u64, accounts: &mut Accounts, owner: impl FnOnce(&str) -> Option<ClusterName>) {
        match self {
            Self::Namespace(namespace) => accounts.wrote(&namespace, bytes, Instant::now(), owner),
            Self::Cluster(cluster) => accounts.wrote_in(cluster, bytes, Instant::now()),
        }
    }
}

/// The keys of the annotations of an object.
#[derive(Deserialize)]
struct Annotated<'a> {
    #[serde(borrow)]
    metadata: Metadata<'a>,
}

#[derive(Deserialize)]
struct Metadata<'a> {
    #[serde(borrow, default)]
    annotations: BTreeMap<String, &'a RawValue>,
}

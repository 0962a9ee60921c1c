//! What virtual clusters have on a host.

use std::collections::BTreeMap;

use host_client::api::{Api, HostApi as _, Selection};
use rewrite::name::{CLUSTER_LABEL, NAMESPACE_LABEL, ROOT_LABEL};
use rewrite::{ClusterName, HostNamespace};
use serde_json::Value;
use virtual_cluster::belongings::{self, Found, Hold};
use virtual_cluster::namespaces::{IDENTITY, PATH};

/// What one virtual cluster has.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Inventory {
    /// Its namespaces, with its root namespace.
    pub(super) namespaces: Vec<Namespace>,
    /// Its other objects, and its parts of shared objects, in the order of their deletion.
    pub(super) found: Vec<Found>,
}

/// A namespace of the host.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Namespace {
    pub(super) host_name: String,
    /// `None`: the root namespace.
    pub(super) virtual_name: Option<String>,
    pub(super) uid: String,
    /// The identity that the root namespace gives the virtual cluster.
    pub(super) identity: Option<String>,
    pub(super) is_terminating: bool,
}

/// By the name of the virtual cluster.
pub(super) type ByCluster = BTreeMap<ClusterName, Inventory>;

// === impl Inventory ===

impl Inventory {
    /// What all virtual clusters have, or `only` this one.
    pub(super) async fn all(api: &Api, only: Option<&ClusterName>) -> anyhow::Result<ByCluster> {
        let mut all = ByCluster::new();
        namespaces(api, only, &mut all).await?;
        let see = |found: Found| {
            if only.is_none_or(|only| *only == found.cluster) {
                all.entry(found.cluster.clone()).or_default().found.push(found);
            }
        };
        belongings::search(api, see).await?;
        Ok(all)
    }

    /// What one virtual cluster has.
    pub(super) async fn of(api: &Api, cluster: &ClusterName) -> anyhow::Result<Self> {
        Ok(Self::all(api, Some(cluster)).await?.remove(cluster).unwrap_or_default())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.namespaces.is_empty() && self.found.is_empty()
    }

    /// The uid of `kube-system` that clients of the virtual cluster see.
    pub(super) fn identity(&self) -> Option<&str> {
        let root = self.namespaces.iter().find_map(|namespace| namespace.identity.as_deref());
        let system = || self.namespaces.iter().find(|it| it.virtual_name.as_deref() == Some("kube-system"));
        root.or_else(|| system().map(|system| system.uid.as_str()))
    }

    /// The number of objects of each resource. Overlays on shared objects count for the resource of the object.
    pub(super) fn counts(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        if !self.namespaces.is_empty() {
            counts.insert("namespaces".to_owned(), self.namespaces.len());
        }
        for found in &self.found {
            *counts.entry(found.resource.clone()).or_default() += 1;
        }
        counts
    }

    /// The number of objects, apart from namespaces and roles, that belong to the virtual cluster, and the number of shared ones.
    pub(super) fn others(&self) -> (usize, usize) {
        let own = self.found.iter().filter(|found| found.hold == Hold::Whole && !is_role(found)).count();
        (own, self.found.iter().filter(|found| found.hold == Hold::Overlay).count())
    }

    pub(super) fn roles(&self) -> usize {
        self.found.iter().filter(|found| is_role(found)).count()
    }
}

fn is_role(found: &Found) -> bool {
    found.resource == "clusterroles.rbac.authorization.k8s.io"
}

async fn namespaces(api: &Api, only: Option<&ClusterName>, all: &mut ByCluster) -> anyhow::Result<()> {
    for label in [CLUSTER_LABEL, ROOT_LABEL] {
        let labels = only.map_or_else(|| label.to_owned(), |cluster| format!("{label}={cluster}"));
        let selection = Selection::labelled(&labels).metadata();
        let mut pages = api.pages(PATH, &selection);
        while let Some(page) = pages.next::<Value>().await? {
            for (cluster, namespace) in page.iter().filter_map(|item| read(item, label)) {
                all.entry(cluster).or_default().namespaces.push(namespace);
            }
        }
    }
    Ok(())
}

/// The virtual cluster of a namespace, and the namespace. `None` if its labels and its name disagree.
fn read(item: &Value, label: &str) -> Option<(ClusterName, Namespace)> {
    let metadata = &item["metadata"];
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let host = HostNamespace::new(metadata["name"].as_str()?).ok()?;
    let (cluster, virtual_name) = if label == ROOT_LABEL {
        let cluster = ClusterName::new(metadata["labels"][ROOT_LABEL].as_str()?).ok()?;
        let is_ours =
            host == HostNamespace::root(&cluster) || HostNamespace::former_root(&cluster).as_ref() == Some(&host);
        (is_ours.then_some(cluster)?, None)
    } else {
        let (cluster, _) = virtual_cluster::namespaces::claim(&host, &metadata["labels"])?;
        (cluster, Some(text(&metadata["labels"][NAMESPACE_LABEL])?))
    };
    let namespace = Namespace {
        host_name: host.to_string(),
        virtual_name,
        uid: text(&metadata["uid"]).unwrap_or_default(),
        identity: text(&metadata["annotations"][IDENTITY]).filter(|_| host.is_root()),
        is_terminating: !metadata["deletionTimestamp"].is_null(),
    };
    Some((cluster, namespace))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn labels_and_name_assign_a_namespace() {
        let item = |name: &str, labels: Value| json!({"metadata": {"name": name, "uid": "u", "labels": labels}});
        let member = json!({CLUSTER_LABEL: "ke", NAMESPACE_LABEL: "edge"});
        let (cluster, found) = read(&item("edge-ke", member.clone()), CLUSTER_LABEL).unwrap();
        assert_eq!((cluster.as_str(), found.virtual_name.as_deref(), found.uid.as_str()), ("ke", Some("edge"), "u"));
        assert!(read(&item("other", member), CLUSTER_LABEL).is_none(), "another name");
        assert!(read(&item("edge-ke", json!({CLUSTER_LABEL: "ke"})), CLUSTER_LABEL).is_none(), "half a membership");
        let root = json!({ROOT_LABEL: "ke"});
        assert_eq!(read(&item("atoll-root-ke", root.clone()), ROOT_LABEL).unwrap().1.virtual_name, None);
        assert!(read(&item("kube-system", root), ROOT_LABEL).is_none());
    }

    #[test]
    fn the_root_namespace_can_name_the_identity() {
        let namespace = |virtual_name: Option<&str>, uid: &str, identity: Option<&str>| Namespace {
            host_name: "x".to_owned(),
            virtual_name: virtual_name.map(str::to_owned),
            uid: uid.to_owned(),
            identity: identity.map(str::to_owned),
            is_terminating: false,
        };
        let mut inventory =
            Inventory { namespaces: vec![namespace(Some("kube-system"), "new", None)], found: Vec::new() };
        assert_eq!(inventory.identity(), Some("new"));
        inventory.namespaces.push(namespace(None, "root", Some("old")));
        assert_eq!(inventory.identity(), Some("old"));
    }
}

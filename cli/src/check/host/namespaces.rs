//! Namespaces of the host whose names conflict with those of virtual clusters.

use std::collections::{BTreeMap, BTreeSet};

use ops::config::{Located, Location};
use rewrite::name::{CLUSTER_LABEL, METADATA_NAME_LABEL, NAMESPACE_LABEL, endings};
use rewrite::{ClusterName, HostNamespace, VirtualNamespace};
use serde_json::Value;
use virtual_cluster::config::VirtualCluster;
use virtual_cluster::provisioner::ROOT_LABEL;

use super::selector::Labels;
use crate::check::weakness::{Check, Weakness, shorten};

/// All namespaces of a host.
#[derive(Debug, Default)]
pub(super) struct Namespaces(BTreeMap<String, Labels>);

// === impl Namespaces ===

impl Namespaces {
    /// From Namespace objects, or their metadata.
    pub(super) fn new(items: &[Value]) -> Self {
        let of = |item: &Value| {
            let labels = item["metadata"]["labels"].as_object().into_iter().flatten();
            let labels = labels.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())));
            Some((item["metadata"]["name"].as_str()?.to_owned(), labels.collect()))
        };
        Self(items.iter().filter_map(of).collect())
    }

    /// Whether a namespace of this name exists.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Whether the namespace has the label of a virtual cluster, or that of a root namespace.
    pub(super) fn is_of_a_cluster(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|labels| labels.contains_key(CLUSTER_LABEL) || labels.contains_key(ROOT_LABEL))
    }

    /// The labels of all namespaces of virtual clusters, and of one more namespace that each of `clusters` could
    /// create.
    pub(super) fn of_tenants(&self, clusters: &[Located<VirtualCluster>]) -> Vec<Labels> {
        let existing = self.0.values().filter(|labels| labels.contains_key(CLUSTER_LABEL)).cloned();
        let new = clusters.iter().map(|cluster| {
            let name = format!("x-{}", cluster.name);
            let labels = [(CLUSTER_LABEL, cluster.name.as_str()), (NAMESPACE_LABEL, "x"), (METADATA_NAME_LABEL, &name)];
            labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
        });
        existing.chain(new).collect()
    }

    /// Names that are in use or could conflict, and labels that Atoll has not set.
    pub(super) fn weaknesses(&self, location: Option<Location>, clusters: &[Located<VirtualCluster>]) -> Vec<Weakness> {
        let mut found: Vec<_> = clusters.iter().filter_map(|cluster| self.names_in_use(cluster)).collect();
        let mislabelled: Vec<_> = self.0.iter().filter(|(name, labels)| is_mislabelled(name, labels)).collect();
        if !mislabelled.is_empty() {
            let names: Vec<_> = mislabelled.iter().map(|(name, _)| name.as_str()).collect();
            found.push(Weakness::at(
                Check::NamespaceName,
                location,
                format_args!(
                    "host: namespaces have the labels of a virtual cluster, but not the host name that these labels \
                     imply: {}; no virtual cluster shows them, but the admission policies apply to them",
                    shorten(&names)
                ),
                "remove their labels atoll.dev/virtual-cluster and atoll.dev/namespace",
            ));
        }
        found.extend(self.name_conflicts(clusters));
        found
    }

    /// Other namespaces whose names the cluster would use.
    fn names_in_use(&self, cluster: &Located<VirtualCluster>) -> Option<Weakness> {
        let name = ClusterName::new(cluster.name.as_str()).ok()?;
        let (ending, root) = (format!("-{name}"), HostNamespace::root(&name));
        let has_name_of_cluster = |host: &str| {
            let rest = host.strip_suffix(&ending).and_then(|rest| VirtualNamespace::new(rest).ok());
            host == root.as_str() || rest.is_some()
        };
        let in_use: Vec<_> =
            self.0.keys().filter(|host| has_name_of_cluster(host) && !self.is_of_a_cluster(host)).collect();
        if in_use.is_empty() {
            return None;
        }
        Some(Weakness::at(
            Check::NamespaceName,
            cluster.location(),
            format_args!(
                "virtual cluster {name}: the host has other namespaces with names that this cluster would use: {}; \
                 its clients get 409 when they create them, and if you delete one, objects that remain belong to the \
                 next namespace with this name",
                shorten(&in_use)
            ),
            &format!("rename them: no other namespace should have a name that ends with `{ending}`"),
        ))
    }

    /// Virtual clusters that are not in the configuration, and whose namespaces can have the same names as those in it.
    fn name_conflicts(&self, clusters: &[Located<VirtualCluster>]) -> Vec<Weakness> {
        let ours: BTreeSet<_> = clusters.iter().map(|cluster| cluster.name.as_str()).collect();
        let labelled = self.0.values().flat_map(|labels| [labels.get(CLUSTER_LABEL), labels.get(ROOT_LABEL)]);
        let others: BTreeSet<_> = labelled.flatten().map(String::as_str).filter(|name| !ours.contains(name)).collect();
        let pairs = others.iter().flat_map(|other| {
            let ends = endings(other).filter(|ending| ours.contains(ending));
            let ended = ours.iter().filter(|our| endings(our).any(|ending| ending == *other));
            ends.chain(ended.copied()).map(|our| (*other, our)).collect::<Vec<_>>()
        });
        let weakness = |(other, our): (&str, &str)| {
            let at = clusters.iter().find(|cluster| cluster.name.as_str() == our);
            Weakness::at(
                Check::NamespaceName,
                at.and_then(Located::location),
                format_args!(
                    "virtual cluster {our}: the host has namespaces of virtual cluster {other}, which is not in this \
                     configuration, and namespaces of both could have the same name"
                ),
                &format!(
                    "if {other} no longer exists, run `atoll clusters remove {other}`; otherwise rename \
                     one of the two clusters"
                ),
            )
        };
        pairs.map(weakness).collect()
    }
}

/// Whether the name of a namespace differs from the one that its labels imply.
fn is_mislabelled(host: &str, labels: &Labels) -> bool {
    let Some(cluster) = labels.get(CLUSTER_LABEL) else { return false };
    let names = ClusterName::new(cluster)
        .ok()
        .zip(labels.get(NAMESPACE_LABEL).and_then(|name| VirtualNamespace::new(name).ok()));
    names.is_none_or(|(cluster, name)| {
        let former = HostNamespace::derive_formerly(&name, &cluster);
        HostNamespace::derive(&name, &cluster).as_str() != host && former.is_none_or(|former| former.as_str() != host)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn clusters(names: &[&str]) -> Vec<Located<VirtualCluster>> {
        let cluster = |name: &&str| serde_json::from_value::<VirtualCluster>(json!({"name": name})).unwrap();
        names.iter().map(cluster).map(Located::from).collect()
    }

    fn messages(namespaces: &[Value], names: &[&str]) -> Vec<String> {
        let found = Namespaces::new(namespaces).weaknesses(None, &clusters(names));
        found.into_iter().map(|weakness| weakness.problem.message().to_owned()).collect()
    }

    fn plain(name: &str) -> Value {
        json!({"metadata": {"name": name}})
    }

    fn member(host: &str, cluster: &str, name: &str) -> Value {
        json!({"metadata": {"name": host, "labels": {CLUSTER_LABEL: cluster, NAMESPACE_LABEL: name}}})
    }

    #[test]
    fn other_namespaces_with_names_of_a_cluster() {
        let host = [plain("shop-ke"), plain("ke"), plain("-ke"), plain("kube-system"), member("edge-ke", "ke", "edge")];
        let messages = messages(&host, &["ke"]);
        assert_eq!(messages.len(), 1, "{messages:?}");
        assert!(
            messages[0].starts_with("virtual cluster ke: ") && messages[0].contains("would use: shop-ke; its"),
            "{messages:?}"
        );
    }

    #[test]
    fn a_namespace_with_the_name_of_a_root_namespace() {
        assert_eq!(messages(&[plain("atoll-root-ke")], &["ke"]).len(), 1);
        let root = json!({"metadata": {"name": "atoll-root-ke", "labels": {ROOT_LABEL: "ke"}}});
        assert_eq!(messages(&[root], &["ke"]), [""; 0]);
    }

    #[test]
    fn labels_that_contradict_the_name() {
        let messages = messages(
            &[member("edge-ke", "hz", "edge"), member("edge-hz", "hz", "edge"), member("x", "hz", "")],
            &["hz"],
        );
        assert_eq!(messages.len(), 1, "{messages:?}");
        assert!(messages[0].contains("labels imply: edge-ke, x; no virtual"), "{messages:?}");
    }

    #[test]
    fn clusters_that_are_not_in_the_configuration() {
        let left = [member("a-b-c", "b-c", "a"), member("x-z", "z", "x")];
        for ours in ["c", "a-b-c"] {
            let messages = messages(&left, &[ours]);
            assert_eq!(messages.len(), 1, "{messages:?}");
            assert!(
                messages[0]
                    .starts_with(&format!("virtual cluster {ours}: the host has namespaces of virtual cluster b-c"))
            );
        }
        assert_eq!(messages(&left, &["y"]), [""; 0]);
        assert_eq!(messages(&left, &["b-c"]), [""; 0]);
    }
}

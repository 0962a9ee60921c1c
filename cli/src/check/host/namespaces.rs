//! Names of namespaces on the host that clash with those of virtual clusters.

use std::collections::{BTreeMap, BTreeSet};

use ops::config::{Located, Location};
use rewrite::name::{CLUSTER_LABEL, METADATA_NAME_LABEL, NAMESPACE_LABEL, endings};
use rewrite::{ClusterName, HostNamespace, VirtualNamespace};
use serde_json::Value;
use virtual_cluster::config::VirtualCluster;
use virtual_cluster::provisioner::ROOT_LABEL;

use super::selector::Labels;
use crate::check::weakness::{Check, Weakness, some};

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

    /// Whether it has the label of a virtual cluster, or of a root namespace.
    pub(super) fn is_of_a_cluster(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|labels| labels.contains_key(CLUSTER_LABEL) || labels.contains_key(ROOT_LABEL))
    }

    /// The labels of all namespaces of virtual clusters, and of one that each of `clusters` could create.
    pub(super) fn of_tenants(&self, clusters: &[Located<VirtualCluster>]) -> Vec<Labels> {
        let there = self.0.values().filter(|labels| labels.contains_key(CLUSTER_LABEL)).cloned();
        let new = clusters.iter().map(|cluster| {
            let name = format!("x-{}", cluster.name);
            let labels = [(CLUSTER_LABEL, cluster.name.as_str()), (NAMESPACE_LABEL, "x"), (METADATA_NAME_LABEL, &name)];
            labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
        });
        there.chain(new).collect()
    }

    /// Names that are taken or could clash, and labels that somebody else set.
    pub(super) fn weaknesses(&self, location: Option<Location>, clusters: &[Located<VirtualCluster>]) -> Vec<Weakness> {
        let mut found: Vec<_> = clusters.iter().filter_map(|cluster| self.meeting(cluster)).collect();
        let strangers: Vec<_> = self.0.iter().filter(|(name, labels)| is_mislabelled(name, labels)).collect();
        if !strangers.is_empty() {
            let names: Vec<_> = strangers.iter().map(|(name, _)| name.as_str()).collect();
            found.push(Weakness::at(
                Check::NamespaceName,
                location,
                format_args!(
                    "host: namespaces have the labels of a virtual cluster, but not the host name that these labels \
                     imply: {}; no virtual cluster shows them, but the admission policies apply to them",
                    some(&names)
                ),
                "remove their labels atoll.dev/virtual-cluster and atoll.dev/namespace",
            ));
        }
        found.extend(self.others(clusters));
        found
    }

    /// Namespaces of the host whose names the cluster would use.
    fn meeting(&self, cluster: &Located<VirtualCluster>) -> Option<Weakness> {
        let name = ClusterName::new(cluster.name.as_str()).ok()?;
        let (ending, root) = (format!("-{name}"), HostNamespace::root(&name));
        let is_called_so = |host: &str| {
            let rest = host.strip_suffix(&ending).and_then(|rest| VirtualNamespace::new(rest).ok());
            host == root.as_str() || rest.is_some()
        };
        let taken: Vec<_> = self.0.keys().filter(|host| is_called_so(host) && !self.is_of_a_cluster(host)).collect();
        if taken.is_empty() {
            return None;
        }
        Some(Weakness::at(
            Check::NamespaceName,
            cluster.location(),
            format_args!(
                "virtual cluster {name}: the host has other namespaces with names that this cluster would use: {}; \
                 its clients get 409 when they create them, and if you delete one, objects that outlive it belong to \
                 the next namespace of that name",
                some(&taken)
            ),
            &format!("rename them: no name of another namespace should end with `{ending}`"),
        ))
    }

    /// Clusters that another agent serves, or that left the configuration, whose names clash with ours.
    fn others(&self, clusters: &[Located<VirtualCluster>]) -> Vec<Weakness> {
        let ours: BTreeSet<_> = clusters.iter().map(|cluster| cluster.name.as_str()).collect();
        let labelled = self.0.values().flat_map(|labels| [labels.get(CLUSTER_LABEL), labels.get(ROOT_LABEL)]);
        let others: BTreeSet<_> = labelled.flatten().map(String::as_str).filter(|name| !ours.contains(name)).collect();
        let pairs = others.iter().flat_map(|other| {
            let ends = endings(other).filter(|ending| ours.contains(ending));
            let ended = ours.iter().filter(|our| endings(our).any(|ending| ending == *other));
            ends.chain(ended.copied()).map(|our| (*other, our)).collect::<Vec<_>>()
        });
        let met = |(other, our): (&str, &str)| {
            let at = clusters.iter().find(|cluster| cluster.name.as_str() == our);
            Weakness::at(
                Check::NamespaceName,
                at.and_then(Located::location),
                format_args!(
                    "virtual cluster {our}: the host has namespaces of virtual cluster {other}, which is not in this \
                     configuration, and namespaces of both could have the same name"
                ),
                &format!(
                    "if {other} no longer exists, run `atoll namespaces remove --cluster {other}`; otherwise rename \
                     one of the two clusters"
                ),
            )
        };
        pairs.map(met).collect()
    }
}

/// Whether a namespace has labels of a virtual cluster that its name contradicts.
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

    fn said(namespaces: &[Value], names: &[&str]) -> Vec<String> {
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
    fn names_of_the_operator_that_meet_a_cluster() {
        let host = [plain("shop-ke"), plain("ke"), plain("-ke"), plain("kube-system"), member("edge-ke", "ke", "edge")];
        let said = said(&host, &["ke"]);
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].starts_with("virtual cluster ke: ") && said[0].contains("would use: shop-ke; its"), "{said:?}");
    }

    #[test]
    fn a_root_namespace_that_is_none() {
        assert_eq!(said(&[plain("atoll-root-ke")], &["ke"]).len(), 1);
        let root = json!({"metadata": {"name": "atoll-root-ke", "labels": {ROOT_LABEL: "ke"}}});
        assert_eq!(said(&[root], &["ke"]), [""; 0]);
    }

    #[test]
    fn labels_that_do_not_agree_with_the_name() {
        let said =
            said(&[member("edge-ke", "hz", "edge"), member("edge-hz", "hz", "edge"), member("x", "hz", "")], &["hz"]);
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].contains("labels imply: edge-ke, x; no virtual"), "{said:?}");
    }

    #[test]
    fn clusters_that_are_not_in_the_configuration() {
        let left = [member("a-b-c", "b-c", "a"), member("x-z", "z", "x")];
        for ours in ["c", "a-b-c"] {
            let said = said(&left, &[ours]);
            assert_eq!(said.len(), 1, "{said:?}");
            assert!(
                said[0].starts_with(&format!("virtual cluster {ours}: the host has namespaces of virtual cluster b-c"))
            );
        }
        assert_eq!(said(&left, &["y"]), [""; 0]);
        assert_eq!(said(&left, &["b-c"]), [""; 0]);
    }
}

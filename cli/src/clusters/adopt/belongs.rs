//! Whether an object of an export can belong to the virtual cluster.
//!
//! A restore has the rights of the host's administrator, and somebody may have changed the file. So it must not create anything that
//! a virtual cluster cannot have.

use std::collections::HashMap;

use anyhow::{bail, ensure};
use kube_wire::gvr::GroupResource;
use rewrite::name::{CLUSTER_LABEL, OVERLAY_PREFIX, ROOT_LABEL};
use rewrite::{ClusterName, HostNamespace, VirtualNamespace};
use serde_json::Value;
use virtual_cluster::namespaces::claim;
use virtual_cluster::policy::{Class, class, is_known};

use super::host_names::is_of_host;
use crate::clusters::export::is_of_cluster;
use crate::clusters::kinds::Resource;

/// The API group of VirtualClusters.
const OWN_GROUP: &str = "atoll.dev";

/// The namespaces of the export so far.
#[derive(Debug)]
pub(super) struct Belonging<'a> {
    cluster: &'a ClusterName,
    /// Whether the host has each of them, as one of the virtual cluster.
    namespaces: HashMap<String, bool>,
}

// === impl Belonging ===

impl<'a> Belonging<'a> {
    pub(super) fn new(cluster: &'a ClusterName) -> Self {
        Self { cluster, namespaces: HashMap::new() }
    }

    /// Notes whether the host has a namespace now. Without it, no object in it belongs to the virtual cluster.
    pub(super) fn settle(&mut self, namespace: &str, is_there: bool) {
        self.namespaces.insert(namespace.to_owned(), is_there);
    }

    /// Whether the namespace of this object has failed, which the user already knows.
    pub(super) fn has_failed(&self, object: &Value) -> bool {
        let namespace = object["metadata"]["namespace"].as_str();
        namespace.is_some_and(|namespace| self.namespaces.get(namespace) == Some(&false))
    }

    /// Checks the namespace of an object. Namespaces come before the objects in them.
    pub(super) fn check_namespace(&self, object: &Value) -> anyhow::Result<()> {
        let (cluster, namespace) = (self.cluster, object["metadata"]["namespace"].as_str().unwrap_or_default());
        let is_there = self.namespaces.get(namespace) == Some(&true);
        ensure!(is_there, "its namespace is not one of {cluster} in this export");
        Ok(())
    }

    /// Checks an object.
    pub(super) fn check(&self, resource: &Resource, object: &Value) -> anyhow::Result<()> {
        let (cluster, metadata) = (self.cluster, &object["metadata"]);
        let name = metadata["name"].as_str().unwrap_or_default();
        if resource.is_namespaced {
            self.check_namespace(object)?;
            let namespace = metadata["namespace"].as_str().unwrap_or_default();
            let is_exported = is_of_cluster(&resource.full_name(), namespace, object);
            ensure!(is_exported, "the root namespace of {cluster} has no such objects");
            return Ok(());
        }
        let is_custom = resource.is_custom();
        let resource = GroupResource { group: &resource.group, resource: &resource.name };
        let is_overlaid = metadata["annotations"][format!("{OVERLAY_PREFIX}{cluster}")].is_string();
        let is_labelled = metadata["labels"][CLUSTER_LABEL] == cluster.as_str();
        let belongs = match class(resource) {
            Class::Namespaces => self.is_namespace(name, &metadata["labels"]),
            Class::Roles => name.starts_with(&format!("vc:{cluster}:")) && is_labelled,
            Class::Shared => is_overlaid,
            _ if resource.group == OWN_GROUP => resource.resource == "virtualclusters" && name == cluster.as_str(),
            // A kind that is not built in.
            _ if !is_known(resource) && is_custom => {
                is_overlaid || (is_labelled && name.ends_with(&format!(".{cluster}")))
            }
            _ => false,
        };
        if !belongs {
            bail!("it cannot belong to a virtual cluster, so it is not created");
        }
        Ok(())
    }

    fn is_namespace(&self, name: &str, labels: &Value) -> bool {
        let Ok(host) = HostNamespace::new(name) else { return false };
        if !labels[ROOT_LABEL].is_null() {
            let is_root = labels[ROOT_LABEL] == self.cluster.as_str() && host == HostNamespace::root(self.cluster);
            return is_root && labels[CLUSTER_LABEL].is_null();
        }
        let is_ours = |name: &VirtualNamespace| !is_of_host(&host, name);
        claim(&host, labels).is_some_and(|(claimed, name)| claimed == *self.cluster && is_ours(&name))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn resource(group: &str, name: &str, is_namespaced: bool) -> Resource {
        Resource::for_tests(group, name, is_namespaced)
    }

    #[test]
    fn only_what_a_virtual_cluster_can_have_is_created() {
        let cluster = "ke".parse().unwrap();
        let mut belonging = Belonging::new(&cluster);
        let namespaces = resource("", "namespaces", false);
        let member = json!({CLUSTER_LABEL: "ke", "atoll.dev/namespace": "edge"});
        let named = |name: &str, labels: Value| json!({"metadata": {"name": name, "labels": labels}});
        let overlaid = |name: &str| json!({"metadata": {"name": name, "annotations": {"overlay.atoll.dev/ke": "{}"}}});
        let pods = resource("", "pods", true);
        let pod = |namespace: &str| json!({"metadata": {"name": "a", "namespace": namespace}});
        assert!(belonging.check(&pods, &pod("edge-ke")).is_err(), "its namespace comes first");
        belonging.check(&namespaces, &named("edge-ke", member.clone())).unwrap();
        belonging.check(&namespaces, &named("atoll-root-ke", json!({ROOT_LABEL: "ke"}))).unwrap();
        assert!(belonging.check(&pods, &pod("edge-ke")).is_err(), "the host must have it");
        belonging.settle("edge-ke", true);
        belonging.check(&pods, &pod("edge-ke")).unwrap();
        let roles = resource("rbac.authorization.k8s.io", "clusterroles", false);
        belonging.check(&roles, &named("vc:ke:readers", json!({CLUSTER_LABEL: "ke"}))).unwrap();
        belonging
            .check(&resource("example.com", "gears", false), &named("x.ke", json!({CLUSTER_LABEL: "ke"})))
            .unwrap();
        belonging.check(&resource("scheduling.k8s.io", "priorityclasses", false), &overlaid("high")).unwrap();
        belonging
            .check(&resource("apiextensions.k8s.io", "customresourcedefinitions", false), &overlaid("a.b"))
            .unwrap();
        belonging.check(&resource("atoll.dev", "virtualclusters", false), &named("ke", json!({}))).unwrap();

        let bindings = resource("rbac.authorization.k8s.io", "clusterrolebindings", false);
        let hooks = resource("admissionregistration.k8s.io", "validatingwebhookconfigurations", false);
        for (resource, object) in [
            (&namespaces, named("kube-system", member)),
            (&namespaces, named("edge-hz", json!({CLUSTER_LABEL: "hz", "atoll.dev/namespace": "edge"}))),
            (&namespaces, named("atoll-root-hz", json!({ROOT_LABEL: "ke"}))),
            (&namespaces, named("atoll-root-ke", json!({ROOT_LABEL: "ke", CLUSTER_LABEL: "ke"}))),
            (&pods, pod("kube-system")),
            (&roles, named("cluster-admin", json!({CLUSTER_LABEL: "ke"}))),
            (&bindings, overlaid("vc:ke:x")),
            (&bindings, named("x.ke", json!({CLUSTER_LABEL: "ke"}))),
            (&hooks, overlaid("x")),
            (&resource("new.k8s.io", "things", false), overlaid("x")),
            (&resource("example.com", "gears", false), named("x", json!({CLUSTER_LABEL: "ke"}))),
            (&resource("atoll.dev", "virtualclusters", false), named("hz", json!({}))),
        ] {
            assert!(belonging.check(resource, &object).is_err(), "{object}");
        }
    }

    #[test]
    fn nothing_is_created_in_a_namespace_that_has_failed() {
        let cluster = "ke".parse().unwrap();
        let mut belonging = Belonging::new(&cluster);
        let secrets = resource("", "secrets", true);
        let secret = |namespace: &str| json!({"metadata": {"name": "a", "namespace": namespace}});
        belonging.settle("edge-ke", false);
        assert!(belonging.check(&secrets, &secret("edge-ke")).is_err() && belonging.has_failed(&secret("edge-ke")));
        assert!(belonging.check(&secrets, &secret("shop-ke")).is_err() && !belonging.has_failed(&secret("shop-ke")));
    }

    #[test]
    fn namespaces_of_the_host_never_belong_to_a_virtual_cluster() {
        let cluster = "system".parse().unwrap();
        let namespaces = resource("", "namespaces", false);
        for (name, virtual_name) in [("kube-system", "kube"), ("atoll-system", "atoll")] {
            let labels = json!({CLUSTER_LABEL: "system", "atoll.dev/namespace": virtual_name});
            let namespace = json!({"metadata": {"name": name, "labels": labels}});
            assert!(Belonging::new(&cluster).check(&namespaces, &namespace).is_err(), "{name}");
        }
        let labels = json!({CLUSTER_LABEL: "system", "atoll.dev/namespace": "kube-public"});
        let namespace = json!({"metadata": {"name": "kube-public-system", "labels": labels}});
        Belonging::new(&cluster).check(&namespaces, &namespace).unwrap();
    }

    #[test]
    fn a_root_namespace_has_only_bindings_and_overlays() {
        let cluster = "ke".parse().unwrap();
        let mut belonging = Belonging::new(&cluster);
        belonging.settle("atoll-root-ke", true);
        let within = |labels: Value| json!({"metadata": {"name": "a", "namespace": "atoll-root-ke", "labels": labels}});
        let maps = resource("", "configmaps", true);
        belonging.check(&maps, &within(json!({"atoll.dev/overlay": ""}))).unwrap();
        let bindings = resource("rbac.authorization.k8s.io", "rolebindings", true);
        belonging.check(&bindings, &within(json!({}))).unwrap();
        for other in [maps, resource("", "pods", true), resource("rbac.authorization.k8s.io", "roles", true)] {
            assert!(belonging.check(&other, &within(json!({}))).is_err(), "{}", other.full_name());
        }
    }
}

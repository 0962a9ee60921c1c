//! What a scripted host has from the start: namespaces of two clusters, nodes, roles and kinds.

use std::future::pending;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use test_host::standing::Resource;
use test_host::{Received, Reply};

use host_client::api::{Change, Following};

/// A watch that delivers these objects, and nothing later.
pub(super) struct Known(std::vec::IntoIter<Change>);

// === impl Known ===

impl Known {
    /// All objects of a first list. Without one, the watch delivers nothing.
    pub(super) fn all(objects: Option<Vec<Value>>) -> Self {
        let listed = objects.map(|objects| objects.into_iter().map(Change::Applied).chain([Change::Synced]));
        Self(listed.into_iter().flatten().collect::<Vec<_>>().into_iter())
    }
}

impl<T: DeserializeOwned + Send + 'static> Following<T> for Known {
    async fn next(&mut self) -> Change<T> {
        let parsed = |object| serde_json::from_value(object).unwrap();
        match self.0.next() {
            Some(Change::Applied(object)) => Change::Applied(parsed(object)),
            Some(Change::Deleted(object)) => Change::Deleted(parsed(object)),
            Some(Change::Synced) => Change::Synced,
            None => pending().await,
        }
    }
}

const fn resource(
    group: &'static str,
    version: &'static str,
    resource: &'static str,
    kind: &'static str,
    is_namespaced: bool,
) -> Resource {
    Resource { group, version, resource, kind, is_namespaced, is_custom: false }
}

const fn custom(resource: &'static str, kind: &'static str, is_namespaced: bool) -> Resource {
    Resource { group: "example.com", version: "v1", resource, kind, is_namespaced, is_custom: true }
}

pub(super) const RESOURCES: [Resource; 25] = [
    resource("", "v1", "configmaps", "ConfigMap", true),
    resource("", "v1", "events", "Event", true),
    resource("", "v1", "endpoints", "Endpoints", true),
    resource("", "v1", "namespaces", "Namespace", false),
    resource("", "v1", "nodes", "Node", false),
    resource("", "v1", "persistentvolumes", "PersistentVolume", false),
    resource("", "v1", "pods", "Pod", true),
    resource("", "v1", "services", "Service", true),
    resource("", "v1", "secrets", "Secret", true),
    resource("apps", "v1", "deployments", "Deployment", true),
    resource("admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations", "V", false),
    resource("apiregistration.k8s.io", "v1", "apiservices", "APIService", false),
    resource("certificates.k8s.io", "v1", "certificatesigningrequests", "CertificateSigningRequest", false),
    resource("coordination.k8s.io", "v1", "leases", "Lease", true),
    resource("flowcontrol.apiserver.k8s.io", "v1", "flowschemas", "FlowSchema", false),
    resource("networking.k8s.io", "v1", "ipaddresses", "IPAddress", false),
    resource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", false),
    resource("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", false),
    resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding", true),
    resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", false),
    resource("storage.k8s.io", "v1", "csinodes", "CSINode", false),
    custom("gadgets", "Gadget", false),
    custom("secretive", "Secretive", false),
    custom("widgets", "Widget", false),
    custom("gizmos", "Gizmo", true),
];

/// All of them belong to the operator of the host.
pub(super) fn definitions() -> Vec<Value> {
    RESOURCES.iter().filter(|found| found.is_custom).map(definition).collect()
}

fn definition(of: &Resource) -> Value {
    let name = format!("{}.{}", of.resource, of.group);
    let scope = if of.is_namespaced { "Namespaced" } else { "Cluster" };
    json!({"metadata": {"name": name, "uid": format!("uid-of-{name}")},
        "spec": {"group": of.group, "names": {"plural": of.resource, "kind": of.kind}, "scope": scope}})
}

/// Answers what the agent requests before it writes a custom kind: the definition, its own role, and a review.
pub(super) fn rights_of_the_agent(received: &Received) -> Option<Reply> {
    let path = received.path();
    let named = path.strip_prefix("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/");
    if let Some(name) = named.filter(|_| received.method == "GET") {
        let found = definitions().into_iter().find(|found| found["metadata"]["name"] == name);
        return found.map(|found| Reply::json(200, &found));
    }
    let is_own_role = path.starts_with("/apis/rbac.authorization.k8s.io/v1/clusterroles/atoll:");
    if is_own_role && received.method == "PATCH" {
        return Some(Reply::json(200, &received.json()));
    }
    let is_review = path == "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews" && received.user().is_none();
    is_review.then(|| Reply::json(201, &json!({"status": {"allowed": true}})))
}

pub(super) fn namespaces() -> Vec<Value> {
    let root = |cluster: &str| namespace(&format!("atoll-root-{cluster}"), &json!({"atoll.dev/root": cluster}));
    let others = ["default", "kube-system", "kube-node-lease", "operators-ke"].map(|name| namespace(name, &json!({})));
    let ke = ["default", "kube-system", "kube-public", "kube-node-lease", "edge"].map(|name| own("ke", name));
    let hz = ["default", "edge"].map(|name| own("hz", name));
    others.into_iter().chain(ke).chain(hz).chain(["ke", "hz"].map(root)).collect()
}

/// A namespace of a virtual cluster.
pub(super) fn own(cluster: &str, name: &str) -> Value {
    let labels = json!({"atoll.dev/virtual-cluster": cluster, "atoll.dev/namespace": name});
    namespace(&format!("{name}-{cluster}"), &labels)
}

fn namespace(name: &str, labels: &Value) -> Value {
    json!({
        "kind": "Namespace", "apiVersion": "v1",
        "metadata": {"name": name, "uid": format!("uid-of-{name}"), "resourceVersion": "1", "labels": labels},
        "status": {"phase": "Active"},
    })
}

pub(super) fn nodes() -> Vec<Value> {
    let node = |name: &str, location: &str| json!({"metadata": {"name": name, "labels": {"location": location}}});
    vec![node("beijing-1", "beijing"), node("hangzhou-1", "hangzhou")]
}

pub(super) fn roles() -> Vec<Value> {
    let role = |name: &str| {
        let labels = json!({"kubernetes.io/bootstrapping": "rbac-defaults"});
        json!({"metadata": {"name": name, "labels": labels}, "rules": []})
    };
    vec![role("cluster-admin"), role("system:discovery")]
}

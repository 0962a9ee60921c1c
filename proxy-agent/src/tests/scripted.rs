//! An agent whose host follows a script. No loop of the agent runs: it knows the state of the host from the start.

mod classes;
mod node_ports;
mod order;
mod refusals;
mod retries;

use std::future::pending;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use ops::drain::Tasks;
use ops::files::Watched;
use rewrite::view::Certificate;
use serde_json::{Value, json};
use test_host::standing::{self, Resource};
use test_host::{Expected, Received, Reply, Script};

use super::agent::{Agent, Answer, Ask};
use crate::config::ProxyAgentConfiguration;
use crate::exchange::Services;
use host_client::api::{Change, Following};
use virtual_cluster::clusters::VirtualClusters;

const CONFIG: &str = "\
apiVersion: atoll.dev/v1alpha1
kind: ProxyAgentConfiguration
servers: [proxy:8091]
identity: {certificate: a.crt, key: a.key, serverCA: s.crt}
host: {kubeconfig: h, unsafeDirectAccess: true}
sharedObjects: {writable: [priorityclasses.scheduling.k8s.io]}
customResources:
- {resource: widgets.example.com, objects: renamed}
- {resource: gadgets.example.com, objects: read}
- {resource: secretive.example.com, objects: hidden}
virtualClusters:
- {name: ke, nodeSelector: {location: beijing}}
- {name: hz, nodeSelector: {location: hangzhou}}
";

/// An agent and its host.
pub(super) struct Scripted {
    agent: Agent,
    host: Script,
    clusters: Arc<VirtualClusters>,
    _tasks: Tasks,
}

/// A watch that delivers these objects, and nothing later.
struct Known(std::vec::IntoIter<Change>);

// === impl Scripted ===

impl Scripted {
    /// An agent with two virtual clusters, `ke` and `hz`. The host allows everything that it is asked in reviews.
    pub(super) async fn new() -> Self {
        Self::configured(CONFIG).await
    }

    /// The same with further keys in the configuration.
    pub(super) async fn configured(config: &str) -> Self {
        let config: ProxyAgentConfiguration = ops::config::parse(config, Path::new("c.yaml")).unwrap();
        let (host, tasks) = (Script::new(), Tasks::new());
        host.always(standing::reviews(|_| true))
            .always(standing::paths(&["*"]))
            .always(standing::discovery(&RESOURCES));
        let services = Services::new(&config, host.host(), Watched::fixed(Certificate::new("ca"))).unwrap();
        let (nodes, roles) = (services.clusters.nodes(), services.clusters.roles());
        let (namespaces, definitions) = (services.namespaces.clone(), services.definitions.clone());
        tasks.spawn("namespaces", async move { namespaces.follow(Known::all(namespaces_of_the_host())).await });
        tasks.spawn("nodes", async move { nodes.follow(Known::all(nodes_of_the_host())).await });
        tasks.spawn("roles", async move { roles.follow(Known::all(roles_of_the_host())).await });
        tasks.spawn("definitions", async move { definitions.follow(Known::all(definitions_of_the_host())).await });
        host.always(rights_of_the_agent);
        // The host serves no admission policies, and the configuration accepts that.
        host.always(|received| {
            let path = received.path();
            let is_about_policies = path.starts_with("/apis/admissionregistration") || path == "/version";
            is_about_policies
                .then(|| Reply::status(404, "NotFound", "the server could not find the requested resource"))
        });
        let policies = services.admission_policies.clone();
        tasks.spawn("policies", async move { policies.run().await });
        services.admission_policies.first_standing().await;
        services.clusters.roles().synced().await;
        let clusters = Arc::clone(&services.clusters);
        let agent = Agent::serve(services).await;
        host.transcript();
        Self { agent, host, clusters, _tasks: tasks }
    }

    /// Makes a request for which the host gets exactly one request, besides reviews and discovery.
    pub(super) async fn exchange(&self, ask: Ask, expected: Expected, reply: Reply) -> Answer {
        self.host.on(expected, reply);
        self.ask(ask).await
    }

    /// Makes a request. The host must have got all that it expects.
    pub(super) async fn ask(&self, ask: Ask) -> Answer {
        let answer = self.agent.ask(ask).await;
        self.host.check();
        answer
    }

    /// Refuses these reviews, as [`Received`](test_host::Received) prints them after `review`.
    pub(super) fn denying(&self, is_denied: impl Fn(&str) -> bool + Send + Sync + 'static) {
        self.host.always(standing::reviews(move |question| !is_denied(question)));
    }
}

/// What a test says about the host.
impl Deref for Scripted {
    type Target = Script;

    fn deref(&self) -> &Script {
        &self.host
    }
}

// === impl Known ===

impl Known {
    fn all(objects: Vec<Value>) -> Self {
        let changes: Vec<_> = objects.into_iter().map(Change::Applied).chain([Change::Synced]).collect();
        Self(changes.into_iter())
    }
}

impl Following for Known {
    async fn next(&mut self) -> Change {
        match self.0.next() {
            Some(change) => change,
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

const RESOURCES: [Resource; 25] = [
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
fn definitions_of_the_host() -> Vec<Value> {
    RESOURCES.iter().filter(|found| found.is_custom).map(definition).collect()
}

fn definition(of: &Resource) -> Value {
    let name = format!("{}.{}", of.resource, of.group);
    let scope = if of.is_namespaced { "Namespaced" } else { "Cluster" };
    json!({"metadata": {"name": name, "uid": format!("uid-of-{name}")},
        "spec": {"group": of.group, "names": {"plural": of.resource, "kind": of.kind}, "scope": scope}})
}

/// Answers what the agent requests before it writes a custom kind: the definition, its own role, and a review.
fn rights_of_the_agent(received: &Received) -> Option<Reply> {
    let path = received.path();
    let named = path.strip_prefix("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/");
    if let Some(name) = named.filter(|_| received.method == "GET") {
        let found = definitions_of_the_host().into_iter().find(|found| found["metadata"]["name"] == name);
        return found.map(|found| Reply::json(200, &found));
    }
    let is_own_role = path.starts_with("/apis/rbac.authorization.k8s.io/v1/clusterroles/atoll:");
    if is_own_role && received.method == "PATCH" {
        return Some(Reply::json(200, &received.json()));
    }
    let is_review = path == "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews" && received.user().is_none();
    is_review.then(|| Reply::json(201, &json!({"status": {"allowed": true}})))
}

fn namespaces_of_the_host() -> Vec<Value> {
    let own = |cluster: &str, name: &str| {
        let labels = json!({"atoll.dev/virtual-cluster": cluster, "atoll.dev/namespace": name});
        namespace(&format!("{name}-{cluster}"), &labels)
    };
    let root = |cluster: &str| namespace(&format!("atoll-root-{cluster}"), &json!({"atoll.dev/root": cluster}));
    let others = ["default", "kube-system", "kube-node-lease", "operators-ke"].map(|name| namespace(name, &json!({})));
    let ke = ["default", "kube-system", "kube-public", "kube-node-lease", "edge"].map(|name| own("ke", name));
    let hz = ["default", "edge"].map(|name| own("hz", name));
    others.into_iter().chain(ke).chain(hz).chain(["ke", "hz"].map(root)).collect()
}

fn namespace(name: &str, labels: &Value) -> Value {
    json!({
        "kind": "Namespace", "apiVersion": "v1",
        "metadata": {"name": name, "uid": format!("uid-of-{name}"), "resourceVersion": "1", "labels": labels},
        "status": {"phase": "Active"},
    })
}

fn nodes_of_the_host() -> Vec<Value> {
    let node = |name: &str, location: &str| json!({"metadata": {"name": name, "labels": {"location": location}}});
    vec![node("beijing-1", "beijing"), node("hangzhou-1", "hangzhou")]
}

fn roles_of_the_host() -> Vec<Value> {
    let role = |name: &str| {
        let labels = json!({"kubernetes.io/bootstrapping": "rbac-defaults"});
        json!({"metadata": {"name": name, "labels": labels}, "rules": []})
    };
    vec![role("cluster-admin"), role("system:discovery")]
}

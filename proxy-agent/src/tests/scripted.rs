//! An agent whose host follows a script. No loop of the agent runs: it knows the state of the host from the start.

mod audit;
mod classes;
mod known;
mod metrics;
mod newer_namespaces;
mod node_ports;
mod order;
mod refusals;
mod resets;
mod retries;
mod send_queue;
mod unread;
mod upgrades;
mod waits;

use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use ops::drain::Tasks;
use ops::files::Watched;
use rewrite::view::Certificate;
use serde_json::Value;
use test_host::{Expected, Reply, Script, standing};

use super::agent::{Agent, ClientRequest, ClientResponse};
use crate::config::ProxyAgentConfiguration;
use crate::exchange::Services;
use known::Known;
use virtual_cluster::clusters::VirtualClusters;
use virtual_cluster::namespaces::Namespaces;

const CONFIG: &str = "\
apiVersion: atoll.dev/v1alpha1
kind: ProxyAgentConfiguration
servers: [proxy:8091]
identity: {certificate: a.crt, key: a.key, serverCA: s.crt}
host: {kubeconfig: h, unsafeDirectAccess: true}
hub: {memoryMiB: 0}
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
    namespaces: Arc<Namespaces>,
    _tasks: Tasks,
}

/// What the agent does not know, because the host has not said it yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unknown {
    Nothing,
    Namespaces,
    Nodes,
    Roles,
    Definitions,
}

// === impl Scripted ===

impl Scripted {
    /// An agent with two virtual clusters, `ke` and `hz`. The host allows everything that it is asked in reviews.
    pub(super) async fn new() -> Self {
        Self::configured(CONFIG).await
    }

    /// The same with further keys in the configuration.
    pub(super) async fn configured(config: &str) -> Self {
        Self::begin(config, Unknown::Nothing).await
    }

    /// An agent that has just started.
    pub(super) async fn without(unknown: Unknown) -> Self {
        Self::begin(CONFIG, unknown).await
    }

    async fn begin(config: &str, unknown: Unknown) -> Self {
        let config: ProxyAgentConfiguration = ops::config::parse(config, Path::new("c.yaml")).unwrap();
        let (host, tasks) = (Script::new(), Tasks::new());
        host.always(standing::reviews(|_| true))
            .always(standing::paths(&["*"]))
            .always(standing::discovery(&known::RESOURCES));
        let services = Services::new(&config, host.host(), Watched::fixed(Certificate::new("ca")), &tasks).unwrap();
        let (nodes, roles) = (services.clusters.nodes(), services.clusters.roles());
        let (namespaces, definitions) = (services.namespaces.clone(), services.definitions.clone());
        let watch = |of: Unknown, objects: Vec<Value>| Known::all(if of == unknown { None } else { Some(objects) });
        let watched = watch(Unknown::Namespaces, known::namespaces());
        tasks.spawn("namespaces", async move { namespaces.follow(watched).await });
        let watched = watch(Unknown::Nodes, known::nodes());
        tasks.spawn("nodes", async move { nodes.follow(watched).await });
        let watched = watch(Unknown::Roles, known::roles());
        tasks.spawn("roles", async move { roles.follow(watched).await });
        let watched = watch(Unknown::Definitions, known::definitions());
        tasks.spawn("definitions", async move { definitions.follow(watched).await });
        host.always(known::rights_of_the_agent);
        // The host serves no admission policies, and the configuration accepts that.
        host.always(|received| {
            let path = received.path();
            let is_about_policies = path.starts_with("/apis/admissionregistration") || path == "/version";
            is_about_policies
                .then(|| Reply::status(404, "NotFound", "the server could not find the requested resource"))
        });
        let policies = services.admission_policies.clone();
        tasks.spawn("policies", async move { policies.run().await });
        services.admission_policies.first_state().await;
        if unknown != Unknown::Roles {
            services.clusters.roles().synced().await;
        }
        let (clusters, namespaces) = (Arc::clone(&services.clusters), Arc::clone(&services.namespaces));
        let agent = Agent::serve(services).await;
        host.transcript();
        Self { agent, host, clusters, namespaces, _tasks: tasks }
    }

    /// Makes a request for which the host gets exactly one request, besides reviews and discovery.
    pub(super) async fn exchange(&self, request: ClientRequest, expected: Expected, reply: Reply) -> ClientResponse {
        self.host.on(expected, reply);
        self.send(request).await
    }

    /// Makes a request. The host must have got all that it expects.
    pub(super) async fn send(&self, request: ClientRequest) -> ClientResponse {
        let response = self.agent.send(request).await;
        self.host.check();
        response
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

//! An agent whose host is `dev-apiserver`. All loops of the agent run.

mod identities;
mod objects;
mod rbac;
mod shared;
mod shared_watches;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ops::drain::Tasks;
use ops::files::Watched;
use rewrite::view::Certificate;
use serde_json::Value;
use test_host::DevHost;

use super::agent::{Agent, ClientRequest, ClientResponse};
use crate::config::ProxyAgentConfiguration;
use crate::exchange::{Services, Sharing};
use caller::Authorizer;
use host_client::api::{Api, Change, Reflector, Selection};
use virtual_cluster::usage::Usage;

const CONFIG: &str = "\
apiVersion: atoll.dev/v1alpha1
kind: ProxyAgentConfiguration
servers: [proxy:8091]
identity: {certificate: a.crt, key: a.key, serverCA: s.crt}
host: {kubeconfig: h, unsafeDirectAccess: true}
sharedObjects: {writable: [priorityclasses.scheduling.k8s.io]}
virtualClusters:
- {name: ke, nodeSelector: {location: beijing}}
- {name: hz, nodeSelector: {location: hangzhou}}
";

/// An agent and its host.
struct Dev {
    agent: Agent,
    /// A client of the host's operator.
    operator: Api,
    sharing: Option<Arc<Sharing>>,
    authz: Arc<Authorizer>,
    usage: Arc<Usage>,
    _host: DevHost,
    _tasks: Tasks,
}

// === impl Dev ===

impl Dev {
    async fn new() -> Self {
        Self::configured("").await
    }

    /// The same with further keys in the configuration.
    async fn configured(more: &str) -> Self {
        Self::of(&format!("{CONFIG}{more}")).await
    }

    /// The same with these limits for what the cluster `ke` stores.
    async fn limited(shares: &str) -> Self {
        let entry = "{name: ke, nodeSelector: {location: beijing}}";
        Self::of(&CONFIG.replace(entry, &entry.replace("}}", &format!("}}, shares: {shares}}}")))).await
    }

    async fn of(config: &str) -> Self {
        let config: ProxyAgentConfiguration = ops::config::parse(config, Path::new("c.yaml")).unwrap();
        let (dev, tasks) = (DevHost::new(), Tasks::new());
        let host = dev.host("agent", &["system:masters"]);
        let services = Services::new(&config, host.clone(), Watched::fixed(Certificate::new("ca")), &tasks).unwrap();
        crate::app::exchange::start(&services, &Api::new(host), &tasks);
        services.provisioner.provisioned().await;
        let (sharing, usage) = (services.sharing.clone(), Arc::clone(&services.usage));
        let authz = Arc::clone(&services.authz);
        let agent = Agent::serve(services).await;
        let operator = Api::new(dev.host("operator", &["system:masters"]));
        until_administered(&operator).await;
        Self { agent, operator, sharing, authz, usage, _host: dev, _tasks: tasks }
    }

    async fn send(&self, request: ClientRequest) -> ClientResponse {
        self.agent.send(request).await
    }

    /// Waits until the loops of the agent have seen something. The clock must be paused.
    async fn until(&self, is_so: impl Fn() -> bool) {
        for _ in 0..1000 {
            if is_so() {
                return;
            }
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        panic!("the agent does not see it");
    }

    /// The object at a path of the host.
    async fn on_host(&self, path: &str) -> Option<Value> {
        match self.operator.get(path).await {
            Ok(object) => Some(object),
            Err(error) => {
                assert!(error.is_not_found(), "{error}");
                None
            }
        }
    }
}

/// Waits until the administrators have their rights in the initial namespaces, a moment after these exist.
async fn until_administered(operator: &Api) {
    const INITIAL: usize = 4;
    let mut bindings =
        Reflector::new(operator, "/apis/rbac.authorization.k8s.io/v1/rolebindings", Selection::default());
    let mut administered = BTreeSet::new();
    while administered.len() < 2 * INITIAL {
        if let Change::Applied(binding) = bindings.next::<Value>().await
            && binding["metadata"]["name"] == "atoll:crb:cluster-admin"
        {
            administered.insert(binding["metadata"]["namespace"].to_string());
        }
    }
}

/// The names of the objects in a list.
fn names(response: &ClientResponse) -> Vec<Value> {
    response.json()["items"].as_array().into_iter().flatten().map(|item| item["metadata"]["name"].clone()).collect()
}

//! An agent whose host is `dev-apiserver`. All loops of the agent run.

use std::path::Path;

use ops::drain::Tasks;
use ops::files::Watched;
use rewrite::view::Certificate;
use serde_json::{Value, json};
use test_host::DevHost;

use super::agent::{Agent, Answer, Ask};
use crate::config::ProxyAgentConfiguration;
use crate::exchange::Services;
use host_client::api::Api;

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
    _host: DevHost,
    _tasks: Tasks,
}

// === impl Dev ===

impl Dev {
    async fn new() -> Self {
        let config: ProxyAgentConfiguration = ops::config::parse(CONFIG, Path::new("c.yaml")).unwrap();
        let (dev, tasks) = (DevHost::new(), Tasks::new());
        let host = dev.host("agent", &["system:masters"]);
        let services = Services::new(&config, host.clone(), Watched::fixed(Certificate::new("ca"))).unwrap();
        crate::app::exchange::start(&services, &Api::new(host), &tasks);
        services.provisioner.provisioned().await;
        let agent = Agent::serve(services).await;
        Self { agent, _host: dev, _tasks: tasks }
    }

    async fn ask(&self, ask: Ask) -> Answer {
        self.agent.ask(ask).await
    }
}

/// The names of the objects in a list.
fn names(answer: &Answer) -> Vec<Value> {
    answer.json()["items"].as_array().into_iter().flatten().map(|item| item["metadata"]["name"].clone()).collect()
}

#[tokio::test(start_paused = true)]
async fn each_cluster_has_its_own_nodes_and_namespaces() {
    let dev = Dev::new().await;
    for (cluster, nodes) in [("ke", ["beijing-1", "beijing-2"]), ("hz", ["hangzhou-1", "hangzhou-2"])] {
        assert_eq!(names(&dev.ask(Ask::get("/api/v1/nodes").of(cluster)).await.expect(200)), nodes);
        let namespaces = names(&dev.ask(Ask::get("/api/v1/namespaces").of(cluster)).await.expect(200));
        assert_eq!(
            namespaces,
            json!(["default", "kube-node-lease", "kube-public", "kube-system"]).as_array().unwrap()[..]
        );
    }
}

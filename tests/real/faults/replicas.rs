//! Two agents of one identity: whatever one of them did a moment ago, the other one knows.

use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use atoll_tests::{HostCluster, Kubectl, Nodes, Site, eventually, site};
use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::case;

const ENTRY: &str = "{name: shared, agents: [site-r], clientCA: {certificate: clusters/shared/client-ca.crt, \
                     key: clusters/shared/client-ca.key}}";

pub(super) fn trial(host: Option<&Arc<HostCluster>>) -> Trial {
    case("faults::replicas_are_one", host, replicas_are_one)
}

fn replicas_are_one(host: &HostCluster) -> anyhow::Result<()> {
    let site = Site::start(&[ENTRY], &["shared"])?;
    let body = format!(
        "host: {{kubeconfig: {}}}\nvirtualClusters: [{}]",
        host.agent_kubeconfig().display(),
        Nodes::Location("beijing").entry("shared")
    );
    let mut agents = Vec::new();
    for file in ["site-r-1", "site-r-2"] {
        let mut agent = site.agent_as("site-r", file, &body)?;
        agent.printed("tunnel established")?;
        agent.printed("the virtual cluster is provisioned")?;
        agents.push(agent);
    }
    let kubeconfig = site.file("shared.kubeconfig");
    let (config, output) = (site.file("server.yaml").display().to_string(), kubeconfig.display().to_string());
    site::atoll(&["kubeconfig", "shared", "--server-config", &config, "-o", &output])?;
    let kubectl = Kubectl::new(kubeconfig);
    eventually(Duration::from_secs(5), || kubectl.ok(&["get", "secrets", "-n", "default"]).map(drop))?;

    // Requests take turns, so the namespace and what is in it go by different agents.
    fill(&kubectl, 0..40)?;
    agents[0].kill()?;
    eventually(Duration::from_secs(5), || kubectl.ok(&["get", "namespaces", "--request-timeout=2s"]).map(drop))?;
    fill(&kubectl, 40..50)
}

/// Makes namespaces, each with something in it right after.
fn fill(kubectl: &Kubectl, numbers: std::ops::Range<usize>) -> anyhow::Result<()> {
    let items: Vec<Value> = numbers
        .clone()
        .flat_map(|number| {
            let name = format!("replicas-{number}");
            [
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}),
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "first", "namespace": name}}),
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "second", "namespace": name}}),
            ]
        })
        .collect();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string();
    let created = kubectl.ok_with(&["create", "-f", "-", "-o", "name"], &list)?;
    ensure!(created.lines().count() == 3 * numbers.len(), "{created}");
    Ok(())
}

//! A virtual cluster on a real host. A second virtual cluster on the same host has objects with the same names.

use std::time::Duration;

use atoll_tests::compare::{Script, Side};
use atoll_tests::process::Process;
use atoll_tests::site::atoll;
use atoll_tests::{HostCluster, Kubectl, Nodes, Site, eventually};

const AGENT: &str = "site-a";

/// The compared cluster, and its neighbor on the same host.
const CLUSTERS: [(&str, &str); 2] = [("ke-beijing", "beijing"), ("ke-hangzhou", "hangzhou")];

/// Each namespace of the neighbor. The compared cluster must not show any of its objects.
const NEIGHBOR: &str = "\
{apiVersion: v1, kind: Namespace, metadata: {name: NAMESPACE}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: NAMESPACE, labels: {kind: x}}, data: {of: neighbor}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: robot, namespace: NAMESPACE}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: NAMESPACE}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: neighbor}]}
";

/// A proxy-server and an agent with both virtual clusters.
pub(super) struct VirtualCluster {
    kubectl: Kubectl,
    // Dropped before the proxy-server, so that the agent does not try to reconnect.
    _agent: Process,
    _site: Site,
    /// A separate host, because other tests use the same names.
    _host: HostCluster,
}

// === impl VirtualCluster ===

impl VirtualCluster {
    pub(super) fn start(scripts: &[Script]) -> anyhow::Result<Self> {
        let host = HostCluster::up(1)?;
        let entry = |(name, _): (&str, &str)| {
            let files = format!("clusters/{name}/client-ca");
            format!("{{name: {name}, agents: [{AGENT}], clientCA: {{certificate: {files}.crt, key: {files}.key}}}}")
        };
        let [first, second] = CLUSTERS.map(entry);
        let site = Site::start(&[&first, &second], &CLUSTERS.map(|(name, _)| name))?;
        let virtual_clusters = CLUSTERS.map(|(name, at)| Nodes::Location(at).entry(name));
        let body = format!(
            "host: {{kubeconfig: {}}}\nvirtualClusters: [{}]",
            host.agent_kubeconfig().display(),
            virtual_clusters.join(", ")
        );
        let mut agent = site.agent(AGENT, &body)?;
        agent.printed("tunnel established")?;
        let [kubectl, neighbor] = CLUSTERS.map(|(name, _)| administrator(&site, name));
        create_namespaces(&neighbor?, scripts)?;
        let kubectl = kubectl?;
        wait_for_namespaces(&kubectl)?;
        Ok(Self { kubectl, _agent: agent, _site: site, _host: host })
    }

    pub(super) fn side(&self) -> anyhow::Result<Side> {
        Side::new("virtual", &self.kubectl)
    }
}

/// `admin` of `system:masters`, through the HTTP proxy.
fn administrator(site: &Site, cluster: &str) -> anyhow::Result<Kubectl> {
    let path = |path: std::path::PathBuf| path.display().to_string();
    let output = site.file(&format!("{cluster}.kubeconfig"));
    let config = path(site.file("server.yaml"));
    atoll(&["kubeconfig", cluster, "--admin", "--server-config", &config, "-o", &path(output.clone())])?;
    Ok(Kubectl::new(output))
}

/// Waits for the initial namespaces, and for the objects that controllers create in them.
pub(super) fn wait_for_namespaces(kubectl: &Kubectl) -> anyhow::Result<()> {
    let what = ["get", "-n", "default", "sa/default", "cm/kube-root-ca.crt"];
    eventually(Duration::from_secs(30), || kubectl.ok(&what))?;
    Ok(())
}

/// Creates the namespaces of all scripts in the neighbor.
pub(super) fn create_namespaces(neighbor: &Kubectl, scripts: &[Script]) -> anyhow::Result<()> {
    eventually(Duration::from_secs(30), || neighbor.ok(&["get", "namespaces"]))?;
    let namespaces = scripts.iter().flat_map(|script| &script.namespaces);
    let manifests: Vec<_> = namespaces.map(|namespace| NEIGHBOR.replace("NAMESPACE", namespace)).collect();
    neighbor.ok_with(&["create", "-f", "-"], &manifests.join("---\n"))?;
    Ok(())
}

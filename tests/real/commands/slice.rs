//! A virtual cluster to compare with, beside another one whose objects have the same names.

use std::time::Duration;

use atoll_tests::compare::{Script, Side};
use atoll_tests::process::Process;
use atoll_tests::site::atoll;
use atoll_tests::{HostCluster, Kubectl, Nodes, Site, eventually};

const AGENT: &str = "site-a";

/// The one that is compared, and its neighbour on the same host.
const CLUSTERS: [(&str, &str); 2] = [("ke-beijing", "beijing"), ("ke-hangzhou", "hangzhou")];

/// What each namespace of the neighbour is and holds. Nothing of it may ever show.
const NEIGHBOUR: &str = "\
{apiVersion: v1, kind: Namespace, metadata: {name: NAMESPACE}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: NAMESPACE, labels: {kind: x}}, data: {of: neighbour}}
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
    spec: {containers: [{name: web, image: neighbour}]}
";

/// A proxy-server and an agent with both virtual clusters.
pub(super) struct Slice {
    kubectl: Kubectl,
    // Before the proxy-server: an agent that is told to end does not look for it again.
    _agent: Process,
    _site: Site,
    /// Of its own: the scripts use names that other trials use too.
    _host: HostCluster,
}

// === impl Slice ===

impl Slice {
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
        let [kubectl, neighbour] = CLUSTERS.map(|(name, _)| administrator(&site, name));
        furnish(&neighbour?, scripts)?;
        let kubectl = kubectl?;
        founded(&kubectl)?;
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
    atoll(&["kubeconfig", cluster, "--server-config", &config, "-o", &path(output.clone())])?;
    Ok(Kubectl::new(output))
}

/// Waits for the namespaces that exist from the start, with what controllers put into a new one.
pub(super) fn founded(kubectl: &Kubectl) -> anyhow::Result<()> {
    let what = ["get", "-n", "default", "sa/default", "cm/kube-root-ca.crt"];
    eventually(Duration::from_secs(30), || kubectl.ok(&what))?;
    Ok(())
}

/// Gives the neighbour the namespaces of all scripts.
pub(super) fn furnish(neighbour: &Kubectl, scripts: &[Script]) -> anyhow::Result<()> {
    eventually(Duration::from_secs(30), || neighbour.ok(&["get", "namespaces"]))?;
    let namespaces = scripts.iter().flat_map(|script| &script.namespaces);
    let manifests: Vec<_> = namespaces.map(|namespace| NEIGHBOUR.replace("NAMESPACE", namespace)).collect();
    neighbour.ok_with(&["create", "-f", "-"], &manifests.join("---\n"))?;
    Ok(())
}

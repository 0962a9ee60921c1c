//! A host, a proxy-server, and an agent that serves VirtualClusters.

use std::time::Duration;

use anyhow::{Context, ensure};
use atoll_tests::process::Process;
use atoll_tests::site::Ports;
use atoll_tests::{HostCluster, Kubectl, Site, eventually, paths, site};

pub(super) const AGENT: &str = "site-d";
/// The time limit until a change is in force.
pub(super) const IN_FORCE: Duration = Duration::from_secs(60);

pub(super) struct World {
    // Dropped in this order, so that no process uses one that has ended.
    pub(super) agent: Process,
    pub(super) site: Site,
    pub(super) host: HostCluster,
    body: String,
}

// === impl World ===

impl World {
    /// `clusters` are those of the proxy-server's configuration, and `body` is more of the agent's configuration.
    pub(super) fn start(clusters: &[&str], body: &str) -> anyhow::Result<Self> {
        let host = HostCluster::up(1)?;
        define(&host)?;
        let entries: Vec<_> = clusters.iter().map(|name| site::entry(name, AGENT)).collect();
        let site = Site::start(&entries.iter().map(String::as_str).collect::<Vec<_>>(), clusters)?;
        Self::start_on(host, site, body)
    }

    /// The agent adds its clusters to the proxy-server by itself, and gets kubeconfigs for them that are valid for a minute.
    pub(super) fn granted(body: &str) -> anyhow::Result<Self> {
        let host = HostCluster::up(1)?;
        define(&host)?;
        let ports = Ports::free();
        let kubeconfigs =
            format!("{{through: endpoint, url: 'https://127.0.0.1:{}', certificateLifetime: 1m}}", ports.endpoint);
        let keys = format!(
            "grants: {{directory: added, agents: [{{id: {AGENT}, names: ['*'], kubeconfigs: true}}], kubeconfigs: {kubeconfigs}}}"
        );
        let site = Site::start_on(ports, &[], &[], &keys)?;
        Self::start_on(host, site, body)
    }

    fn start_on(host: HostCluster, site: Site, body: &str) -> anyhow::Result<Self> {
        let kubeconfig = host.agent_kubeconfig();
        let body = format!(
            "host: {{kubeconfig: {}}}\nwatchVirtualClusters: true\nvirtualClusterDeletionDelay: 1s\n{body}",
            kubeconfig.display()
        );
        let mut agent = site.agent(AGENT, &body)?;
        agent.printed("tunnel established")?;
        Ok(Self { agent, site, host, body })
    }

    /// Ends the agent, does something, and starts another one.
    pub(super) fn without_agent(&mut self, act: impl FnOnce(&Self) -> anyhow::Result<()>) -> anyhow::Result<()> {
        let status = self.agent.interrupt()?;
        ensure!(status.success(), "{status}");
        act(self)?;
        self.agent = self.site.agent(AGENT, &self.body)?;
        Ok(())
    }

    /// kubectl of the host's administrator.
    pub(super) fn kubectl(&self) -> Kubectl {
        self.host.kubectl()
    }

    pub(super) fn apply(&self, name: &str, spec: &str) -> anyhow::Result<()> {
        self.kubectl().ok_with(&["apply", "-f", "-"], &object(name, spec)).map(drop)
    }

    /// Waits until the condition Ready of an object has this reason. Returns its message.
    pub(super) fn until_ready_is(&self, name: &str, expected: &str) -> anyhow::Result<String> {
        let ready = |field: &str| {
            let path = format!("jsonpath={{.status.conditions[?(@.type==\"Ready\")].{field}}}");
            self.kubectl().ok(&["get", "virtualcluster", name, "-o", &path])
        };
        eventually(IN_FORCE, || {
            let (reason, message) = (ready("reason")?, ready("message")?);
            ensure!(reason == expected, "{name}: {reason}: {message}\n{}", self.agent.log());
            Ok(message)
        })
    }

    /// The names of the host's namespaces of a virtual cluster, without its root namespace.
    pub(super) fn namespaces(&self, cluster: &str) -> anyhow::Result<Vec<String>> {
        let label = format!("atoll.dev/virtual-cluster={cluster}");
        let names = self.kubectl().ok(&["get", "namespaces", "-l", &label, "-o", "name"])?;
        Ok(names.lines().map(str::to_owned).collect())
    }
}

/// A VirtualCluster.
pub(super) fn object(name: &str, spec: &str) -> String {
    format!("apiVersion: atoll.dev/v1alpha1\nkind: VirtualCluster\nmetadata: {{name: {name}}}\nspec: {spec}\n")
}

/// Defines the kind.
pub(super) fn define(host: &HostCluster) -> anyhow::Result<()> {
    let file = paths::workspace().join("configs/kubernetes/virtual-clusters.yaml");
    let file = file.to_str().context("the path is UTF-8")?;
    host.kubectl().ok(&["apply", "--server-side", "-f", file])?;
    let definitions = ["crd/virtualclusters.atoll.dev", "crd/virtualclustersets.atoll.dev"];
    host.kubectl().ok(&[&["wait", "--for=condition=Established", "--timeout=30s"], &definitions[..]].concat()).map(drop)
}

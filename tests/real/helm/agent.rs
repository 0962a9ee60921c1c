//! An agent outside of a pod, with the configuration and the service account of the release. The host runs no containers.

use std::fs;

use anyhow::{Context, ensure};
use atoll_tests::kubectl::CONDITION_TIMEOUT;
use atoll_tests::process::Process;
use atoll_tests::{HostCluster, Site, eventually, paths, site};

use super::{Admin, text};

/// A kind without namespaces that a virtual cluster creates.
pub(super) const DEFINITION: &str = "buoys.helm.example.com";

/// The definition, an object of its kind, and a ClusterRole.
const OBJECTS: [&str; 3] = [
    r#"{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "buoys.helm.example.com"}, "spec": {"group": "helm.example.com", "scope": "Cluster",
        "names": {"plural": "buoys", "singular": "buoy", "kind": "Buoy", "listKind": "BuoyList"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}}"#,
    r#"{"apiVersion": "helm.example.com/v1", "kind": "Buoy", "metadata": {"name": "north"}}"#,
    r#"{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "buoys"},
        "rules": [{"apiGroups": ["helm.example.com"], "resources": ["buoys"], "verbs": ["get"]}]}"#,
];

/// The agent, and the proxy-server to which it connects.
pub(super) struct Agent {
    process: Option<Process>,
    site: Site,
}

// === impl Agent ===

impl Agent {
    /// Starts the proxy-server, and creates the certificates.
    pub(super) fn prepare(clusters: &[&str]) -> anyhow::Result<Self> {
        let entries: Vec<_> = clusters.iter().map(|cluster| site::entry(cluster, "site-a")).collect();
        let entries: Vec<_> = entries.iter().map(String::as_str).collect();
        let site = Site::start(&entries, clusters)?;
        site::atoll(&["certs", "agent", "site-a", "--dir", text(site.dir())?])?;
        // The names in the Secret.
        for (file, key) in [("agents/site-a.crt", "agent.crt"), ("agents/site-a.key", "agent.key")] {
            fs::copy(site.file(file), site.file(key))?;
        }
        Ok(Self { process: None, site })
    }

    /// A file of values for this machine, without virtual clusters.
    pub(super) fn values(&self) -> anyhow::Result<String> {
        let file = self.site.file("values.yaml");
        let [probes, admin] = [paths::free_port(), paths::free_port()];
        let config = format!(
            "proxyAgent:\n  config:\n    servers: ['127.0.0.1:{}']\n    drain: 2s\n    \
             listeners: {{probes: '127.0.0.1:{probes}', admin: '127.0.0.1:{admin}', metrics: null}}\n",
            self.site.ports.agents
        );
        fs::write(&file, config)?;
        Ok(text(&file)?.to_owned())
    }

    pub(super) fn start(&mut self, admin: &Admin, host: &HostCluster) -> anyhow::Result<()> {
        fs::copy(admin.agent_kubeconfig(host)?, self.site.file("host.kubeconfig"))?;
        self.write(admin)?;
        let (file, log) = (self.site.file("proxy-agent.yaml"), self.site.file("proxy-agent.log"));
        let arguments = ["--config", text(&file)?];
        let mut process = Process::start("proxy-agent", &paths::binary("proxy-agent"), &arguments, log)?;
        process.printed("tunnel established")?;
        process.printed("the virtual cluster is provisioned cluster=ke-beijing\n")?;
        self.process = Some(process);
        Ok(())
    }

    /// Does what a kubelet does after a change of the ConfigMap.
    pub(super) fn reload(&mut self, admin: &Admin) -> anyhow::Result<()> {
        self.write(admin)?;
        let process = self.process.as_mut().context("the agent is not running")?;
        process.printed("the virtual cluster is provisioned cluster=ke-hangzhou\n")
    }

    fn write(&self, admin: &Admin) -> anyhow::Result<()> {
        let config = admin.agent_config()?;
        ensure!(config.contains("inCluster: true"), "{config}");
        let config = config.replace("inCluster: true", "kubeconfig: host.kubeconfig");
        Ok(fs::write(self.site.file("proxy-agent.yaml"), config)?)
    }

    /// Creates objects in a virtual cluster, so that the agent creates objects on the host.
    pub(super) fn use_cluster(&self, cluster: &str) -> anyhow::Result<()> {
        let kubectl = self.site.administrator(cluster)?;
        eventually(CONDITION_TIMEOUT, || kubectl.ok(&["create", "namespace", "edge"]))?;
        for object in OBJECTS {
            eventually(CONDITION_TIMEOUT, || kubectl.ok_with(&["create", "-f", "-"], object))?;
        }
        Ok(())
    }

    pub(super) fn end(mut self) -> anyhow::Result<()> {
        let process = self.process.as_mut().context("the agent is not running")?;
        let status = process.terminate()?;
        ensure!(status.success(), "{status}: {}", process.log());
        Ok(())
    }
}

//! A real host cluster, started by `tests/kube/up`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, bail};
use serde_json::json;
use tempfile::TempDir;

use crate::{Balancer, Kubectl, paths};

/// A host cluster. It ends when the handle is dropped, or when this process ends.
#[derive(Debug)]
pub struct HostCluster {
    dir: PathBuf,
    kubeconfigs: AtomicUsize,
    _parent: TempDir,
}

/// The nodes of a virtual cluster. If all hosts are those of `KubeEdge`, a location also selects the `NodeGroup` of the
/// same name, and pods tolerate the taint of edge nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nodes {
    /// The nodes with this value of the label `location`.
    Location(&'static str),
    /// The nodes of this `NodeGroup`, on a host with `KubeEdge`.
    Group(&'static str),
}

/// The label of the nodes of a `NodeGroup`.
const GROUP: &str = "apps.kubeedge.io/belonging-to";

/// The environment variable that selects the kind of hosts. With `kubeedge`, all suites run on hosts with `KubeEdge`.
const HOST_VARIABLE: &str = "ATOLL_TEST_HOST";

/// Whether all hosts of this run are those of `KubeEdge`.
pub fn everywhere_kubeedge() -> bool {
    match std::env::var(HOST_VARIABLE).as_deref() {
        Err(_) | Ok("") => false,
        Ok("kubeedge") => true,
        Ok(other) => panic!("{HOST_VARIABLE}={other} is invalid; the only value is `kubeedge`"),
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

// === impl Nodes ===

impl Nodes {
    /// An entry of the agent's `virtualClusters`.
    pub fn entry(self, cluster: &str) -> String {
        // Edge nodes have this taint.
        let tolerations = "tolerations: [{key: node-role.kubernetes.io/edge, operator: Exists, effect: NoSchedule}]";
        match self {
            Self::Location(location) if everywhere_kubeedge() => {
                let nodes = format!("nodeSelector: {{location: {location}}}, nodeGroup: {location}");
                format!("{{name: {cluster}, {nodes}, {tolerations}}}")
            }
            Self::Location(location) => format!("{{name: {cluster}, nodeSelector: {{location: {location}}}}}"),
            Self::Group(group) => format!("{{name: {cluster}, nodeGroup: {group}, {tolerations}}}"),
        }
    }

    /// The node selector of all pods of such a cluster on the host.
    pub fn selector(self) -> BTreeMap<&'static str, &'static str> {
        match self {
            Self::Location(location) if everywhere_kubeedge() => [("location", location), (GROUP, location)].into(),
            Self::Location(location) => [("location", location)].into(),
            Self::Group(group) => [(GROUP, group)].into(),
        }
    }
}

// === impl HostCluster ===

impl HostCluster {
    /// Starts a host that may use all processors, for a measurement beside which nothing else runs.
    pub fn up_alone() -> anyhow::Result<Self> {
        Self::start_on(cores(), &[])
    }

    /// Starts a host with this number of API servers.
    pub fn up(api_servers: u32) -> anyhow::Result<Self> {
        Self::start(&["--apiservers", &api_servers.to_string()])
    }

    /// Starts a host whose API server has these additional flags.
    pub fn up_with(flags: &[&str]) -> anyhow::Result<Self> {
        let flags: Vec<_> = flags.iter().map(|flag| format!("--apiserver-flag={flag}")).collect();
        Self::start(&flags.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Starts a host with two API servers behind a load balancer. The agent connects to the load balancer. The API
    /// servers close connections at random (`--goaway-chance`), so that requests reach both.
    pub fn up_balanced() -> anyhow::Result<(Self, Balancer)> {
        let host = Self::start(&["--apiservers=2", "--apiserver-flag=--goaway-chance=0.02"])?;
        let balancer = host.balance()?;
        Ok((host, balancer))
    }

    /// Puts a load balancer between the agent and the API servers.
    pub fn balance(&self) -> anyhow::Result<Balancer> {
        let servers = self.api_servers()?;
        let first = servers.first().context("no API server")?.clone();
        let balancer = Balancer::start(servers)?;
        let kubeconfig = std::fs::read_to_string(self.agent_kubeconfig())?;
        std::fs::write(self.agent_kubeconfig(), kubeconfig.replace(&first, &balancer.address()))?;
        Ok(balancer)
    }

    /// Starts a host and a Karmada control plane. See [`crate::Karmada::beside`].
    pub fn up_with_karmada() -> anyhow::Result<Self> {
        Self::start(&["--karmada"])
    }

    /// Starts a host with edge nodes, as `KubeEdge` has them. Its virtual clusters use [`Nodes::Group`].
    pub fn up_with_edge_nodes() -> anyhow::Result<Self> {
        Self::start(&["--edge-nodes"])
    }

    /// Starts a host with half of the processors. Several hosts run at the same time, and each has six Go programs, whose
    /// threads look for work.
    fn start(options: &[&str]) -> anyhow::Result<Self> {
        Self::start_on(cores().div_ceil(2), options)
    }

    /// Starts a host whose programs use this number of processors each.
    fn start_on(processors: usize, options: &[&str]) -> anyhow::Result<Self> {
        let parent = tempfile::Builder::new().prefix("atoll-host-").tempdir()?;
        let dir = parent.path().join("host");
        let owner = std::process::id().to_string();
        let output = Command::new(paths::workspace().join("tests/kube/up"))
            .arg(&dir)
            .args(["--owner", &owner])
            .args(options)
            .args(everywhere_kubeedge().then_some("--kubeedge"))
            .env("GOMAXPROCS", processors.to_string())
            .output()
            .context("cannot run tests/kube/up")?;
        if !output.status.success() {
            bail!(
                "tests/kube/up failed:\n{}{}",
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            );
        }
        Ok(Self { dir, kubeconfigs: AtomicUsize::new(0), _parent: parent })
    }

    /// The directory with its files.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Adds nodes with these labels, and waits until they are ready. kwok simulates them.
    pub fn create_nodes(&self, nodes: &[(String, BTreeMap<&str, String>)]) -> anyhow::Result<()> {
        let nodes = nodes.iter().enumerate().map(|(number, (name, labels))| {
            let cidr = format!("10.{}.{}.0/24", 100 + number / 256, number % 256);
            let mut labels = labels.clone();
            labels.insert("kubernetes.io/hostname", name.clone());
            json!({
                "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
                "spec": {"podCIDR": cidr, "podCIDRs": [cidr]},
            })
        });
        let list = json!({"apiVersion": "v1", "kind": "List", "items": nodes.collect::<Vec<_>>()});
        let kubectl = self.kubectl();
        kubectl.ok_with(&["create", "-f", "-"], &list.to_string())?;
        kubectl.ok(&["wait", "--for=condition=Ready", "nodes", "--all", "--timeout=60s"]).map(drop)
    }

    /// kubectl as the host's administrator.
    pub fn kubectl(&self) -> Kubectl {
        Kubectl::new(self.dir.join("host.kubeconfig"))
    }

    /// kubectl with this token, directly at the API server.
    pub fn with_token(&self, token: &str) -> anyhow::Result<Kubectl> {
        let file = self.dir.join(format!("{}.kubeconfig", self.kubeconfigs.fetch_add(1, Ordering::Relaxed)));
        self.kubectl().with_token(token, file)
    }

    /// The bearer token of a user that is not a service account. `tests/kube/up --help` lists these users.
    pub fn token_of(&self, user: &str) -> anyhow::Result<String> {
        let tokens = std::fs::read_to_string(self.dir.join("tokens.csv"))?;
        let mut rows = tokens.lines().filter_map(|row| row.split_once(','));
        let row = rows.find(|(_, rest)| rest.split(',').next() == Some(user));
        row.map(|(token, _)| token.to_owned()).with_context(|| format!("{user} has no token"))
    }

    /// The kubeconfig of the agent.
    pub fn agent_kubeconfig(&self) -> PathBuf {
        self.dir.join("agent.kubeconfig")
    }

    /// Kills a component. `pids` has its name.
    pub fn kill(&self, component: &str) -> anyhow::Result<()> {
        let mut command = Command::new(paths::workspace().join("tests/kube/down"));
        let output = command.arg(&self.dir).args(["--only", component, "--kill"]).output()?;
        if !output.status.success() {
            bail!("tests/kube/down --only {component} failed:\n{}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(())
    }

    /// `host:port` of each API server.
    pub fn api_servers(&self) -> anyhow::Result<Vec<String>> {
        let text = std::fs::read_to_string(self.dir.join("apiservers"))?;
        Ok(text.lines().map(|line| line.trim().trim_start_matches("https://").to_owned()).collect())
    }
}

impl Drop for HostCluster {
    fn drop(&mut self) {
        let _ = Command::new(paths::workspace().join("tests/kube/down")).arg(&self.dir).output();
    }
}

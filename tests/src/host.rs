//! A real host cluster, by `tests/kube/up`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, bail};
use tempfile::TempDir;

use crate::{Balancer, Kubectl, paths};

/// A host cluster, ended with its handle, or with this process.
#[derive(Debug)]
pub struct HostCluster {
    dir: PathBuf,
    holders: AtomicUsize,
    _parent: TempDir,
}

/// Which nodes of a host are of a virtual cluster. Where every host is one of `KubeEdge`, so is every location: the group of
/// that name is asked for too, and the taint of the edge tolerated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nodes {
    /// Those of this `location`.
    Location(&'static str),
    /// Those of this `NodeGroup`, on a host of `KubeEdge`.
    Group(&'static str),
}

const KUBEEDGE: &str = "--kubeedge";

/// The label of the nodes of a `NodeGroup`.
const GROUP: &str = "apps.kubeedge.io/belonging-to";

/// The name of a variable: `kubeedge` there lets all suites run on such a host.
const HOST: &str = "ATOLL_TEST_HOST";

/// Whether every host of this run is one as `KubeEdge` has it.
pub fn everywhere_kubeedge() -> bool {
    match std::env::var(HOST).as_deref() {
        Err(_) | Ok("") => false,
        Ok("kubeedge") => true,
        Ok(other) => panic!("{HOST}={other} is unknown; there is only `kubeedge`"),
    }
}

// === impl Nodes ===

impl Nodes {
    /// An entry of the agent's `virtualClusters`.
    pub fn entry(self, cluster: &str) -> String {
        // Nodes of the edge have a taint, whichever way they were chosen.
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

    /// The node selector that the host has in every template of such a cluster.
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
    /// Starts one with so many API servers.
    pub fn up(api_servers: u32) -> anyhow::Result<Self> {
        Self::start(&["--apiservers", &api_servers.to_string()])
    }

    /// Starts one whose API server has these flags too.
    pub fn up_with(flags: &[&str]) -> anyhow::Result<Self> {
        let flags: Vec<_> = flags.iter().map(|flag| format!("--apiserver-flag={flag}")).collect();
        Self::start(&flags.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Starts one with two API servers behind a load balancer, where the agent finds them. They end connections at random,
    /// as API servers behind load balancers are told to, so that requests go now to one and now to the other.
    pub fn up_balanced() -> anyhow::Result<(Self, Balancer)> {
        let host = Self::start(&["--apiservers=2", "--apiserver-flag=--goaway-chance=0.02"])?;
        let servers = host.api_servers()?;
        let first = servers.first().context("no API server")?.clone();
        let balancer = Balancer::start(servers)?;
        let kubeconfig = std::fs::read_to_string(host.agent_kubeconfig())?;
        std::fs::write(host.agent_kubeconfig(), kubeconfig.replace(&first, &balancer.address()))?;
        Ok((host, balancer))
    }

    /// Starts one, and a Karmada control plane beside it: see [`crate::Karmada::beside`].
    pub fn up_with_karmada() -> anyhow::Result<Self> {
        Self::start(&["--karmada"])
    }

    /// Starts one as `KubeEdge` has it: an older Kubernetes, and nodes of the edge. Slices of it are [`Nodes::Group`].
    pub fn up_with_kubeedge() -> anyhow::Result<Self> {
        Self::start(&[KUBEEDGE])
    }

    fn start(options: &[&str]) -> anyhow::Result<Self> {
        let parent = tempfile::Builder::new().prefix("atoll-host-").tempdir()?;
        let dir = parent.path().join("host");
        let owner = std::process::id().to_string();
        let output = Command::new(paths::workspace().join("tests/kube/up"))
            .arg(&dir)
            .args(["--owner", &owner])
            .args(options)
            .args((everywhere_kubeedge() && !options.contains(&KUBEEDGE)).then_some(KUBEEDGE))
            .output()
            .context("cannot run tests/kube/up")?;
        if !output.status.success() {
            bail!(
                "tests/kube/up failed:\n{}{}",
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            );
        }
        Ok(Self { dir, holders: AtomicUsize::new(0), _parent: parent })
    }

    /// The folder with its files.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// kubectl as the host's administrator.
    pub fn kubectl(&self) -> Kubectl {
        Kubectl::new(self.dir.join("host.kubeconfig"))
    }

    /// kubectl with this token, directly at the API server.
    pub fn holder(&self, token: &str) -> anyhow::Result<Kubectl> {
        let file = self.dir.join(format!("{}.kubeconfig", self.holders.fetch_add(1, Ordering::Relaxed)));
        self.kubectl().holding(token, file)
    }

    /// The bearer token of a user who is no service account: `tests/kube/up --help` lists them.
    pub fn token_of(&self, user: &str) -> anyhow::Result<String> {
        let tokens = std::fs::read_to_string(self.dir.join("tokens.csv"))?;
        let mut rows = tokens.lines().filter_map(|row| row.split_once(','));
        let row = rows.find(|(_, rest)| rest.split(',').next() == Some(user));
        row.map(|(token, _)| token.to_owned()).with_context(|| format!("{user} has no token"))
    }

    /// The agent's credentials.
    pub fn agent_kubeconfig(&self) -> PathBuf {
        self.dir.join("agent.kubeconfig")
    }

    /// Ends one component at once, by its name in `pids`.
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

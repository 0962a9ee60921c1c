//! A proxy-server and its agents, with the files that an operator writes.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use tempfile::TempDir;

use crate::process::Process;
use crate::{Kubectl, paths};

/// If this environment variable is `0`, agents share no watches (`hub` in their configuration).
const HUB: &str = "ATOLL_TEST_HUB";

/// If this environment variable is `1`, agents connect to one proxy-server, and clients to another one.
const PEERS: &str = "ATOLL_TEST_PEERS";

/// A proxy-server with its files. Its methods start agents.
#[derive(Debug)]
pub struct Site {
    /// The proxy-server.
    pub server: Process,
    /// Its ports. If clients and agents connect to different proxy-servers, that of agents is the port of the other one.
    pub ports: Ports,
    replicas: Vec<u16>,
    /// The proxy-server of agents, if it is another one.
    other: Option<Replica>,
    dir: TempDir,
}

/// Another proxy-server with the same configuration, except for its ports.
#[derive(Debug)]
pub struct Replica {
    /// The process.
    pub server: Process,
    /// Its ports.
    pub ports: Ports,
    /// The ports of the first proxy-server.
    pub first: Ports,
    file: PathBuf,
}

/// Ports of one proxy-server.
#[derive(Clone, Copy, Debug)]
pub struct Ports {
    /// The HTTP proxy for clients.
    pub proxy: u16,
    /// The endpoints for clients.
    pub endpoint: u16,
    /// The tunnels of agents.
    pub agents: u16,
    /// The probes.
    pub probes: u16,
    /// The metrics and the status.
    pub admin: u16,
    /// The metrics for Prometheus, if it scrapes this site.
    pub metrics: Option<u16>,
}

// === impl Site ===

impl Site {
    /// Creates certificates with `atoll certs`, writes the configuration, and starts a proxy-server. `clusters` are the
    /// entries of `clusters`, one line each. `virtuals` are the clusters that get client CAs.
    pub fn start(clusters: &[&str], virtuals: &[&str]) -> anyhow::Result<Self> {
        Self::start_with(clusters, virtuals, "")
    }

    /// Like [`Site::start`], with more keys in the configuration, one line each.
    pub fn start_with(clusters: &[&str], virtuals: &[&str], keys: &str) -> anyhow::Result<Self> {
        if std::env::var(PEERS).is_ok_and(|value| value == "1") {
            return Self::start_pair(clusters, virtuals, keys);
        }
        Self::start_on(Ports::free(), clusters, virtuals, keys)
    }

    /// Two proxy-servers that forward requests to each other: one for clients, and one for agents.
    pub fn start_pair(clusters: &[&str], virtuals: &[&str], keys: &str) -> anyhow::Result<Self> {
        Self::start_pair_on([Ports::free(), Ports::free()], clusters, virtuals, keys)
    }

    /// Like [`Site::start_pair`]. All processes have listeners for Prometheus.
    pub fn start_scraped(clusters: &[&str], virtuals: &[&str], keys: &str) -> anyhow::Result<Self> {
        Self::start_pair_on([Ports::scraped(), Ports::scraped()], clusters, virtuals, keys)
    }

    fn start_pair_on(
        [ports, others]: [Ports; 2],
        clusters: &[&str],
        virtuals: &[&str],
        keys: &str,
    ) -> anyhow::Result<Self> {
        let keys = format!(
            "{keys}\npeers: {{servers: [\"127.0.0.1:{}\", \"127.0.0.1:{}\"], identity: {{certificate: {PEER}.crt, key: {PEER}.key}}}}",
            ports.agents, others.agents
        );
        let mut site = Self::start_on(ports, clusters, virtuals, &keys)?;
        site.other = Some(site.replica_on(others)?);
        // Agents connect only to the other one, unless a test gives them addresses.
        site.replicas.clear();
        site.ports.agents = others.agents;
        Ok(site)
    }

    /// Like [`Site::start_with`], on these ports.
    pub fn start_on(ports: Ports, clusters: &[&str], virtuals: &[&str], keys: &str) -> anyhow::Result<Self> {
        let dir = tempfile::Builder::new().prefix("atoll-site-").tempdir()?;
        atoll(&["certs", "init", path(dir.path())])?;
        for cluster in virtuals {
            atoll(&["certs", "cluster", cluster, "--dir", path(dir.path())])?;
        }
        if keys.contains(PEER) {
            atoll(&["certs", "agent", "proxy-servers", "--dir", path(dir.path())])?;
        }
        let drain = if keys.contains("drain:") { "" } else { "drain: 2s" };
        let mut yaml = format!(
            "apiVersion: atoll.dev/v1alpha1\n\
             kind: ProxyServerConfiguration\n\
             listeners: {}\n\
             servingCA: {{certificate: serving-ca.crt, key: serving-ca.key}}\n\
             agentCA: {{certificate: agent-ca.crt, key: agent-ca.key}}\n\
             revocations: revocations.yaml\n\
             {drain}\n\
             {keys}\n\
             clusters:\n",
            ports.listeners()
        );
        for cluster in clusters {
            writeln!(yaml, "- {cluster}")?;
        }
        std::fs::write(dir.path().join("server.yaml"), yaml)?;
        let server = start_server(&dir.path().join("server.yaml"))?;
        Ok(Self { server, ports, replicas: Vec::new(), other: None, dir })
    }

    /// The proxy-server of agents of [`Site::start_pair`].
    pub fn other(&mut self) -> anyhow::Result<&mut Replica> {
        self.other.as_mut().context("there is no other proxy-server")
    }

    /// Starts another proxy-server with the current configuration. Agents that are started later connect to both.
    pub fn replica(&mut self) -> anyhow::Result<Replica> {
        self.replica_on(Ports::free())
    }

    fn replica_on(&mut self, ports: Ports) -> anyhow::Result<Replica> {
        let file = self.file("replica.yaml");
        write_replica(&file, &std::fs::read_to_string(self.file("server.yaml"))?, self.ports, ports)?;
        let server = start_server(&file)?;
        self.replicas.push(ports.agents);
        Ok(Replica { server, ports, first: self.ports, file })
    }

    /// Starts the proxy-server again, with the same files.
    pub fn restart_server(&mut self) -> anyhow::Result<()> {
        self.server = start_server(&self.file("server.yaml"))?;
        Ok(())
    }

    /// Starts an agent with the identity `id`. `body` is the rest of its configuration. The agent
    /// drains for two seconds unless `body` has `drain`.
    pub fn agent(&self, id: &str, body: &str) -> anyhow::Result<Process> {
        self.agent_as(id, id, body)
    }

    /// Like [`Site::agent`], with a different name for its files, for several agents with the same identity.
    pub fn agent_as(&self, id: &str, file: &str, body: &str) -> anyhow::Result<Process> {
        let servers = std::iter::once(&self.ports.agents).chain(&self.replicas);
        let servers: Vec<_> = servers.map(|port| format!("127.0.0.1:{port}")).collect();
        self.agent_of(&servers, id, file, body)
    }

    /// Like [`Site::agent_as`], with these addresses of proxy-servers.
    pub fn agent_of(&self, servers: &[String], id: &str, file: &str, body: &str) -> anyhow::Result<Process> {
        self.agent_in(&[], servers, id, file, body)
    }

    /// Like [`Site::agent_of`], with these environment variables.
    pub fn agent_in(
        &self,
        variables: &[(&str, &str)],
        servers: &[String],
        id: &str,
        file: &str,
        body: &str,
    ) -> anyhow::Result<Process> {
        let dir = self.dir.path();
        if !dir.join(format!("agents/{id}.crt")).exists() {
            atoll(&["certs", "agent", id, "--dir", path(dir)])?;
        }
        let drain = if body.contains("drain:") { "" } else { "drain: 2s" };
        let metrics = self.ports.metrics.map(|_| format!("metrics: 127.0.0.1:{}, ", paths::free_port()));
        let metrics = metrics.unwrap_or_default();
        let hub = if shares_watches() || body.contains("hub:") { "" } else { "hub: {memoryMiB: 0}" };
        let yaml = format!(
            "apiVersion: atoll.dev/v1alpha1\n\
             kind: ProxyAgentConfiguration\n\
             servers: [{}]\n\
             identity: {{certificate: agents/{id}.crt, key: agents/{id}.key, serverCA: serving-ca.crt}}\n\
             listeners: {{probes: 127.0.0.1:{}, {metrics}admin: 127.0.0.1:{}}}\n\
             {drain}\n\
             {hub}\n\
             {body}\n",
            servers.join(", "),
            paths::free_port(),
            paths::free_port(),
        );
        let config = dir.join(format!("{file}.yaml"));
        std::fs::write(&config, yaml)?;
        let log = dir.join(format!("{file}.log"));
        Process::start_with(file, &paths::binary("proxy-agent"), &["--config", path(&config)], log, variables)
    }

    /// kubectl as `admin` of `system:masters` of a virtual cluster.
    pub fn administrator(&self, cluster: &str) -> anyhow::Result<Kubectl> {
        let kubeconfig = self.file(&format!("{cluster}.kubeconfig"));
        let config = self.file("server.yaml");
        atoll(&["kubeconfig", cluster, "--admin", "--server-config", path(&config), "-o", path(&kubeconfig)])?;
        Ok(Kubectl::new(kubeconfig))
    }

    /// The URL of the admin listener of an agent. `file` is the name of its files.
    pub fn admin(&self, file: &str) -> anyhow::Result<String> {
        let text = std::fs::read_to_string(self.file(&format!("{file}.yaml")))?;
        let (_, after) = text.split_once("admin: ").context("no admin listener")?;
        Ok(format!("http://{}", after.split_once('}').context("no admin listener")?.0))
    }

    /// The address of the listener of an agent for Prometheus. `file` is the name of its files.
    pub fn metrics(&self, file: &str) -> anyhow::Result<String> {
        let text = std::fs::read_to_string(self.file(&format!("{file}.yaml")))?;
        let (_, after) = text.split_once("metrics: ").context("no listener for Prometheus")?;
        Ok(after.split_once(',').context("no listener for Prometheus")?.0.to_owned())
    }

    /// The directory with all files.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// kubectl for a physical cluster, with a copy of its kubeconfig that has a `proxy-url`.
    pub fn physical(&self, kubeconfig: &Path) -> anyhow::Result<Kubectl> {
        let text = std::fs::read_to_string(kubeconfig)?;
        let server = "server:";
        let indent = text.lines().find(|line| line.trim_start().starts_with(server)).context("no server")?;
        let indent = &indent[..indent.len() - indent.trim_start().len()];
        let proxied = text.replacen(
            &format!("{indent}{server}"),
            &format!("{indent}proxy-url: http://127.0.0.1:{}\n{indent}{server}", self.ports.proxy),
            1,
        );
        let target = self.dir.path().join("physical.kubeconfig");
        std::fs::write(&target, proxied)?;
        Ok(Kubectl::new(target))
    }

    /// The path of a file of this site.
    pub fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}

// === impl Replica ===

impl Replica {
    /// Starts the process again.
    pub fn restart(&mut self) -> anyhow::Result<()> {
        self.server = start_server(&self.file)?;
        Ok(())
    }

    /// Writes a configuration. `yaml` is one of the first proxy-server.
    pub fn write(&self, yaml: &str) -> anyhow::Result<()> {
        write_replica(&self.file, yaml, self.first, self.ports)
    }
}

// === impl Ports ===

impl Ports {
    /// Free ports.
    pub fn free() -> Self {
        let port = paths::free_port;
        Self { proxy: port(), endpoint: port(), agents: port(), probes: port(), admin: port(), metrics: None }
    }

    fn scraped() -> Self {
        Self { metrics: Some(paths::free_port()), ..Self::free() }
    }

    fn listeners(self) -> String {
        let Self { proxy, endpoint, agents, probes, admin, metrics } = self;
        let metrics = metrics.map(|port| format!(", metrics: 127.0.0.1:{port}")).unwrap_or_default();
        format!(
            "{{proxy: 127.0.0.1:{proxy}, endpoint: 127.0.0.1:{endpoint}, agents: 127.0.0.1:{agents}, \
             probes: 127.0.0.1:{probes}, admin: 127.0.0.1:{admin}{metrics}}}"
        )
    }
}

/// The files of the certificate of proxy-servers for each other.
const PEER: &str = "agents/proxy-servers";

/// Both binaries print this text when they are ready.
const READY: &str = "ready";

/// An entry of the proxy-server's `clusters`: a virtual cluster with the certificates of [`Site::start`].
pub fn entry(cluster: &str, agent: &str) -> String {
    let files = format!("clusters/{cluster}/client-ca");
    format!("{{name: {cluster}, agents: [{agent}], clientCA: {{certificate: {files}.crt, key: {files}.key}}}}")
}

/// Whether the agents of the suite share watches.
pub fn shares_watches() -> bool {
    std::env::var(HUB).map_or(true, |value| value != "0")
}

fn write_replica(file: &Path, yaml: &str, first: Ports, own: Ports) -> anyhow::Result<()> {
    Ok(std::fs::write(file, yaml.replace(&first.listeners(), &own.listeners()))?)
}

fn start_server(config: &Path) -> anyhow::Result<Process> {
    let log = config.with_extension("log");
    let before = std::fs::read_to_string(&log).unwrap_or_default().matches(READY).count();
    let mut server = Process::start("proxy-server", &paths::binary("proxy-server"), &["--config", path(config)], log)?;
    ready(&mut server, before)?;
    Ok(server)
}

fn ready(process: &mut Process, before: usize) -> anyhow::Result<()> {
    crate::eventually(std::time::Duration::from_secs(20), || {
        if process.log().matches(READY).count() > before {
            return Ok(());
        }
        bail!("the proxy-server is not ready; its log:\n{}", process.log())
    })
}

/// Runs `atoll`, which must succeed. Returns its standard output.
pub fn atoll(args: &[&str]) -> anyhow::Result<String> {
    let output = Command::new(paths::binary("atoll")).args(args).output().context("cannot run atoll")?;
    if !output.status.success() {
        bail!("atoll {args:?} failed:\n{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn path(path: &Path) -> &str {
    path.to_str().expect("temporary directories have UTF-8 names")
}

//! Both halves of Atoll for a run, with the files that an operator writes.

use std::fmt::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use http::Method;
use ops::drain::Tasks;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::member::{JSON, Member};
use crate::child::{self, Process};

/// A proxy-server and an agent.
pub(crate) struct Site {
    binaries: PathBuf,
    dir: PathBuf,
    pub(crate) clusters: Vec<String>,
    /// The clusters' endpoints, as their administrators see them.
    pub(crate) members: Vec<Arc<Member>>,
    pub(crate) server: Process,
    /// The port for agents.
    pub(crate) agents: u16,
    /// The configuration of the agent, without the port that it dials.
    agent_config: AgentConfig,
    /// `None` only before the first start and during a restart.
    agent: Option<Process>,
}

/// What the agent's configuration consists of.
struct AgentConfig {
    host_kubeconfig: PathBuf,
    /// Additional keys.
    keys: String,
}

/// How long the clusters took to become ready after the start of the agent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    /// The agent has provisioned all of them.
    pub(crate) provisioned: Duration,
    /// All of them respond to a request through the proxy-server.
    pub(crate) answering: Duration,
}

const AGENT: &str = "site";
const PROVISIONED: &str = "the virtual cluster is provisioned cluster=";
/// The proxy-server prints this text when it accepts connections.
const SERVER_READY: &str = "ready";
const SERVER_TIMEOUT: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The pause between requests to a cluster that does not respond yet.
const RETRY_INTERVAL: Duration = Duration::from_millis(200);

// === impl Site ===

impl Site {
    /// Creates all files, and starts the proxy-server. `config` is appended to the agent's configuration.
    pub(crate) async fn start(
        binaries: &Path,
        dir: &Path,
        host_kubeconfig: &Path,
        clusters: Vec<String>,
        config: &str,
        tasks: &Tasks,
    ) -> anyhow::Result<Self> {
        let atoll = |words: &[&str]| child::run(Command::new(binaries.join("atoll")).args(words).current_dir(dir));
        std::fs::create_dir(dir)?;
        atoll(&["certs", "init", "."])?;
        atoll(&["certs", "agent", AGENT])?;
        for cluster in &clusters {
            atoll(&["certs", "cluster", cluster])?;
        }
        let [proxy, endpoint, agents] = free_ports()?;
        std::fs::write(dir.join("server.yaml"), server_yaml(proxy, endpoint, agents, &clusters))?;
        let mut members = Vec::with_capacity(clusters.len());
        for cluster in &clusters {
            let file = format!("{cluster}.kubeconfig");
            atoll(&["kubeconfig", cluster, "--admin", "--server-config", "server.yaml", "--direct", "-o", &file])?;
            members.push(Member::of_kubeconfig(&dir.join(file), tasks)?);
        }
        let program = binaries.join("proxy-server");
        let mut server = Process::start("proxy-server", &program, &dir.join("server.yaml"), dir.join("server.log"))?;
        let deadline = Instant::now() + SERVER_TIMEOUT;
        while server.printed(SERVER_READY)? == 0 {
            if Instant::now() > deadline {
                bail!("the proxy-server is not ready in time; its log is in {}", dir.display());
            }
            sleep(POLL_INTERVAL).await;
        }
        let agent_config = AgentConfig { host_kubeconfig: host_kubeconfig.to_owned(), keys: config.to_owned() };
        let (binaries, dir) = (binaries.to_owned(), dir.to_owned());
        Ok(Self { binaries, dir, clusters, members, server, agents, agent_config, agent: None })
    }

    /// Kills the agent if it runs, starts it, and waits until all clusters are ready. The agent dials this port of loopback.
    pub(crate) async fn start_agent(&mut self, port: u16, limit: Duration) -> anyhow::Result<Ready> {
        self.agent = None;
        let AgentConfig { host_kubeconfig, keys } = &self.agent_config;
        std::fs::write(self.dir.join("agent.yaml"), agent_yaml(port, host_kubeconfig, &self.clusters, keys))?;
        let (program, log) = (self.binaries.join("proxy-agent"), self.dir.join("agent.log"));
        let start = Instant::now();
        let mut agent = Process::start("proxy-agent", &program, &self.dir.join("agent.yaml"), log)?;
        loop {
            let provisioned = agent.printed(PROVISIONED)?;
            if provisioned >= self.clusters.len() {
                break;
            }
            if start.elapsed() > limit {
                let (clusters, dir) = (self.clusters.len(), self.dir.display());
                bail!("{provisioned} of {clusters} clusters are provisioned after {limit:?}; the logs are in {dir}");
            }
            sleep(POLL_INTERVAL).await;
        }
        let provisioned = start.elapsed();
        self.agent = Some(agent);
        let mut answers = JoinSet::new();
        for (member, cluster) in self.members.iter().zip(&self.clusters) {
            answers.spawn(answer(Arc::clone(member), cluster.clone(), start + limit));
        }
        while let Some(answered) = answers.join_next().await {
            answered.context("a request failed")??;
        }
        Ok(Ready { provisioned, answering: start.elapsed() })
    }

    pub(crate) fn agent_id(&self) -> Option<u32> {
        self.agent.as_ref().map(Process::id)
    }
}

/// Waits until the cluster responds to a request.
async fn answer(member: Arc<Member>, cluster: String, deadline: Instant) -> anyhow::Result<()> {
    loop {
        let last = match member.call(Method::GET, "/api/v1/namespaces/kube-system", JSON, String::new()).await {
            Ok((status, _)) if status.is_success() => return Ok(()),
            Ok((status, _)) => status.to_string(),
            Err(error) => format!("{error:#}"),
        };
        if Instant::now() > deadline {
            bail!("{cluster} does not respond in time: {last}");
        }
        sleep(RETRY_INTERVAL).await;
    }
}

fn server_yaml(proxy: u16, endpoint: u16, agents: u16, clusters: &[String]) -> String {
    let mut yaml = format!(
        "apiVersion: atoll.dev/v1alpha1\n\
         kind: ProxyServerConfiguration\n\
         listeners: {{proxy: 127.0.0.1:{proxy}, endpoint: 127.0.0.1:{endpoint}, agents: 127.0.0.1:{agents}, \
         probes: 127.0.0.1:0, admin: 127.0.0.1:0}}\n\
         servingCA: {{certificate: serving-ca.crt, key: serving-ca.key}}\n\
         agentCA: {{certificate: agent-ca.crt}}\n\
         drain: 2s\n\
         clusters:\n"
    );
    for name in clusters {
        let files = format!("clusters/{name}/client-ca");
        let ca = format!("{{certificate: {files}.crt, key: {files}.key}}");
        // Writing to a String cannot fail.
        let _ = writeln!(yaml, "- {{name: {name}, agents: [{AGENT}], clientCA: {ca}}}");
    }
    yaml
}

fn agent_yaml(agents: u16, host_kubeconfig: &Path, clusters: &[String], config: &str) -> String {
    let mut yaml = format!(
        "apiVersion: atoll.dev/v1alpha1\n\
         kind: ProxyAgentConfiguration\n\
         servers: [127.0.0.1:{agents}]\n\
         identity: {{certificate: agents/{AGENT}.crt, key: agents/{AGENT}.key, serverCA: serving-ca.crt}}\n\
         listeners: {{probes: 127.0.0.1:0, admin: 127.0.0.1:0}}\n\
         drain: 2s\n\
         host: {{kubeconfig: {}}}\n\
         {config}\n\
         virtualClusters:\n",
        host_kubeconfig.display()
    );
    for name in clusters {
        let _ = writeln!(yaml, "- {{name: {name}, nodeSelector: {{location: {name}}}}}");
    }
    yaml
}

/// Free ports of loopback. All of them are taken before one of them is released, so they differ.
fn free_ports<const N: usize>() -> anyhow::Result<[u16; N]> {
    let mut ports = [0; N];
    let mut taken = Vec::with_capacity(N);
    for port in &mut ports {
        let listener = TcpListener::bind(("127.0.0.1", 0)).context("loopback has no free port")?;
        *port = listener.local_addr()?.port();
        taken.push(listener);
    }
    Ok(ports)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn additional_keys_of_the_agent_precede_the_clusters() {
        let yaml = agent_yaml(1, Path::new("/host.kubeconfig"), &["a".to_owned(), "b".to_owned()], "hub: {x: y}");
        let end = "host: {kubeconfig: /host.kubeconfig}\nhub: {x: y}\nvirtualClusters:\n\
                   - {name: a, nodeSelector: {location: a}}\n- {name: b, nodeSelector: {location: b}}\n";
        assert!(yaml.ends_with(end), "{yaml}");
    }

    #[test]
    fn free_ports_differ() {
        let [one, other] = free_ports().unwrap();
        assert!(one != other);
    }
}

//! A network that loses packets, between network namespaces.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use atoll_tests::kubectl::CONDITION_TIMEOUT;
use atoll_tests::process::Process;
use atoll_tests::{eventually, paths, pause, site};
use link_emulator::{CLOUD, Link, Quality, Traffic};
use tokio::sync::watch;

use super::{KEYS, exchange, insertion};

/// Ports in namespaces of our own.
const PROXY: u16 = 8090;
const FORWARDED: u16 = 6379;

/// Both halves notice a dead network within 30 s.
const DEAD: Duration = Duration::from_secs(35);

/// The network: delay, small packets, and one of twenty lost.
const LOSSY: Quality = Quality {
    round_trip_millis: 50,
    lost_per_mille: 50,
    kilobits: None,
    mtu: 1_200,
    nat_expiry_seconds: None,
    dead: false,
};

/// A cloud and a site in namespaces, with the files of both.
struct World {
    // Dropped in this order, so that no process outlives what it uses.
    processes: Vec<Process>,
    dir: tempfile::TempDir,
    cloud: String,
    site: String,
    network: watch::Sender<Quality>,
    /// Ends with `network`, and removes the namespaces.
    carrying: Option<std::thread::JoinHandle<anyhow::Result<()>>>,
}

/// Every byte arrives although packets are lost. When the network is dead for a while, connections end, and new ones work as soon as it
/// is back.
pub(super) fn a_lossy_network_loses_nothing() -> anyhow::Result<()> {
    let mut world = World::start()?;
    world.network.send_replace(LOSSY);
    let inserted = world.database(&["--pipe"], &insertion()?)?;
    ensure!(inserted.contains(&format!("errors: 0, replies: {KEYS}")), "{inserted}");
    ensure!(world.database(&["get", "key:19999"], "")?.trim() == "value 19999");

    world.network.send_replace(Quality { dead: true, ..LOSSY });
    pause(DEAD);
    for (process, notices) in [(0, "no acknowledgement of a PING"), (1, "tunnel ended")] {
        world.processes[process].printed(notices)?;
    }
    world.network.send_replace(LOSSY);
    eventually(CONDITION_TIMEOUT, || {
        let shown = world.database(&["dbsize"], "")?;
        ensure!(shown.trim() == KEYS.to_string(), "{shown}");
        Ok(())
    })
}

// === impl World ===

impl World {
    fn start() -> anyhow::Result<Self> {
        let dir = tempfile::Builder::new().prefix("atoll-lossy-").tempdir()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let entered = runtime.enter();
        let link = Link::open(&format!("atoll-test-{}", std::process::id()))?;
        drop(entered);
        let (cloud, site) = (link.namespaces().cloud().to_owned(), link.namespaces().site().to_owned());
        let (network, quality) = watch::channel(Quality::default());
        let carrying =
            std::thread::spawn(move || runtime.block_on(link.run(quality, &watch::Sender::new(Traffic::default()))));
        let processes = Vec::new();
        let mut world = Self { processes, dir, cloud, site, network, carrying: Some(carrying) };
        world.write_files()?;
        for (program, end) in [("proxy-server", &world.cloud), ("proxy-agent", &world.site)] {
            let config = world.path(&format!("{program}.yaml"));
            let binary = paths::binary(program);
            world.processes.push(world.start_in(end, program, &[&text(&binary)?, "--config", &text(&config)?])?);
        }
        let redis =
            ["redis-server", "--port", "6379", "--bind", "127.0.0.1", "--save", "", "--dir", &text(world.dir.path())?];
        world.processes.push(world.start_in(&world.site, "redis", &redis)?);
        world.processes[2].printed("Ready to accept connections")?;
        world.processes[1].printed("tunnel established")?;
        let (atoll, proxy) = (text(&paths::binary("atoll"))?, format!("https://{CLOUD}:{PROXY}"));
        let file = |name: &str| text(&world.path(name));
        let forward = [
            &atoll,
            "forward",
            "127.0.0.1:6379",
            "--listen",
            &format!("127.0.0.1:{FORWARDED}"),
            "--cluster",
            "home",
            "--proxy",
            &proxy,
            "--ca",
            &file("serving-ca.crt")?,
            "--certificate",
            &file("clusters/home/users/jane.crt")?,
            "--key",
            &file("clusters/home/users/jane.key")?,
        ];
        let mut forward = world.start_in(&world.cloud, "forward", &forward)?;
        forward.printed("Forwarding from")?;
        world.processes.push(forward);
        Ok(world)
    }

    fn write_files(&self) -> anyhow::Result<()> {
        let dir = text(self.dir.path())?;
        site::atoll(&["certs", "init", &dir])?;
        site::atoll(&["certs", "cluster", "home", "--dir", &dir])?;
        site::atoll(&["certs", "agent", "site-n", "--dir", &dir])?;
        site::atoll(&["certs", "client", "jane", "--cluster", "home", "--dir", &dir])?;
        let ca = "clusters/home/client-ca";
        let server = format!(
            "apiVersion: atoll.dev/v1alpha1\n\
             kind: ProxyServerConfiguration\n\
             hostNames: [{CLOUD}]\n\
             listeners: {{proxy: {CLOUD}:{PROXY}, endpoint: 127.0.0.1:8443, agents: {CLOUD}:8091, probes: 127.0.0.1:8092}}\n\
             proxy: {{tls: true}}\n\
             servingCA: {{certificate: serving-ca.crt, key: serving-ca.key}}\n\
             agentCA: {{certificate: agent-ca.crt}}\n\
             clusters:\n\
             - {{name: home, agents: [site-n], mode: physical, apiServer: home.site:6443, clientCA: {{certificate: {ca}.crt}}, \
             destinations: [127.0.0.1:6379]}}\n"
        );
        let agent = format!(
            "apiVersion: atoll.dev/v1alpha1\n\
             kind: ProxyAgentConfiguration\n\
             servers: [{CLOUD}:8091]\n\
             identity: {{certificate: agents/site-n.crt, key: agents/site-n.key, serverCA: serving-ca.crt}}\n\
             listeners: {{probes: 127.0.0.1:8092, admin: 127.0.0.1:8095}}\n\
             physicalClusters: [{{name: home, apiServer: 127.0.0.1:6443}}]\n\
             destinations: [127.0.0.1:6379]\n"
        );
        std::fs::write(self.path("proxy-server.yaml"), server)?;
        Ok(std::fs::write(self.path("proxy-agent.yaml"), agent)?)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Starts a process in a namespace.
    fn start_in(&self, namespace: &str, name: &str, words: &[&str]) -> anyhow::Result<Process> {
        let words = [&["netns", "exec", namespace], words].concat();
        Process::start(name, Path::new("ip"), &words, self.path(&format!("{name}.log")))
    }

    /// The output of the database's client in the cloud, with this input.
    fn database(&self, words: &[&str], input: &str) -> anyhow::Result<String> {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.cloud, "redis-cli", "-p", &FORWARDED.to_string()]).args(words);
        let (shown, error) = exchange(command.stderr(Stdio::piped()), input)?;
        ensure!(error.is_empty(), "{error}");
        Ok(shown)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.processes.clear();
        // Without a sender, the link ends.
        self.network = watch::Sender::new(Quality::default());
        if let Some(carrying) = self.carrying.take() {
            let _ = carrying.join();
        }
    }
}

fn text(path: &Path) -> anyhow::Result<String> {
    Ok(path.to_str().context("temporary directories have UTF-8 names")?.to_owned())
}

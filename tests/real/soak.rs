//! Random faults for many minutes while informers of many virtual clusters watch: `ATOLL_TEST_SOAK` minutes. Not part of the
//! suite.
//!
//! Processes are killed only in the first quarter of the time, so that the memory of the remaining ones can be compared: at
//! the end, it must not be much larger than before the middle.

mod fault;
mod memory;
mod watchers;

use std::collections::VecDeque;
use std::process::Child;
use std::time::Duration;

use anyhow::{Context, ensure};
use atoll_tests::process::Process;
use atoll_tests::{
    BadNetwork, Balancer, Curl, HostCluster, Kubectl, Nodes, Quality, Site, eventually, kubectl, pause, site,
};
use fastrand::Rng;
use libtest_mimic::Trial;
use tokio::time::Instant;

use fault::Fault;
use memory::Memory;
use watchers::Watcher;

/// The variable with the duration, in minutes.
const MINUTES: &str = "ATOLL_TEST_SOAK";

/// The variable with the seed of the faults. The trial prints it.
const SEED: &str = "ATOLL_TEST_SEED";

/// The number of virtual clusters.
const CLUSTERS: usize = 10;

/// The memory of the hub, in MiB: the large objects of one cluster do not fit.
const HUB: u32 = 4;

/// The time between the last fault and the last write.
const SETTLING: Duration = Duration::from_secs(45);

/// The name of the agent.
const AGENT: &str = "site-s";

/// A site with many virtual clusters, and what the faults have left behind.
struct Soak {
    // Dropped in this order, so that no process uses one that has ended.
    unread: VecDeque<Child>,
    agent: Process,
    site: Site,
    network: BadNetwork,
    balancer: Balancer,
    host: HostCluster,
    /// The configuration of the agent.
    body: String,
    clusters: Vec<(String, Kubectl)>,
    random: Rng,
    /// The number of namespaces that have moved.
    moved: usize,
}

/// The trial, if it is enabled.
pub(crate) fn trial() -> Option<Trial> {
    let minutes = std::env::var(MINUTES).ok()?;
    let minutes: u64 = minutes.parse().unwrap_or_else(|_| panic!("{MINUTES}={minutes} is not a number of minutes"));
    let duration = Duration::from_secs(60 * minutes);
    Some(crate::trial::trial("soak::informers_equal_the_host_after_random_faults", move || {
        informers_equal_the_host_after_random_faults(duration)
    }))
}

#[expect(clippy::print_stdout, reason = "a test runner talks to the terminal")]
fn informers_equal_the_host_after_random_faults(duration: Duration) -> anyhow::Result<()> {
    let seed = std::env::var(SEED).ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(|| fastrand::u64(..));
    println!("soak: {SEED}={seed}");
    let mut soak = Soak::start(Rng::with_seed(seed))?;
    let watchers: Vec<_> = (soak.clusters.iter())
        .map(|(name, kubectl)| Watcher::start(kubectl, &soak.site.file(&format!("{name}.log")), duration))
        .collect::<anyhow::Result<_>>()?;
    let (begun, mut memory) = (Instant::now(), Memory::default());
    let mut counts = [0; Fault::ALL.len()];
    while begun.elapsed() + SETTLING < duration {
        let fault = Fault::choose(&mut soak.random, begun.elapsed() < duration / 4);
        let at = begun.elapsed().as_secs();
        soak.inject(fault).with_context(|| format!("{fault:?} after {at} s"))?;
        counts[fault as usize] += 1;
        println!("soak: {at:>4} s  {fault:?}  {}", memory.sample(begun.elapsed(), [&soak.agent, &soak.site.server])?);
        pause(Duration::from_millis(soak.random.u64(1_000..6_000)));
    }
    for (fault, count) in Fault::ALL.iter().zip(counts) {
        println!("soak: {count:>4} x {fault:?}");
    }
    while begun.elapsed() < duration {
        memory.sample(begun.elapsed(), [&soak.agent, &soak.site.server])?;
        pause(Duration::from_secs(1));
    }
    for watcher in watchers {
        println!("soak: {}", watcher.missed_nothing()?);
    }
    for process in [&soak.agent, &soak.site.server] {
        ensure!(!process.log().contains("panicked"), "{}", process.log());
    }
    let shared = soak.shared_watches()?;
    ensure!(shared > CLUSTERS as u64, "the hub has served only {shared} watches");
    println!("soak: {shared} watches from the hub; {}", memory.is_flat(duration)?);
    Ok(())
}

// === impl Soak ===

impl Soak {
    fn start(random: Rng) -> anyhow::Result<Self> {
        // Old versions are gone soon, so that clients and the agent get 410.
        let host = HostCluster::up_with(&["--etcd-compaction-interval=30s"])?;
        let balancer = host.balance()?;
        let names: Vec<String> = (0..CLUSTERS).map(|number| format!("soak-{number}")).collect();
        let entries: Vec<String> = names.iter().map(|name| site::entry(name, AGENT)).collect();
        let entries: Vec<&str> = entries.iter().map(String::as_str).collect();
        let site = Site::start(&entries, &names.iter().map(String::as_str).collect::<Vec<_>>())?;
        let slices: Vec<String> = names.iter().map(|name| Nodes::Location("hangzhou").entry(name)).collect();
        let kubeconfig = host.agent_kubeconfig();
        let body = format!(
            "host: {{kubeconfig: {}}}\nhub: {{memoryMiB: {HUB}}}\nvirtualClusters: [{}]",
            kubeconfig.display(),
            slices.join(", ")
        );
        let network = BadNetwork::start(format!("127.0.0.1:{}", site.ports.agents), Quality::default())?;
        let agent = site.agent_of(&[network.address()], AGENT, AGENT, &body)?;
        let clusters = names.into_iter().map(|name| administrator(&site, name)).collect::<anyhow::Result<_>>()?;
        Ok(Self { unread: VecDeque::new(), agent, site, network, balancer, host, body, clusters, random, moved: 0 })
    }

    /// Starts the agent again, behind the network.
    fn start_agent(&mut self) -> anyhow::Result<()> {
        self.agent = self.site.agent_of(&[self.network.address()], AGENT, AGENT, &self.body)?;
        Ok(())
    }

    /// The number of watches that the hub of the last agent has served.
    fn shared_watches(&self) -> anyhow::Result<u64> {
        let admin = self.site.admin(AGENT)?;
        let metrics = Curl::plain(admin.strip_prefix("http://").context("not a URL")?).get("/metrics")?.body;
        let line = metrics.lines().find_map(|line| line.strip_prefix("atoll_hub_answers_total{answer=\"watch\"} "));
        Ok(line.context("no metric of the hub")?.parse()?)
    }

    /// One of the virtual clusters.
    fn any(&mut self) -> (String, Kubectl) {
        let number = self.random.usize(..self.clusters.len());
        self.clusters[number].clone()
    }
}

impl Drop for Soak {
    fn drop(&mut self) {
        for child in self.unread.drain(..) {
            let _ended = kubectl::end(child);
        }
    }
}

/// A virtual cluster with a namespace for its informers.
fn administrator(site: &Site, name: String) -> anyhow::Result<(String, Kubectl)> {
    let kubectl = site.administrator(&name)?;
    eventually(Duration::from_secs(60), || kubectl.ok(&["create", "namespace", "informer"]))?;
    Ok((name, kubectl))
}

//! One run: a number of clusters, and one configuration of the agent.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Context as _;
use ops::drain::Tasks;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::args::{AgentConfig, Args};
use super::audit::Requests;
use super::cpu::{Phase, Processes};
use super::informer::{Board, EventSink, Informer, all_synced};
use super::ledger::Ledger;
use super::metrics::watches_at;
use super::pods;
use super::report::{Events, Informers, Interruption, Measured, Pods, Start, Watches};
use super::writer::{ConfigMaps, SELECTOR, Store, Through};
use crate::process::NamedProcess;
use crate::site::{Etcd, Host, Ready, Site};

/// The phases of a run, in their order.
pub(super) struct Case<'a> {
    args: &'a Args,
    label: String,
    host: Host,
    site: Site,
    started: Instant,
}

/// The location of the nodes of this host that belong to no virtual cluster of the run.
const OTHER_LOCATION: &str = "beijing";
/// The time after a restart before anything else is measured. The controllers of the host still handle new namespaces, and
/// would be measured too.
const SETTLE_TIME: Duration = Duration::from_secs(60);
/// The duration of a Lease, in renewal intervals: a node renews it after a quarter, like a kubelet
/// (`nodeLeaseRenewIntervalFraction`).
const LEASE_SECONDS_PER_INTERVAL: u32 = 4;
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// The time in which the consequences of a killed agent are measured.
const INTERRUPTION: Duration = Duration::from_secs(60);

/// Runs a case in a folder that does not exist.
pub(super) async fn run(args: &Args, clusters: u32, config: &AgentConfig, dir: &Path) -> anyhow::Result<Measured> {
    let tasks = Tasks::new();
    let result = measure(args, clusters, config, dir, &tasks).await;
    tasks.drain(Duration::from_secs(1), std::future::pending::<()>()).await;
    result
}

async fn measure(
    args: &Args,
    clusters: u32,
    config: &AgentConfig,
    dir: &Path,
    tasks: &Tasks,
) -> anyhow::Result<Measured> {
    let started = Instant::now();
    let label = format!("{clusters} clusters, {}", config.name);
    say(&label, started, "starting the host");
    std::fs::create_dir_all(dir)?;
    let leases = format!("--lease-seconds={}", LEASE_SECONDS_PER_INTERVAL * args.lease_interval);
    let host = Host::start(&args.kube, &args.kube_bin, &dir.join("host"), &[leases], tasks)?;
    let names: Vec<String> = (1..=clusters).map(|number| format!("vc-{number:04}")).collect();
    for name in &names {
        host.create_nodes(name, args.nodes).await?;
    }
    say(&label, started, "creating pods without Atoll");
    let without = pods::create(&host.admin, "default", OTHER_LOCATION, args.pods).await?;
    let watches_before = watches_at(&host).await?;
    say(&label, started, "creating certificates and kubeconfigs, starting the proxy-server");
    let kubeconfig = host.agent_kubeconfig();
    let site = Site::start(&args.bin, &dir.join("site"), &kubeconfig, names, &config.yaml, tasks).await?;
    let mut case = Case { args, label, host, site, started };

    let start = case.start_agent("starting the agent").await?;
    let restart = case.start_agent("killing the agent and starting it again").await?;
    sleep(SETTLE_TIME).await;
    case.say("creating pods with Atoll");
    let inside = format!("default-{}", case.site.clusters[0]);
    let pods = Pods {
        without,
        outside: pods::create(&case.host.admin, "default", OTHER_LOCATION, args.pods).await?,
        inside: pods::create(&case.host.admin, &inside, &case.site.clusters[0], args.pods).await?,
    };
    let processes = case.processes()?;
    let mut memory = BTreeMap::from([("ready", processes.memory()?)]);
    let watches_ready = watches_at(&case.host).await?;

    let namespaces: Vec<String> = case.site.clusters.iter().map(|name| format!("default-{name}")).collect();
    let config_maps = ConfigMaps::new(&namespaces);
    config_maps.create(&case.host.admin).await?;
    let store = match args.events_through {
        Through::KubeApiserver => Store::KubeApiserver(Arc::clone(&case.host.admin)),
        Through::Etcd => Store::Etcd(Etcd::connect(&case.host.etcd_url()?, tasks).await?),
    };
    let (board, informing) = case.open_informers().await?;
    let sync = case.started.elapsed().saturating_sub(informing.since);
    memory.insert("informed", processes.memory()?);
    case.say("measuring without events");
    let before = processes.sample()?;
    let begun_before = board.begun.load(Ordering::Relaxed);
    sleep(args.idle).await;
    let watches_informed = watches_at(&case.host).await?;
    let after = processes.sample()?;
    let idle = Phase::between(&before, &after);
    let begun_idle = board.begun.load(Ordering::Relaxed) - begun_before;

    case.say("writing events");
    let before = processes.sample()?;
    let outcome = config_maps.change(&store, &board, args.event_rate(), args.seconds).await;
    let deadline = Instant::now() + args.grace;
    while board.ledger.totals().lost > 0 && Instant::now() < deadline {
        sleep(POLL_INTERVAL).await;
    }
    let after = processes.sample()?;
    let load = Phase::between(&before, &after);
    memory.insert("loaded", processes.memory()?);
    let totals = board.ledger.totals();
    let events = Events::new(&board.ledger, totals, &outcome, load.micros_per_operation(&idle, totals.confirmed));
    let informers = Informers {
        count: board.synced.load(Ordering::Relaxed),
        sync_seconds: sync.as_secs_f64(),
        watches_begun_idle: begun_idle,
        relists: board.relists.load(Ordering::Relaxed),
        failures: board.failures(),
    };
    let interruption = if args.keep_agent { None } else { Some(case.interrupt(&board, &config_maps, &store).await?) };
    drop(informing);
    case.say("done");

    Ok(Measured {
        start,
        restart,
        pods,
        memory,
        watches: Watches::new(&watches_before, &watches_ready, &watches_informed),
        informers,
        events,
        idle,
        load,
        interruption,
    })
}

/// Reports the progress.
#[expect(clippy::print_stderr, reason = "standard error is for the user")]
fn say(label: &str, started: Instant, text: &str) {
    eprintln!("{label}, {:.1} s: {text}", started.elapsed().as_secs_f64());
}

/// Open informers. They end with this value.
struct Informing {
    /// When they began, relative to the start of the case.
    since: Duration,
    _tasks: JoinSet<()>,
}

// === impl Case ===

impl Case<'_> {
    fn say(&self, text: &str) {
        say(&self.label, self.started, text);
    }

    async fn start_agent(&mut self, text: &str) -> anyhow::Result<Start> {
        self.say(text);
        let position = Requests::position(&self.host)?;
        let Ready { provisioned, answering } = self.site.start_agent(self.site.agents, self.args.ready_timeout).await?;
        Ok(Start::new(provisioned, answering, Requests::of_agent(&self.host, position)?))
    }

    fn processes(&self) -> anyhow::Result<Processes> {
        let agent = self.site.agent_id().context("the agent does not run")?;
        let named = |name: &str, pid| NamedProcess { name: name.to_owned(), pid };
        let children = vec![named("proxy-agent", agent), named("proxy-server", self.site.server.id())];
        Ok(Processes { children, others: self.host.processes()? })
    }

    /// Opens all informers, and waits until each has received all objects.
    async fn open_informers(&self) -> anyhow::Result<(Arc<Board>, Informing)> {
        let args = self.args;
        let resources = args.informer_resources();
        let with_events = resources.iter().filter(|resource| resource.has_events()).count();
        let clusters = self.site.clusters.len();
        self.say(&format!("opening {} informers of each cluster", resources.len()));
        let since = self.started.elapsed();
        let board = Arc::new(Board::new(Ledger::new(clusters, with_events), Instant::now()));
        let mut tasks = JoinSet::new();
        let mut open = |informer: Informer| drop(tasks.spawn(informer.run(Arc::clone(&board))));
        open(Informer {
            member: Arc::clone(&self.host.admin),
            path: "/api/v1/configmaps".to_owned(),
            selector: SELECTOR,
            watch_seconds: args.watch_seconds,
            events: EventSink::Direct,
        });
        for (cluster, member) in self.site.members.iter().enumerate() {
            let mut informer = 0;
            for resource in &resources {
                let events = if resource.has_events() {
                    informer += 1;
                    EventSink::Cluster { cluster, informer: informer - 1 }
                } else {
                    EventSink::None
                };
                open(Informer {
                    member: Arc::clone(member),
                    path: resource.path(),
                    selector: "",
                    watch_seconds: args.watch_seconds,
                    events,
                });
            }
        }
        let all = (clusters * resources.len() + 1) as u64;
        all_synced(&board, all, args.ready_timeout).await?;
        Ok((board, Informing { since, _tasks: tasks }))
    }

    /// Kills the agent while all informers watch and events are written, and starts it again.
    async fn interrupt(
        &mut self,
        board: &Arc<Board>,
        config_maps: &ConfigMaps,
        store: &Store,
    ) -> anyhow::Result<Interruption> {
        self.say("killing the agent while the informers watch, and starting it again");
        let (failures, totals) = (board.failures(), board.ledger.totals());
        let [repeated, relists] = [&board.repeated, &board.relists].map(|count| count.load(Ordering::Relaxed));
        let Self { args, host, site, .. } = self;
        // Without the agent, which is another process afterwards.
        let processes = Processes { children: Vec::new(), others: host.processes()? };
        let before = processes.sample()?;
        let writing = config_maps.change(store, board, args.event_rate(), INTERRUPTION);
        let (_, ready) = tokio::join!(writing, site.start_agent(site.agents, args.ready_timeout));
        let after = processes.sample()?;
        let deadline = Instant::now() + args.grace;
        while board.ledger.totals().lost > totals.lost && Instant::now() < deadline {
            sleep(POLL_INTERVAL).await;
        }
        let now = board.ledger.totals();
        let new = |(reason, count): (String, u64)| {
            let before = failures.get(&reason).copied().unwrap_or_default();
            (count > before).then(|| (reason, count - before))
        };
        Ok(Interruption {
            answering_seconds: ready?.answering.as_secs_f64(),
            repeated: board.repeated.load(Ordering::Relaxed) - repeated,
            relists: board.relists.load(Ordering::Relaxed) - relists,
            failures: board.failures().into_iter().filter_map(new).collect(),
            written: now.confirmed - totals.confirmed,
            lost: now.lost - totals.lost,
            twice: now.twice - totals.twice,
            foreign: now.foreign - totals.foreign,
            minute: Phase::between(&before, &after),
        })
    }
}

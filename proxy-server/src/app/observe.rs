//! The pages for probes and for the operator.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use ops::drain::Tasks;
use ops::heartbeat::Heartbeat;
use ops::listen::Listener;
use ops::metrics::{Build, Registry as Metrics};
use ops::probes::{Checks, PageResponse, Pages};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::status::StatusSource;
use crate::registry::{NoAgent, Registry};
use crate::tunnel::Tunnel;
use crate::workers::Workers;

/// The pages of both listeners.
pub(super) struct Observe {
    source: StatusSource,
    pub(super) metrics: Metrics,
    heartbeat: Heartbeat,
}

ops::label_set! {
    /// One cluster of the configuration.
    struct OfCluster {
        cluster: Arc<str>,
    }
}

ops::label_set! {
    /// Labels of refused offers. Not the cluster: an agent may offer any name.
    struct RefusedOffers {
        agent: Arc<str>,
        reason: &'static str,
    }
}

/// The metrics of tunnels. Other parts register their own.
pub(super) fn metrics(registry: &Arc<Registry>) -> Metrics {
    let metrics = Metrics::new(Build { component: "proxy-server", version: env!("CARGO_PKG_VERSION") });
    let tunnels = Arc::clone(registry);
    metrics.observe("atoll_tunnels", "Tunnels of agents that are up.", move || {
        let agents = tunnels.connected().tunnels().iter().filter(|tunnel| !tunnel.is_peer).count();
        i64::try_from(agents).unwrap_or(i64::MAX)
    });
    let peers = Arc::clone(registry);
    metrics.observe("atoll_peers", "Other proxy-servers that have sent their clusters.", move || {
        i64::try_from(peers.peers().known().len()).unwrap_or(i64::MAX)
    });
    let streams = Arc::clone(registry);
    metrics.observe("atoll_tunnel_streams", "Streams open on all tunnels.", move || {
        let streams: usize = streams.connected().tunnels().iter().map(|tunnel| tunnel.streams()).sum();
        i64::try_from(streams).unwrap_or(i64::MAX)
    });
    let connected = Arc::clone(registry);
    let help = "1 if an agent of the cluster is connected, here or to another proxy-server, and otherwise 0.";
    metrics.observe_each("atoll_cluster_connected", help, move || {
        of_clusters(&connected, |tunnels| Some(i64::from(tunnels.is_ok())))
    });
    let changed = Arc::clone(registry);
    let help = "Unix time at which the cluster lost its last agent, in seconds. Absent while an agent is connected, \
                and if none has connected since the proxy-server started.";
    metrics.observe_each("atoll_cluster_away_since_timestamp_seconds", help, move || {
        of_clusters(&changed, |tunnels| tunnels.err()?.since.and_then(seconds))
    });
    let refused = Arc::clone(registry);
    let help = "Clusters that connected agents offer and that are refused.";
    metrics.observe_each("atoll_refused_offers", help, move || refused_offers(&refused));
    metrics
}

/// A value for each cluster that has one, from its tunnels.
fn of_clusters(
    registry: &Registry,
    value: impl Fn(Result<Vec<Arc<Tunnel>>, NoAgent>) -> Option<i64>,
) -> Vec<(OfCluster, i64)> {
    let clusters = registry.clusters();
    let values = clusters.iter().filter_map(|cluster| {
        let value = value(registry.tunnels_of(&cluster.name))?;
        Some((OfCluster { cluster: cluster.name.as_str().into() }, value))
    });
    values.collect()
}

fn seconds(time: SystemTime) -> Option<i64> {
    i64::try_from(time.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_secs()).ok()
}

fn refused_offers(registry: &Registry) -> Vec<(RefusedOffers, i64)> {
    let counts = registry.connected().counts().into_iter().map(|(agent, reason, count)| {
        let labels = RefusedOffers { agent: agent.as_str().into(), reason: reason.as_str() };
        (labels, i64::try_from(count).unwrap_or(i64::MAX))
    });
    counts.collect()
}

/// A proxy-server that has just started is ready after this time, even if no other one has connected: it may be the first.
const PEERS_TIMEOUT: Duration = Duration::from_secs(5);

// === impl Observe ===

impl Observe {
    pub(super) fn new(source: StatusSource, metrics: Metrics, workers: &Workers) -> Self {
        let heartbeat = Heartbeat::new(workers, &metrics);
        Self { source, metrics, heartbeat }
    }

    /// `stopping` is cancelled when the process begins to stop. `knows_peers` is whether it knows what other proxy-servers serve.
    pub(super) fn serve(
        self,
        (probes, admin): (Listener, Listener),
        tasks: &Tasks,
        stopping: CancellationToken,
        knows_peers: impl Fn() -> bool + Clone + Send + Sync + 'static,
    ) {
        let started = Instant::now();
        let checked = self.heartbeat.clone();
        let livez = Checks::new().with("ping", Duration::from_secs(1), || async { Ok::<_, Infallible>(()) }).with(
            "workers",
            Duration::from_secs(1),
            move || std::future::ready(checked.check()),
        );
        let readyz = livez.clone().with("not-draining", Duration::from_secs(1), move || {
            let stopping = stopping.is_cancelled();
            async move { if stopping { Err("this proxy-server is stopping") } else { Ok(()) } }
        });
        // A process that was ready stays ready when another one stops.
        let knew_peers = Arc::new(AtomicBool::new(false));
        let readyz = readyz.with("peers", Duration::from_secs(1), move || {
            if knows_peers() || started.elapsed() >= PEERS_TIMEOUT {
                knew_peers.store(true, Ordering::Relaxed);
            }
            let is_ready = knew_peers.load(Ordering::Relaxed);
            async move { if is_ready { Ok(()) } else { Err("other proxy-servers have not sent their clusters yet") } }
        });
        let probe_pages = Pages::new("proxy-server").with_probes(&livez, &readyz);
        let source = Arc::new(self.source);
        let source_of_report = Arc::clone(&source);
        let pages = Pages::new("proxy-server")
            .with_probes(&livez, &readyz)
            .with_metrics(&self.metrics)
            .with("/status", "clusters and tunnels, as JSON", move |_| {
                let status = serde_json::to_vec(&source.status()).expect("strings and numbers always serialise");
                std::future::ready(PageResponse::json(status))
            })
            .with_report("/statusz", "the same for people, as a page for browsers, or as text; ?wide", move |wide| {
                crate::status::report(&source_of_report.status(), wide)
            });
        tasks.spawn("heartbeats", self.heartbeat.run(tasks.clone()));
        tasks.spawn("probes", ops::probes::serve(probes, probe_pages, tasks.clone(), "probes"));
        tasks.spawn("admin", ops::probes::serve(admin, pages, tasks.clone(), "admin"));
    }
}

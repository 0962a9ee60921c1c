//! The metrics of tunnels and of clusters. Other parts register their own.

use std::sync::Arc;
use std::time::SystemTime;

use ops::metrics::{Build, Registry as Metrics};
use ops::used::Used;
use protocol::ClusterName;
use protocol::registration::Mode;

use crate::limits::Limits;
use crate::registry::{NoAgent, Registry};
use crate::tunnel::Tunnel;

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

// === impl OfCluster ===

impl OfCluster {
    fn new(cluster: &ClusterName) -> Self {
        Self { cluster: cluster.as_str().into() }
    }
}

/// The metrics of tunnels.
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
    let interrupted = Arc::clone(registry);
    let help = "How often the last agent of the cluster has disconnected from this proxy-server.";
    metrics.observe_counts("atoll_cluster_interruptions_total", help, move || interruptions(&interrupted));
    let refused = Arc::clone(registry);
    let help = "Clusters that connected agents offer and that are refused.";
    metrics.observe_each("atoll_refused_offers", help, move || refused_offers(&refused));
    metrics
}

/// The metrics of what the clients of each virtual cluster use. Those of physical clusters authenticate elsewhere.
pub(super) fn of_clients(metrics: &Metrics, registry: &Arc<Registry>, limits: &Limits) {
    let used = |name, help, read: Box<dyn Fn(&ClusterName) -> Used + Send + Sync>| {
        let registry = Arc::clone(registry);
        metrics.observe_each(name, help, move || {
            let clusters = registry.clusters();
            let virtuals = clusters.iter().filter(|cluster| cluster.mode == Mode::Virtual);
            let value = |cluster: &ClusterName| i64::try_from(read(cluster).used).unwrap_or(i64::MAX);
            virtuals.map(|cluster| (OfCluster::new(&cluster.name), value(&cluster.name))).collect()
        });
    };
    let streams = Arc::clone(&limits.streams);
    let help = "Client requests to the cluster whose response has not ended.";
    used("atoll_cluster_streams", help, Box::new(move |cluster| streams.used(cluster)));
    let connections = Arc::clone(&limits.connections);
    let help = "Connections of authenticated clients of the cluster.";
    used("atoll_cluster_connections", help, Box::new(move |cluster| connections.used(cluster)));
}

fn interruptions(registry: &Registry) -> Vec<(OfCluster, u64)> {
    let counts = registry.interruptions();
    let clusters = registry.clusters();
    let count = |cluster| counts.get(cluster).copied().unwrap_or_default();
    clusters.iter().map(|cluster| (OfCluster::new(&cluster.name), count(&cluster.name))).collect()
}

/// A value for each cluster that has one, from its tunnels.
fn of_clusters(
    registry: &Registry,
    value: impl Fn(Result<Vec<Arc<Tunnel>>, NoAgent>) -> Option<i64>,
) -> Vec<(OfCluster, i64)> {
    let clusters = registry.clusters();
    let values = clusters.iter().filter_map(|cluster| {
        let value = value(registry.tunnels_of(&cluster.name))?;
        Some((OfCluster::new(&cluster.name), value))
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

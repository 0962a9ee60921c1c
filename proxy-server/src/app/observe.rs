//! What probes and the operator see.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use ops::drain::Tasks;
use ops::listen::Listener;
use ops::metrics::{Build, Registry as Metrics};
use ops::probes::{Answer, Checks, Pages};
use serde::Serialize;

use crate::registry::Registry;

/// The pages of both listeners.
#[derive(Debug)]
pub(super) struct Observe {
    registry: Arc<Registry>,
    metrics: Metrics,
}

/// One tunnel on the status page.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TunnelStatus<'a> {
    agent: &'a str,
    instance: &'a str,
    version: &'a str,
    connected_seconds: u64,
    streams: usize,
    round_trip_micros: u128,
}

/// One cluster on the status page.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ClusterStatus {
    name: String,
    mode: protocol::registration::Mode,
    agent: Option<String>,
    /// Why there is no agent.
    message: Option<String>,
}

#[derive(Serialize)]
struct Status<'a> {
    clusters: Vec<ClusterStatus>,
    tunnels: Vec<TunnelStatus<'a>>,
}

// === impl Observe ===

impl Observe {
    pub(super) fn new(registry: Arc<Registry>) -> Self {
        let metrics = Metrics::new(Build { component: "proxy-server", version: env!("CARGO_PKG_VERSION") });
        let tunnels = Arc::clone(&registry);
        metrics.observe("atoll_tunnels", "Tunnels of agents that are up.", move || {
            i64::try_from(tunnels.tunnels().len()).unwrap_or(i64::MAX)
        });
        let streams = Arc::clone(&registry);
        metrics.observe("atoll_tunnel_streams", "Streams open on all tunnels.", move || {
            let streams: usize = streams.tunnels().iter().map(|tunnel| tunnel.streams()).sum();
            i64::try_from(streams).unwrap_or(i64::MAX)
        });
        Self { registry, metrics }
    }

    pub(super) fn serve(self, probes: Listener, admin: Listener, tasks: &Tasks) {
        let draining = tasks.clone();
        let livez = Checks::new().with("ping", Duration::from_secs(1), || async { Ok::<_, Infallible>(()) });
        let readyz = livez.clone().with("not-draining", Duration::from_secs(1), move || {
            let draining = draining.is_cancelled();
            async move { if draining { Err("this proxy-server is stopping") } else { Ok(()) } }
        });
        let probe_pages = Pages::new("proxy-server").with_probes(&livez, &readyz);
        let registry = self.registry;
        let pages = Pages::new("proxy-server").with_probes(&livez, &readyz).with_metrics(&self.metrics).with(
            "/status",
            "clusters and tunnels, as JSON",
            move |_| std::future::ready(Answer::json(status(&registry))),
        );
        tasks.spawn("probes", ops::probes::serve(probes, probe_pages, tasks.clone(), "probes"));
        tasks.spawn("admin", ops::probes::serve(admin, pages, tasks.clone(), "admin"));
    }
}

fn status(registry: &Registry) -> Vec<u8> {
    let tunnels = registry.tunnels();
    let clusters = registry.clusters();
    let mut clusters: Vec<_> = clusters
        .iter()
        .map(|cluster| {
            let served = registry.tunnel(&cluster.name);
            ClusterStatus {
                name: cluster.name.to_string(),
                mode: cluster.mode,
                agent: served.as_ref().ok().map(|tunnel| tunnel.agent.to_string()),
                message: served.err().map(|absent| absent.to_string()),
            }
        })
        .collect();
    clusters.sort_by(|one, other| one.name.cmp(&other.name));
    let tunnels = tunnels
        .iter()
        .map(|tunnel| TunnelStatus {
            agent: tunnel.agent.as_str(),
            instance: &tunnel.instance,
            version: &tunnel.version,
            connected_seconds: tunnel.since.elapsed().map_or(0, |elapsed| elapsed.as_secs()),
            streams: tunnel.streams(),
            round_trip_micros: tunnel.round_trip().as_micros(),
        })
        .collect();
    serde_json::to_vec(&Status { clusters, tunnels }).expect("strings and numbers always serialise")
}

//! The metrics of the agent. Those of requests and of worker threads register themselves.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;

use dial::routes::Tunnels;
use ops::metrics::{Build, Registry};
use ops::used::Used;
use protocol::{Authority, ClusterName};
use virtual_cluster::clusters::VirtualCluster;

use super::exchange::ClusterServices;
use super::status::{host, is_ready, shares};
use crate::exchange::Sharing;
use crate::status::SharesStatus;

ops::label_set! {
    /// Labels of refused clusters. They are in the configuration of this agent.
    struct RefusedCluster {
        cluster: Arc<str>,
        reason: &'static str,
    }
}

ops::label_set! {
    /// Labels of virtual clusters. They are in the configuration of this agent.
    struct OfCluster {
        cluster: Arc<str>,
    }
}

ops::label_set! {
    /// What a virtual cluster uses of something that all virtual clusters share.
    struct OfShare {
        cluster: Arc<str>,
        share: &'static str,
    }
}

/// A use and its limit, by the name of the share.
type Shares<const N: usize> = [(&'static str, Used); N];

/// The metrics of tunnels.
pub(super) fn metrics(up: &Arc<Tunnels>) -> Registry {
    let metrics = Registry::new(Build { component: "proxy-agent", version: env!("CARGO_PKG_VERSION") });
    let counted = Arc::clone(up);
    metrics.observe("atoll_tunnels", "Tunnels to proxy-servers that are up.", move || {
        i64::try_from(counted.count()).unwrap_or(i64::MAX)
    });
    let refused = Arc::clone(up);
    let help = "Tunnels whose proxy-server refuses the cluster.";
    metrics.observe_each("atoll_refused_clusters", help, move || refused_clusters(&refused));
    let missing = Arc::clone(up);
    metrics.observe("atoll_unreachable_servers", "Addresses of proxy-servers to which no tunnel is up.", move || {
        i64::try_from(unreachable_servers(&missing)).unwrap_or(i64::MAX)
    });
    metrics
}

/// The metrics of virtual clusters, their host, access reviews, and the hub. `None` if the configuration has no host.
pub(super) fn of_host(metrics: &Registry, services: Option<&ClusterServices>) {
    hub(metrics, services.and_then(|services| services.sharing.as_ref()));
    readiness(metrics, services);
    usage(metrics, services);
    shared(metrics, services);
    let authz = services.map(|services| Arc::clone(&services.authz));
    let help = "SubjectAccessReviews that the agent has sent to decide about requests and watches.";
    metrics.observe_counts::<()>("atoll_subject_access_reviews_total", help, move || {
        vec![((), authz.as_ref().map_or(0, |authz| authz.reviews_sent()))]
    });
}

/// The metrics of the hub.
fn hub(metrics: &Registry, sharing: Option<&Arc<Sharing>>) {
    let observe = |name, help, read: fn(&Sharing) -> usize| {
        let sharing = sharing.map(Arc::clone);
        metrics.observe(name, help, move || {
            let read = sharing.as_deref().map_or(0, read);
            i64::try_from(read).unwrap_or(i64::MAX)
        });
    };
    observe("atoll_hub_memory_bytes", "Memory that the hub uses for objects and events.", Sharing::memory);
    observe("atoll_hub_memory_limit_bytes", "The limit for this memory. 0 without a hub.", Sharing::memory_limit);
    observe("atoll_hub_objects", "Objects that the hub holds.", |sharing| {
        sharing.feeds().iter().map(|feed| feed.statistics().objects).sum()
    });
    observe("atoll_hub_events", "Events that the hub holds.", |sharing| {
        sharing.feeds().iter().map(|feed| feed.statistics().events).sum()
    });
    observe("atoll_hub_feeds", "Resources that the hub watches at the host.", |sharing| sharing.feeds().len());
    observe("atoll_hub_watches", "Open watches of clients that the hub serves.", |sharing| {
        sharing.feeds().iter().map(|feed| feed.statistics().watchers).sum()
    });
    observe("atoll_hub_rbac_watches", "Watches of RBAC objects of the host that are current.", Sharing::current_rights);
    let answers = metrics.counters(
        "atoll_hub_answers_total",
        "Watches that clients requested and lists that the hub answered, by the hub's answer.",
    );
    let reviews = metrics.counters("atoll_hub_reviews_total", "Checks of the rights of callers whose watch is open.");
    if let Some(sharing) = sharing {
        sharing.count_in(answers, reviews);
    }
}

/// Whether the host and each virtual cluster can be served.
fn readiness(metrics: &Registry, services: Option<&ClusterServices>) {
    let services = services.cloned();
    let of_host = services.clone();
    let help = "1 if an API server of the host responds and the agent knows all namespaces, and otherwise 0. Absent without \
                a host.";
    metrics.observe_each::<()>("atoll_host_ready", help, move || {
        of_host.iter().map(|services| ((), i64::from(host(services).ready))).collect()
    });
    let help =
        "1 if the cluster is provisioned on the host and the host enforces the admission policies, and otherwise 0.";
    of_clusters(metrics, "atoll_cluster_ready", help, services.as_ref(), |services, cluster| {
        u64::from(is_ready(services, cluster))
    });
}

/// The metrics of what virtual clusters store on the host. The resources are no label: clients can create resources.
fn usage(metrics: &Registry, services: Option<&ClusterServices>) {
    let help = "Stored objects of the cluster.";
    of_clusters(metrics, "atoll_stored_objects", help, services, |services, cluster| {
        services.usage.held(&cluster.name).objects
    });
    let help = "The size of these objects, as JSON.";
    of_clusters(metrics, "atoll_stored_bytes", help, services, |services, cluster| {
        services.usage.held(&cluster.name).bytes
    });
    let help = "Limits for stored objects that the cluster has reached.";
    of_clusters(metrics, "atoll_reached_limits", help, services, |services, cluster| {
        services.usage.reached(&cluster.name).len() as u64
    });
}

/// The metrics of what virtual clusters share.
fn shared(metrics: &Registry, services: Option<&ClusterServices>) {
    let help = "How many of a shared resource the cluster uses.";
    of_shares(metrics, "atoll_share_used", help, services, counts, |used| used.used);
    let help = "How many of this resource the cluster may use at the moment.";
    of_shares(metrics, "atoll_share_limit", help, services, counts, |used| used.limit);
    let help = "Bytes of a shared resource that the cluster uses.";
    of_shares(metrics, "atoll_share_used_bytes", help, services, bytes, |used| used.used);
    let help = "Bytes of this resource that the cluster may use at the moment.";
    of_shares(metrics, "atoll_share_limit_bytes", help, services, bytes, |used| used.limit);
}

fn counts(shares: &SharesStatus) -> Shares<5> {
    let SharesStatus { requests, watches, sessions, seats, namespaces, .. } = *shares;
    [("requests", requests), ("watches", watches), ("sessions", sessions), ("seats", seats), ("namespaces", namespaces)]
}

fn bytes(shares: &SharesStatus) -> Shares<7> {
    let SharesStatus {
        body_bytes, list_bytes, event_bytes, head_bytes, queued_bytes, stored_bytes, written_bytes, ..
    } = *shares;
    [
        ("bodies", body_bytes),
        ("lists", list_bytes),
        ("events", event_bytes),
        ("heads", head_bytes),
        ("queue", queued_bytes),
        ("stored", stored_bytes),
        ("written", written_bytes),
    ]
}

/// A gauge for each share of each virtual cluster.
fn of_shares<const N: usize>(
    metrics: &Registry,
    name: &'static str,
    help: &'static str,
    services: Option<&ClusterServices>,
    of: fn(&SharesStatus) -> Shares<N>,
    value: fn(Used) -> u64,
) {
    let services = services.cloned();
    metrics.observe_each(name, help, move || {
        let Some(services) = &services else { return Vec::new() };
        let mut series = Vec::new();
        for cluster in services.clusters.all() {
            let name: Arc<str> = cluster.name.as_str().into();
            series.extend(of(&shares(services, &cluster)).into_iter().map(|(share, used)| {
                let labels = OfShare { cluster: Arc::clone(&name), share };
                (labels, i64::try_from(value(used)).unwrap_or(i64::MAX))
            }));
        }
        series
    });
}

/// A gauge for each virtual cluster.
fn of_clusters(
    metrics: &Registry,
    name: &'static str,
    help: &'static str,
    services: Option<&ClusterServices>,
    value: fn(&ClusterServices, &VirtualCluster) -> u64,
) {
    let services = services.cloned();
    metrics.observe_each(name, help, move || {
        let Some(services) = &services else { return Vec::new() };
        let series = |cluster: &Arc<VirtualCluster>| {
            let labels = OfCluster { cluster: cluster.name.as_str().into() };
            (labels, i64::try_from(value(services, cluster)).unwrap_or(i64::MAX))
        };
        services.clusters.all().iter().map(series).collect()
    });
}

/// A busy agent has several tunnels to an address. One is enough.
fn unreachable_servers(tunnels: &Tunnels) -> usize {
    let mut is_up: HashMap<(Authority, Option<SocketAddr>), bool> = HashMap::new();
    for route in tunnels.all() {
        *is_up.entry((route.server, route.address)).or_default() |= route.tunnel.is_ok();
    }
    is_up.into_values().filter(|is_up| !is_up).count()
}

fn refused_clusters(tunnels: &Tunnels) -> Vec<(RefusedCluster, i64)> {
    let mut counts: BTreeMap<(ClusterName, &'static str), i64> = BTreeMap::new();
    for tunnel in tunnels.all().into_iter().filter_map(|route| route.tunnel.ok()) {
        for refused in &tunnel.verdict.borrow().refused {
            for cluster in &refused.clusters {
                *counts.entry((cluster.clone(), refused.refusal.reason.as_str())).or_default() += 1;
            }
        }
    }
    let labels = |(cluster, reason): (ClusterName, _)| RefusedCluster { cluster: cluster.as_str().into(), reason };
    counts.into_iter().map(|(key, count)| (labels(key), count)).collect()
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use ops::files::Reloader;
    use ops::heartbeat::Heartbeat;
    use ops::workers::Workers;
    use protocol::{Acceptance, ProtocolVersion};
    use request_metrics::{Names, RequestMetrics};
    use request_traces::{Service, Traces};

    use super::*;

    /// The rows of the table of the agent: name -> labels.
    #[tokio::test]
    async fn docs_list_every_metric_with_its_labels() {
        let metrics = metrics(&Arc::default());
        of_host(&metrics, None);
        ops::expiry::observe(&metrics, Vec::new);
        let (workers, _threads) = Workers::start(NonZeroUsize::MIN).unwrap();
        let _heartbeat = Heartbeat::new(&workers, &metrics);
        let _requests = RequestMetrics::new(&metrics, Names::AGENT);
        let service = Service { name: "proxy-agent", version: "0", instance: "" };
        let _traces = Traces::open(None, service, &metrics, &Reloader::new(Reloader::DEFAULT_PERIOD)).unwrap();
        let registered = metrics.descriptions().into_iter().filter(|one| one.name.starts_with("atoll_"));
        let registered: Vec<_> = registered.map(|one| (one.name, one.labels)).collect();
        let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/metrics.md")).unwrap();
        let section = page.split("\n## ").find(|section| section.starts_with("proxy-agent\n")).unwrap();
        let quoted = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
        // Other tables follow in sections of their own.
        let table = section.split("\n### ").next().unwrap();
        let rows = table.lines().filter_map(|line| line.strip_prefix("| `"));
        let mut documented: Vec<_> = rows
            .map(|row| {
                let cells: Vec<_> = row.split('|').collect();
                (cells[0].trim_end_matches(['`', ' ']).to_owned(), quoted(cells[2]))
            })
            .collect();
        documented.sort();
        assert_eq!(documented, registered);
    }
    #[test]
    fn an_address_without_any_tunnel_is_unreachable() {
        let tunnels = Arc::new(Tunnels::default());
        let server: Authority = "proxy:8091".parse().unwrap();
        let [one, other] = ["192.0.2.1:8091", "192.0.2.2:8091"].map(|address| Some(address.parse().unwrap()));
        let up = tunnels.route(&server, one).up(Acceptance {
            protocol: ProtocolVersion::CURRENT,
            server: "s".into(),
            domain: None,
        });
        let _further = tunnels.route(&server, one);
        assert_eq!(unreachable_servers(&tunnels), 0);
        let _down = tunnels.route(&server, other);
        assert_eq!(unreachable_servers(&tunnels), 1);
        drop(up.ended());
        assert_eq!(unreachable_servers(&tunnels), 2);
    }
}

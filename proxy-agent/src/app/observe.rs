//! The listeners for probes and for the operator.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use ops::drain::Tasks;
use ops::heartbeat::Heartbeat;
use ops::listen::Listener;
use ops::metrics::{Build, Registry};
use ops::probes::{Checks, PageResponse, Pages};
use ops::workers::Workers;

use protocol::ClusterName;
use virtual_cluster::clusters::VirtualClusters;
use virtual_cluster::usage::Usage;

use super::exchange::ClusterServices;
use super::status::StatusSource;
use crate::exchange::Sharing;
use crate::status::report::report;
use dial::routes::Tunnels;

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

/// The metrics of the agent.
pub(super) fn metrics(up: &Arc<Tunnels>) -> Registry {
    let metrics = Registry::new(Build { component: "proxy-agent", version: env!("CARGO_PKG_VERSION") });
    let counted = Arc::clone(up);
    metrics.observe("atoll_tunnels", "Tunnels to proxy-servers that are up.", move || {
        i64::try_from(counted.count()).unwrap_or(i64::MAX)
    });
    let refused = Arc::clone(up);
    let help = "Tunnels whose proxy-server refuses the cluster.";
    metrics.observe_each("atoll_refused_clusters", help, move || refused_clusters(&refused));
    metrics
}

/// The metrics of the hub.
pub(super) fn hub(metrics: &Registry, sharing: Option<&Arc<Sharing>>) {
    let observe = |name, help, read: fn(&Sharing) -> usize| {
        let sharing = sharing.map(Arc::clone);
        metrics.observe(name, help, move || {
            let read = sharing.as_deref().map_or(0, read);
            i64::try_from(read).unwrap_or(i64::MAX)
        });
    };
    observe("atoll_hub_memory_bytes", "Memory that the hub uses for objects and events.", Sharing::memory);
    observe("atoll_hub_feeds", "Resources that the hub watches at the host.", |sharing| sharing.feeds().len());
    observe("atoll_hub_watches", "Open watches of clients that the hub serves.", |sharing| {
        sharing.feeds().iter().map(|feed| feed.statistics().watchers).sum()
    });
    observe("atoll_hub_rbac_watches", "Watches of RBAC objects of the host that are current.", Sharing::current_rights);
    let answers = metrics.counters(
        "atoll_hub_answers_total",
        "Watches that clients requested and lists that the hub answered, by the hub's answer.",
    );
    let reviews = metrics.counters("atoll_hub_reviews_total", "Access reviews for watches that are open.");
    if let Some(sharing) = sharing {
        sharing.count_in(answers, reviews);
    }
}

/// The metrics of what virtual clusters store on the host. The resources are no label: clients can create resources.
pub(super) fn usage(metrics: &Registry, services: Option<&ClusterServices>) {
    let observe = |name, help, read: fn(&Usage, &rewrite::ClusterName) -> u64| {
        let services = services.map(|services| (Arc::clone(&services.clusters), Arc::clone(&services.usage)));
        metrics.observe_each(name, help, move || {
            let Some((clusters, usage)) = &services else { return Vec::new() };
            of_clusters(clusters, |cluster| read(usage, cluster))
        });
    };
    observe("atoll_stored_objects", "Objects in the namespaces of the cluster.", |usage, cluster| {
        usage.held(cluster).objects
    });
    observe("atoll_stored_bytes", "The size of these objects, as JSON.", |usage, cluster| usage.held(cluster).bytes);
    let help = "Limits for stored objects that the cluster has reached.";
    observe("atoll_reached_limits", help, |usage, cluster| usage.reached(cluster).len() as u64);
}

fn of_clusters(clusters: &VirtualClusters, read: impl Fn(&rewrite::ClusterName) -> u64) -> Vec<(OfCluster, i64)> {
    let value = |cluster| i64::try_from(read(cluster)).unwrap_or(i64::MAX);
    let all = clusters.all();
    all.iter().map(|cluster| (OfCluster { cluster: cluster.name.as_str().into() }, value(&cluster.name))).collect()
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

/// Serves the pages as the first tasks. The second ones, `serving`, are cancelled when the process begins to stop.
pub(super) fn serve(
    (probes, admin): (Listener, Listener),
    source: StatusSource,
    metrics: &Registry,
    workers: &Workers,
    (tasks, serving): (&Tasks, &Tasks),
) {
    let heartbeat = Heartbeat::new(workers, metrics);
    let checked = heartbeat.clone();
    let livez = Checks::new().with("ping", Duration::from_secs(1), || async { Ok::<_, Infallible>(()) }).with(
        "workers",
        Duration::from_secs(1),
        move || std::future::ready(checked.check()),
    );
    let counted = Arc::clone(&source.tunnels);
    let readyz = livez.clone().with("tunnel", Duration::from_secs(1), move || {
        let count = counted.count();
        async move { if count == 0 { Err("no tunnel to a proxy-server is up") } else { Ok(()) } }
    });
    let serving = serving.clone();
    let readyz = readyz.with("not-draining", Duration::from_secs(1), move || {
        let is_stopping = serving.is_cancelled();
        async move { if is_stopping { Err("this agent is stopping") } else { Ok(()) } }
    });
    let probe_pages = Pages::new("proxy-agent").with_probes(&livez, &readyz);
    let source = Arc::new(source);
    let source_of_report = Arc::clone(&source);
    let pages = Pages::new("proxy-agent")
        .with_probes(&livez, &readyz)
        .with_metrics(metrics)
        .with("/status", "tunnels, virtual clusters and the host, as JSON", move |_| {
            let status = serde_json::to_vec(&source.status()).expect("strings and numbers always serialise");
            std::future::ready(PageResponse::json(status))
        })
        .with_report("/statusz", "the same for people, as a page for browsers, or as text; ?wide", move |wide| {
            report(&source_of_report.status(), wide)
        });
    tasks.spawn("heartbeats", heartbeat.run(tasks.clone()));
    tasks.spawn("probes", ops::probes::serve(probes, probe_pages, tasks.clone(), "probes"));
    tasks.spawn("admin", ops::probes::serve(admin, pages, tasks.clone(), "admin"));
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use request_metrics::{Names, RequestMetrics};

    use super::*;

    /// The rows of the table of the agent: name -> labels.
    #[tokio::test]
    async fn docs_list_every_metric_with_its_labels() {
        let metrics = metrics(&Arc::default());
        hub(&metrics, None);
        usage(&metrics, None);
        let (workers, _threads) = Workers::start(NonZeroUsize::MIN).unwrap();
        let _heartbeat = Heartbeat::new(&workers, &metrics);
        let _requests = RequestMetrics::new(&metrics, Names::AGENT);
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
}

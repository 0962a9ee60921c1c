//! The listeners for probes and for the operator.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use ops::drain::Tasks;
use ops::heartbeat::Heartbeat;
use ops::listen::Listener;
use ops::metrics::{Build, Registry};
use ops::probes::{Checks, PageResponse, Pages};
use ops::workers::Workers;

use super::status::StatusSource;
use crate::ready::Tunnels;
use crate::status::text::text;

/// The metrics of the agent.
pub(super) fn metrics(up: &Arc<Tunnels>) -> Registry {
    let metrics = Registry::new(Build { component: "proxy-agent", version: env!("CARGO_PKG_VERSION") });
    let counted = Arc::clone(up);
    metrics.observe("atoll_tunnels", "Tunnels to proxy-servers that are up.", move || {
        i64::try_from(counted.count()).unwrap_or(i64::MAX)
    });
    metrics
}

pub(super) fn serve(
    (probes, admin): (Listener, Listener),
    source: StatusSource,
    metrics: &Registry,
    workers: &Workers,
    tasks: &Tasks,
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
    let probe_pages = Pages::new("proxy-agent").with_probes(&livez, &readyz);
    let source = Arc::new(source);
    let source_of_text = Arc::clone(&source);
    let pages = Pages::new("proxy-agent")
        .with_probes(&livez, &readyz)
        .with_metrics(metrics)
        .with("/status", "tunnels, virtual clusters and the host, as JSON", move |_| {
            let status = serde_json::to_vec(&source.status()).expect("strings and numbers always serialise");
            std::future::ready(PageResponse::json(status))
        })
        .with("/statusz", "the same for people; ?wide", move |query| {
            std::future::ready(PageResponse::text(text(&source_of_text.status(), query.has("wide"))))
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
        let (workers, _threads) = Workers::start(NonZeroUsize::MIN).unwrap();
        let _heartbeat = Heartbeat::new(&workers, &metrics);
        let _requests = RequestMetrics::new(&metrics, Names::AGENT);
        let registered = metrics.descriptions().into_iter().filter(|one| one.name.starts_with("atoll_"));
        let registered: Vec<_> = registered.map(|one| (one.name, one.labels)).collect();
        let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/metrics.md")).unwrap();
        let section = page.split("\n## ").find(|section| section.starts_with("proxy-agent\n")).unwrap();
        let quoted = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
        let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
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

//! The listeners for probes, for the operator, and for Prometheus.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use ops::drain::Tasks;
use ops::heartbeat::Heartbeat;
use ops::metrics::Registry;
use ops::probes::{Checks, Listeners, PageResponse, Pages};
use ops::workers::Workers;

use super::status::StatusSource;
use crate::status::report::report;

/// Serves the pages as the first tasks. The second ones, `serving`, are cancelled when the process begins to stop.
pub(super) fn serve(
    listeners: Listeners,
    source: Arc<StatusSource>,
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
    listeners.serve(probe_pages, pages, Pages::new("proxy-agent").with_metrics(metrics), tasks);
}

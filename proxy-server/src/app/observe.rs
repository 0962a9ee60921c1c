//! The pages for probes, for the operator, and for Prometheus.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ops::drain::Tasks;
use ops::heartbeat::Heartbeat;
use ops::metrics::Registry as Metrics;
use ops::probes::{Checks, Listeners, PageResponse, Pages};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::status::StatusSource;
use crate::workers::Workers;

/// The pages of all listeners.
pub(super) struct Observe {
    source: Arc<StatusSource>,
    pub(super) metrics: Metrics,
    heartbeat: Heartbeat,
}

/// A proxy-server that has just started is ready after this time, even if no other one has connected: it may be the first.
const PEERS_TIMEOUT: Duration = Duration::from_secs(5);

// === impl Observe ===

impl Observe {
    pub(super) fn new(source: StatusSource, metrics: Metrics, workers: &Workers) -> Self {
        let heartbeat = Heartbeat::new(workers, &metrics);
        let source = Arc::new(source);
        let certified = Arc::clone(&source);
        ops::expiry::observe(&metrics, move || certified.certificates());
        Self { source, metrics, heartbeat }
    }

    /// `stopping` is cancelled when the process begins to stop. `knows_peers` is whether it knows what other proxy-servers serve.
    pub(super) fn serve(
        self,
        listeners: Listeners,
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
        let source = self.source;
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
        listeners.serve(probe_pages, pages, Pages::new("proxy-server").with_metrics(&self.metrics), tasks);
    }
}

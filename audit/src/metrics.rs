//! The metrics of audit logs.

use std::sync::Arc;

use ops::metrics::{Counter, Family, Registry};

ops::label_set! {
    /// One cluster.
    pub(crate) struct OfCluster {
        pub(crate) cluster: Arc<str>,
    }
}

ops::label_set! {
    /// Events that were lost.
    pub(crate) struct OfLoss {
        pub(crate) cluster: Arc<str>,
        /// `log` or `webhook`.
        pub(crate) backend: &'static str,
        /// `full` (of a queue) or `failed`.
        pub(crate) reason: &'static str,
    }
}

/// All metrics.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    pub(crate) events: Family<OfCluster, Counter>,
    pub(crate) lost: Family<OfLoss, Counter>,
}

/// Where events go.
pub(crate) const LOG: &str = "log";
pub(crate) const WEBHOOK: &str = "webhook";

/// Why an event is lost.
pub(crate) const FULL: &str = "full";
pub(crate) const FAILED: &str = "failed";

// === impl Metrics ===

impl Metrics {
    pub(crate) fn new(registry: &Registry) -> Self {
        Self {
            events: registry.counters("atoll_audit_events_total", "Audit events of the cluster."),
            lost: registry.counters(
                "atoll_audit_lost_events_total",
                "Audit events that did not reach the log or the webhook, because the queue was full or the write failed.",
            ),
        }
    }

    /// Removes the series of a cluster.
    pub(crate) fn remove(&self, cluster: &Arc<str>) {
        self.events.remove(&OfCluster { cluster: Arc::clone(cluster) });
        for backend in [LOG, WEBHOOK] {
            for reason in [FULL, FAILED] {
                self.lost.remove(&OfLoss { cluster: Arc::clone(cluster), backend, reason });
            }
        }
    }
}

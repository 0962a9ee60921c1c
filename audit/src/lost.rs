//! Counts and reports events that are lost.

use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ops::metrics::Counter;
use tokio::time::Instant;
use tracing::error;

use crate::metrics::{FAILED, FULL, Metrics, OfLoss};

/// The time between two log lines about the same backend.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// The events that a backend of a cluster has lost.
#[derive(Debug)]
pub(crate) struct Lost {
    cluster: Arc<str>,
    backend: &'static str,
    full: Counter,
    failed: Counter,
    logged: Mutex<Option<Instant>>,
}

// === impl Lost ===

impl Lost {
    /// Nothing yet.
    pub(crate) fn new(metrics: &Metrics, cluster: &Arc<str>, backend: &'static str) -> Self {
        let counter = |reason| metrics.lost.with(&OfLoss { cluster: Arc::clone(cluster), backend, reason });
        let (full, failed) = (counter(FULL), counter(FAILED));
        Self { cluster: Arc::clone(cluster), backend, full, failed, logged: Mutex::default() }
    }

    /// The queue has no room for an event.
    pub(crate) fn full(&self) {
        self.full.inc();
        if self.is_due() {
            error!(cluster = &*self.cluster, backend = self.backend, "audit events are lost: the queue is full");
        }
    }

    /// Events could not be written.
    pub(crate) fn failed(&self, events: usize, error: &(dyn Error + 'static)) {
        self.failed.add(events as u64);
        if self.is_due() {
            error!(cluster = &*self.cluster, backend = self.backend, error, "audit events are lost");
        }
    }

    /// Whether the last log line is long ago.
    fn is_due(&self) -> bool {
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let is_due = logged.is_none_or(|logged| now.duration_since(logged) >= LOG_INTERVAL);
        if is_due {
            *logged = Some(now);
        }
        is_due
    }
}

//! The audit log of one cluster.

use std::sync::Arc;

use bytes::Bytes;
use ops::files::Watched;
use ops::metrics::Counter;

use crate::config::Audit;
use crate::policy::{Attributes, Decision, Policy, decide};
use crate::queue::Queue;

/// The audit log of one cluster.
#[derive(Debug)]
pub struct Auditor {
    pub(crate) cluster: Arc<str>,
    pub(crate) settings: Audit,
    pub(crate) policy: Watched<Policy>,
    pub(crate) log: Option<Queue>,
    pub(crate) webhook: Option<Queue>,
    pub(crate) events: Counter,
}

// === impl Auditor ===

impl Auditor {
    /// The name of the cluster.
    pub(crate) fn cluster(&self) -> &str {
        &self.cluster
    }

    /// What is recorded of a request.
    pub(crate) fn decide(&self, attributes: &Attributes<'_>) -> Decision {
        decide(&self.policy.borrow(), attributes)
    }

    /// Records an event.
    pub(crate) fn record(&self, event: Bytes) {
        self.events.inc();
        match (&self.log, &self.webhook) {
            (Some(log), Some(webhook)) => {
                log.push(event.clone());
                webhook.push(event);
            }
            (Some(queue), None) | (None, Some(queue)) => queue.push(event),
            (None, None) => {}
        }
    }
}

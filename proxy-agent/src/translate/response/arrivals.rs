//! Events in namespaces that the index does not know yet.
//!
//! A namespace is created before its objects, but their events come from different watches, and the agent's own watch
//! of namespaces may be the later one. If an event were left out because its namespace has no virtual name yet, the
//! client's cache would lack the object for ever. So an event that names an unknown namespace waits a moment for the
//! index, and so does everything after it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rewrite::{Mapping, VirtualNamespace};
use tokio::time::{Instant, Sleep, sleep};

use virtual_cluster::clusters::VirtualCluster;

/// The interval between checks of the index.
const RETRY_INTERVAL: Duration = Duration::from_millis(5);
/// The maximum wait of a chunk, however many of its events wait. A name of a namespace that never exists, such as in a
/// reference, costs this time once.
const ARRIVAL_TIMEOUT: Duration = Duration::from_millis(500);

/// The names of the namespaces in one watch, which change while it runs.
pub(crate) struct Arrivals {
    cluster: Arc<VirtualCluster>,
    /// The namespace that the request names, which need not exist.
    requested: Option<VirtualNamespace>,
}

/// The wait of one event for names.
pub(super) struct Wait {
    unknown: Vec<Box<[u8]>>,
    until: Instant,
    pause: Pin<Box<Sleep>>,
}

// === impl Arrivals ===

impl Arrivals {
    pub(crate) fn new(cluster: Arc<VirtualCluster>, requested: Option<VirtualNamespace>) -> Self {
        Self { cluster, requested }
    }

    /// The current names.
    pub(super) fn mapping(&self) -> Mapping {
        let mapping = self.cluster.mapping();
        match &self.requested {
            Some(requested) => mapping.with_requested_namespace(requested.clone()),
            None => mapping,
        }
    }

    /// The cluster whose names are looked up.
    pub(super) fn cluster(&self) -> &VirtualCluster {
        &self.cluster
    }
}

// === impl Wait ===

impl Wait {
    /// The time until which events of a chunk wait, if the first of them begins to wait now.
    pub(super) fn deadline() -> Instant {
        Instant::now() + ARRIVAL_TIMEOUT
    }

    /// A wait for these names.
    pub(super) fn new(unknown: Vec<Box<[u8]>>, until: Instant) -> Self {
        Self { unknown, until, pause: Box::pin(sleep(RETRY_INTERVAL)) }
    }

    /// Returns whether all names are known, when they are or when the maximum wait is over.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, cluster: &VirtualCluster) -> Poll<bool> {
        loop {
            let mapping = cluster.mapping();
            self.unknown.retain(|name| !mapping.knows(name));
            if self.unknown.is_empty() {
                return Poll::Ready(true);
            }
            if Instant::now() >= self.until {
                return Poll::Ready(false);
            }
            ready!(self.pause.as_mut().poll(cx));
            self.pause.as_mut().reset(Instant::now() + RETRY_INTERVAL);
        }
    }
}

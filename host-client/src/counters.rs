//! Counters for metrics.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use kubeconfig::Address;

/// The statistics of a [`super::Host`] at one point in time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// The number of requests, including upgrades.
    pub requests: u64,
    /// The number of requests whose response body has not ended, including watches.
    pub in_flight: usize,
    /// The number of times that a request was sent again.
    pub retries: u64,
    /// The number of attempts to open an HTTP/2 connection.
    pub connections_begun: u64,
    /// The number of those attempts that failed.
    pub connections_failed: u64,
    /// The number of open HTTP/2 connections, including those that only wait for their last stream.
    pub connections_open: usize,
    /// The API servers, in order of preference.
    pub servers: Vec<ServerStatistics>,
}

/// One API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerStatistics {
    /// The address.
    pub address: Address,
    /// Whether it is considered up.
    pub up: bool,
    /// The number of HTTP/2 connections that accept requests.
    pub connections: usize,
    /// The number of streams on them.
    pub streams: usize,
}

/// The counters behind [`Statistics`].
#[derive(Debug, Default)]
pub(super) struct Counters {
    requests: AtomicU64,
    in_flight: AtomicUsize,
    retries: AtomicU64,
    connections_begun: AtomicU64,
    connections_failed: AtomicU64,
    connections_open: AtomicUsize,
}

/// Increments a counter for as long as it exists.
#[derive(Debug)]
pub(super) struct Counted {
    counters: Arc<Counters>,
    which: fn(&Counters) -> &AtomicUsize,
}

// === impl Counters ===

impl Counters {
    pub(super) fn request(self: &Arc<Self>) -> Counted {
        self.requests.fetch_add(1, Ordering::Relaxed);
        Counted::new(self, |counters| &counters.in_flight)
    }

    pub(super) fn retry(&self) {
        self.retries.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of the connection.
    pub(super) fn connection_begun(&self) -> u64 {
        self.connections_begun.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(super) fn connection_failed(&self) {
        self.connections_failed.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn connection_open(self: &Arc<Self>) -> Counted {
        Counted::new(self, |counters| &counters.connections_open)
    }

    pub(super) fn connections_open(&self) -> usize {
        self.connections_open.load(Ordering::Relaxed)
    }

    pub(super) fn read(&self, servers: Vec<ServerStatistics>) -> Statistics {
        Statistics {
            requests: self.requests.load(Ordering::Relaxed),
            in_flight: self.in_flight.load(Ordering::Relaxed),
            retries: self.retries.load(Ordering::Relaxed),
            connections_begun: self.connections_begun.load(Ordering::Relaxed),
            connections_failed: self.connections_failed.load(Ordering::Relaxed),
            connections_open: self.connections_open(),
            servers,
        }
    }
}

// === impl Counted ===

impl Counted {
    fn new(counters: &Arc<Counters>, which: fn(&Counters) -> &AtomicUsize) -> Self {
        which(counters).fetch_add(1, Ordering::Relaxed);
        Self { counters: Arc::clone(counters), which }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        (self.which)(&self.counters).fetch_sub(1, Ordering::Relaxed);
    }
}

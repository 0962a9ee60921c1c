//! Numbers for metrics.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::address::Address;

/// What a [`super::Host`] has done and does, at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Requests asked for, upgrades included.
    pub requests: u64,
    /// Requests whose response body has not ended, watches included.
    pub in_flight: usize,
    /// Times a request was sent again.
    pub retries: u64,
    /// HTTP/2 connections that were begun.
    pub connections_begun: u64,
    /// Of those, how many came to nothing.
    pub connections_failed: u64,
    /// HTTP/2 connections that are open, those that only wait for their last stream included.
    pub connections_open: usize,
    /// Each API server, in order of preference.
    pub servers: Vec<ServerStatistics>,
}

/// One API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerStatistics {
    /// Where.
    pub address: Address,
    /// Whether requests go there, if it is their turn.
    pub up: bool,
    /// HTTP/2 connections that take requests.
    pub connections: usize,
    /// Streams on them.
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

/// Something that is counted while it lasts.
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

    /// Returns the connection's number.
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

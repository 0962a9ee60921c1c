//! The network between this proxy-server and each agent: how much it carries, and how well.
//!
//! All tunnels of an agent share one [`Link`], which outlives them. What is *not* here: the state of single tunnels.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ops::metrics::{Counter, Family, Histogram, Registry as Metrics};
use protocol::AgentId;
use tunnel::metered::Meter;

/// Upper bounds of round trips in seconds: from a local network to a satellite, or a link that is congested.
const ROUND_TRIPS: &[f64] = &[0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0];

/// Above this number, links without tunnels are dropped, and their totals vanish from the status. Links with tunnels
/// are never dropped, even if there are more. Every agent needs a certificate of the operator, so this number is never
/// reached by accident.
const MAX_LINKS: usize = 10_000;

/// The links to all agents that were connected since this process started.
#[derive(Debug)]
pub struct Links {
    families: Families,
    all: Mutex<BTreeMap<AgentId, Arc<Link>>>,
}

/// The link to one agent.
#[derive(Debug)]
pub struct Link {
    /// Bytes that this proxy-server has received through its tunnels, without TLS.
    received: Counter,
    /// Bytes that this proxy-server has sent through its tunnels, without TLS.
    sent: Counter,
    /// Bytes of compressed bodies that this proxy-server has received.
    encoded: Counter,
    /// The length of these bodies after decompression.
    decoded: Counter,
    /// Tunnels that the agent has registered.
    tunnels: Counter,
    round_trips: Histogram,
}

/// The figures of a link since this process started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes that this proxy-server has received through its tunnels, without TLS.
    pub received: u64,
    /// Bytes that this proxy-server has sent through its tunnels, without TLS.
    pub sent: u64,
    /// Bytes of compressed bodies that this proxy-server has received.
    pub encoded: u64,
    /// The length of these bodies after decompression.
    pub decoded: u64,
    /// Tunnels that the agent has registered.
    pub tunnels: u64,
}

#[derive(Debug)]
struct Families {
    received: Family<OfAgent, Counter>,
    sent: Family<OfAgent, Counter>,
    encoded: Family<OfAgent, Counter>,
    decoded: Family<OfAgent, Counter>,
    tunnels: Family<OfAgent, Counter>,
    round_trips: Family<OfAgent, Histogram>,
}

ops::label_set! {
    /// One agent.
    struct OfAgent {
        agent: Arc<str>,
    }
}

// === impl Links ===

impl Links {
    /// Registers the metrics.
    pub fn new(metrics: &Metrics) -> Self {
        let families = Families {
            received: metrics.counters(
                "atoll_link_received_bytes_total",
                "Bytes that this proxy-server has received through tunnels of the agent, without TLS.",
            ),
            sent: metrics.counters(
                "atoll_link_sent_bytes_total",
                "Bytes that this proxy-server has sent through tunnels of the agent, without TLS.",
            ),
            encoded: metrics.counters(
                "atoll_link_compressed_bytes_total",
                "Bytes of compressed bodies that this proxy-server has received from the agent.",
            ),
            decoded: metrics.counters(
                "atoll_link_decompressed_bytes_total",
                "Bytes of these compressed bodies after decompression.",
            ),
            tunnels: metrics.counters(
                "atoll_link_tunnels_total",
                "Tunnels that the agent has registered. It grows with each reconnect.",
            ),
            round_trips: metrics.histograms(
                "atoll_link_round_trip_seconds",
                "Round-trip times of the PING frames that this proxy-server sends to the agent.",
                ROUND_TRIPS,
            ),
        };
        Self { families, all: Mutex::default() }
    }

    /// The link to an agent.
    pub fn of(&self, agent: &AgentId) -> Arc<Link> {
        let mut all = self.lock();
        if let Some(link) = all.get(agent) {
            return Arc::clone(link);
        }
        if all.len() >= MAX_LINKS {
            all.retain(|_, link| Arc::strong_count(link) > 1);
        }
        let link = Arc::new(self.families.link(agent));
        all.insert(agent.clone(), Arc::clone(&link));
        link
    }

    /// The figures of all links, by agent.
    pub fn all(&self) -> Vec<(AgentId, Traffic)> {
        self.lock().iter().map(|(agent, link)| (agent.clone(), link.traffic())).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<AgentId, Arc<Link>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Families ===

impl Families {
    fn link(&self, agent: &AgentId) -> Link {
        let agent = OfAgent { agent: agent.as_str().into() };
        Link {
            received: self.received.with(&agent),
            sent: self.sent.with(&agent),
            encoded: self.encoded.with(&agent),
            decoded: self.decoded.with(&agent),
            tunnels: self.tunnels.with(&agent),
            round_trips: self.round_trips.with(&agent),
        }
    }
}

// === impl Link ===

impl Link {
    /// A tunnel was registered.
    pub fn connected(&self) {
        self.tunnels.inc();
    }

    /// A PING frame was acknowledged.
    pub fn measured(&self, round_trip: Duration) {
        self.round_trips.observe_duration(round_trip);
    }

    /// A part of a compressed body was decompressed.
    pub fn decompressed(&self, encoded: u64, decoded: u64) {
        self.encoded.add(encoded);
        self.decoded.add(decoded);
    }

    fn traffic(&self) -> Traffic {
        Traffic {
            received: self.received.get(),
            sent: self.sent.get(),
            encoded: self.encoded.get(),
            decoded: self.decoded.get(),
            tunnels: self.tunnels.get(),
        }
    }
}

impl Meter for Link {
    fn received(&self, bytes: u64) {
        self.received.add(bytes);
    }

    fn sent(&self, bytes: u64) {
        self.sent.add(bytes);
    }
}

#[cfg(test)]
mod tests {
    use ops::metrics::Build;

    use super::*;

    #[test]
    fn tunnels_of_an_agent_share_a_link() {
        let metrics = Metrics::new(Build { component: "test", version: "0" });
        let links = Links::new(&metrics);
        let (one, other) = ("site-a".parse().unwrap(), "site-b".parse().unwrap());
        for link in [links.of(&one), links.of(&one)] {
            link.connected();
            link.received(1000);
            link.decompressed(500, 4000);
        }
        links.of(&other).sent(7);
        let shared = Traffic { received: 2000, sent: 0, encoded: 1000, decoded: 8000, tunnels: 2 };
        let quiet = Traffic { received: 0, sent: 7, encoded: 0, decoded: 0, tunnels: 0 };
        assert_eq!(links.all(), [(one, shared), (other, quiet)]);
        assert!(metrics.encode().contains("atoll_link_received_bytes_total{agent=\"site-a\"} 2000"));
    }
}

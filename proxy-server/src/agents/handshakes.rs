//! The rate at which TLS handshakes of agents begin.
//!
//! When thousands of agents connect at the same time, their handshakes would take all CPU time for seconds, and the requests of
//! clients through other tunnels would wait. So handshakes begin at a limited rate. An agent for which the queue is too long is
//! disconnected, and tries again later, at a random time.
//!
//! Nobody is authenticated before the handshake, so others could fill the queue. A turn begins only after a `ClientHello`, a network
//! may have half of the queue, and networks from which agents have authenticated have a queue of their own.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::available_parallelism;
use std::time::Duration;

use ops::metrics::{Counter, Family, Registry};
use tokio::time::{Instant, sleep_until};

use crate::limits::Network;

/// Handshakes per second and processor. One needs less than a millisecond, so they use at most a third of the CPU time.
const PER_PROCESSOR: u32 = 400;

/// The number of handshakes that may begin at the same time, per processor.
const BURST: u32 = 50;

/// The longest time for which a handshake waits. It is shorter than the time for which agents wait for the handshake.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// The maximum number of networks that are remembered.
const MAX_KNOWN: usize = 20_000;

/// Limits the rate (the generic cell rate algorithm of ITU-T I.371: an instant is the whole state of a queue).
#[derive(Debug)]
pub struct HandshakeRate {
    interval: Duration,
    /// How long before its time a handshake may begin.
    tolerance: Duration,
    /// How many handshakes of one network may wait: half of the queue, because nobody is authenticated yet.
    most: u32,
    state: Mutex<State>,
    outcomes: Family<Outcome, Counter>,
}

ops::label_set! {
    /// How a handshake ended.
    struct Outcome {
        outcome: &'static str,
    }
}

#[derive(Debug)]
struct State {
    /// When the next handshake is due if they are evenly spread: of networks without agents, and of those with agents.
    next: [Instant; 2],
    /// The numbers of handshakes that wait.
    waiting: HashMap<Network, u32>,
    /// Networks from which agents have authenticated. Forgotten when there are too many.
    known: HashSet<Network>,
}

/// A handshake that waits.
#[derive(Debug)]
struct Waiting<'r> {
    rate: &'r HandshakeRate,
    network: Network,
    begin: Instant,
}

// === impl HandshakeRate ===

impl HandshakeRate {
    /// The rate of this machine. Registers the metric of outcomes.
    #[must_use]
    pub fn of_machine(metrics: &Registry) -> Self {
        let processors = available_parallelism().map_or(1, |count| u32::try_from(count.get()).unwrap_or(1));
        Self::new(PER_PROCESSOR * processors, BURST * processors, metrics)
    }

    fn new(per_second: u32, burst: u32, metrics: &Registry) -> Self {
        let outcomes = metrics.counters("atoll_handshakes_total", "TLS handshakes of agents, by outcome.");
        let interval = Duration::from_secs(1) / per_second;
        let most = per_second * u32::try_from(MAX_WAIT.as_secs()).unwrap_or(1) / 2;
        let state = State { next: [Instant::now(); 2], waiting: HashMap::new(), known: HashSet::new() };
        Self { interval, tolerance: interval * burst, most, state: Mutex::new(state), outcomes }
    }

    /// Waits until a handshake of this network may begin. `false`: too many wait already.
    pub(super) async fn wait(&self, network: Network) -> bool {
        let Some(waiting) = self.reserve(Instant::now(), network) else { return false };
        sleep_until(waiting.begin).await;
        true
    }

    /// An agent from this network has authenticated.
    pub(super) fn authenticated(&self, network: Network) {
        let mut state = self.lock();
        if state.known.len() >= MAX_KNOWN {
            state.known.clear();
        }
        state.known.insert(network);
    }

    /// Counts a connection of an agent by the outcome of its handshake.
    pub(super) fn count(&self, outcome: &'static str) {
        self.outcomes.with(&Outcome { outcome }).inc();
    }

    fn reserve(&self, now: Instant, network: Network) -> Option<Waiting<'_>> {
        let mut state = self.lock();
        let queue = usize::from(state.known.contains(&network));
        let due = state.next[queue].max(now);
        let wait = due.saturating_duration_since(now).saturating_sub(self.tolerance);
        let own = state.waiting.get(&network).copied().unwrap_or_default();
        if wait > MAX_WAIT || own >= self.most {
            return None;
        }
        state.next[queue] = due + self.interval;
        state.waiting.insert(network, own + 1);
        Some(Waiting { rate: self, network, begin: now + wait })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Waiting ===

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Entry::Occupied(mut own) = self.rate.lock().waiting.entry(self.network) {
            *own.get_mut() -= 1;
            if *own.get() == 0 {
                own.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use ops::metrics::Build;

    use super::*;

    fn rate() -> HandshakeRate {
        HandshakeRate::new(100, 10, &Registry::new(Build { component: "test", version: "0" }))
    }

    fn network(text: &str) -> Network {
        text.parse::<IpAddr>().unwrap().into()
    }

    #[test]
    fn a_burst_begins_at_once_and_the_rest_evenly() {
        let rate = rate();
        let now = Instant::now() + Duration::from_secs(1);
        // Each has its own network.
        let waiting: Vec<Waiting<'_>> = (0..1_000)
            .map_while(|number| rate.reserve(now, network(&format!("10.0.{}.{}", number / 256, number % 256))))
            .collect();
        assert!(waiting.iter().take(11).all(|waiting| waiting.begin == now));
        assert_eq!(waiting[20].begin - now, Duration::from_millis(100));
        // Ten at once, and a hundred per second for five seconds.
        assert_eq!(waiting.len(), 511);
        drop(waiting);
        assert!(rate.lock().waiting.is_empty());
        let later = now + Duration::from_secs(60);
        assert_eq!(rate.reserve(later, network("10.0.0.1")).unwrap().begin, later, "the rate forgets");
    }

    #[test]
    fn one_network_cannot_keep_the_others_out() {
        let rate = rate();
        let now = Instant::now();
        let flood: Vec<Waiting<'_>> = (0..1_000).map_while(|_| rate.reserve(now, network("192.0.2.1"))).collect();
        assert_eq!(flood.len(), 250);
        let other = rate.reserve(now, network("192.0.2.2")).unwrap();
        assert!(other.begin - now < Duration::from_millis(2_500));
        rate.authenticated(network("192.0.2.3"));
        assert_eq!(rate.reserve(now, network("192.0.2.3")).unwrap().begin, now);
    }
}

//! How many tunnels an address needs.
//!
//! A tunnel is one TLS connection, so one thread here and one at the proxy-server do all of its work. These two threads
//! take turns: while one of them processes what has arrived, the other one waits for it. With several tunnels, all cores
//! have work. A tunnel without requests costs memory at the proxy-server, and keepalives, so an agent opens more than
//! one only when it is busy. It closes none: a proxy-server still sends requests to a tunnel that is closing.
//!
//! What is *not* here: clocks, threads and connections ([`super::address`]).

use std::time::Duration;

/// How often the workers are observed.
pub(super) const PERIOD: Duration = Duration::from_secs(1);

/// Workers are busy if they work for at least this part of the time.
const BUSY: f64 = 0.4;

/// The number of periods in which workers have to be busy before another tunnel is opened.
const BUSY_PERIODS: u32 = 2;

/// The maximum number of tunnels to one address. A proxy-server accepts 64 from all replicas of an agent together, and each
/// tunnel may hold unread data up to a limit of its own.
pub(super) const MAX_TUNNELS: usize = 4;

/// What the workers have done in the last periods.
#[derive(Debug, Default)]
pub(super) struct Demand {
    busy: u32,
}

// === impl Demand ===

impl Demand {
    /// Takes the part of the last [`PERIOD`] in which each worker with a tunnel worked. Returns whether to open another
    /// tunnel. All workers have to be busy: otherwise, new connections of clients can use the tunnel of one that is not.
    pub(super) fn observe(&mut self, worked: impl IntoIterator<Item = f64>) -> bool {
        self.busy = if worked.into_iter().all(|part| part >= BUSY) { self.busy + 1 } else { 0 };
        let is_long = self.busy >= BUSY_PERIODS;
        if is_long {
            self.busy = 0;
        }
        is_long
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_that_stay_busy_get_another_tunnel() {
        let mut demand = Demand::default();
        assert!(!demand.observe([0.9]));
        assert!(demand.observe([0.4]));
        // Each tunnel is given time to show what it changes.
        assert!(!demand.observe([0.9, 0.9]));
        assert!(demand.observe([0.9, 0.9]));
    }

    #[test]
    fn one_worker_with_time_is_enough() {
        let mut demand = Demand::default();
        assert!((0..1000).all(|_| !demand.observe([1.0, 0.39])));
        assert!(!demand.observe([1.0, 1.0]));
        assert!(!demand.observe([1.0, 0.2]));
        assert!(!demand.observe([1.0, 1.0]));
    }
}

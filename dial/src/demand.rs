//! Decides how many tunnels to an address are needed.
//!
//! A tunnel is one TLS connection, so one thread here and one at the proxy-server do all of its work. Often, one of these
//! threads waits for the other one. With several tunnels, all cores have work. A tunnel without requests costs memory at the proxy-server, and keepalives, so an agent opens more than
//! one only while it is busy.
//!
//! What is *not* here: clocks, threads and connections ([`super::address`]).

use std::time::Duration;

/// How often the workers are observed.
pub(super) const PERIOD: Duration = Duration::from_secs(1);

/// Workers are busy if they work for at least this part of the time.
const BUSY: f64 = 0.4;

/// Workers are idle if they work for less than this part of the time.
const IDLE: f64 = 0.05;

/// The number of periods in which workers have to be busy before another tunnel is opened.
const BUSY_PERIODS: u32 = 2;

/// The number of periods in which workers have to be idle before the last tunnel is closed. It is long, so that the tunnel
/// is still open for the next burst of requests.
const IDLE_PERIODS: u32 = 300;

/// The maximum number of tunnels to one address. A proxy-server accepts 64 from all replicas of an agent together, and each
/// tunnel may hold unread data up to a limit of its own.
pub(super) const MAX_TUNNELS: usize = 4;

/// The numbers of successive periods in which the workers were busy or idle.
#[derive(Debug, Default)]
pub(super) struct Demand {
    busy: u32,
    idle: u32,
}

/// What to do with the tunnels to an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// Open another one.
    Open,
    /// Close the last one.
    Close,
}

// === impl Demand ===

impl Demand {
    /// Takes the part of the last [`PERIOD`] in which each worker with a tunnel worked. Another tunnel is opened only if all
    /// workers are busy: otherwise, new connections of clients can use the tunnel of a worker that is not.
    pub(super) fn observe(&mut self, worked: impl IntoIterator<Item = f64>) -> Option<Change> {
        let (mut all_busy, mut all_idle) = (true, true);
        for part in worked {
            all_busy &= part >= BUSY;
            all_idle &= part < IDLE;
        }
        self.busy = if all_busy { self.busy + 1 } else { 0 };
        self.idle = if all_idle { self.idle + 1 } else { 0 };
        let change = match self {
            Self { busy: BUSY_PERIODS.., .. } => Change::Open,
            Self { idle: IDLE_PERIODS.., .. } => Change::Close,
            _ => return None,
        };
        *self = Self::default();
        Some(change)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_that_stay_busy_get_another_tunnel() {
        let mut demand = Demand::default();
        assert_eq!(demand.observe([0.9]), None);
        assert_eq!(demand.observe([0.4]), Some(Change::Open));
        // Each tunnel is given time to show what it changes.
        assert_eq!(demand.observe([0.9, 0.9]), None);
        assert_eq!(demand.observe([0.9, 0.9]), Some(Change::Open));
    }

    #[test]
    fn one_worker_with_time_is_enough() {
        let mut demand = Demand::default();
        assert!((0..1000).all(|_| demand.observe([1.0, 0.39]).is_none()));
        assert_eq!(demand.observe([1.0, 1.0]), None);
        assert_eq!(demand.observe([1.0, 0.2]), None);
        assert_eq!(demand.observe([1.0, 1.0]), None);
    }

    #[test]
    fn a_tunnel_closes_after_five_idle_minutes() {
        let mut demand = Demand::default();
        let mut idle = |last: f64| {
            assert!((1..IDLE_PERIODS).all(|_| demand.observe([0.0, 0.01]).is_none()));
            demand.observe([0.0, last])
        };
        assert_eq!(idle(0.06), None);
        assert_eq!(idle(0.0), Some(Change::Close));
        assert_eq!(idle(0.0), Some(Change::Close));
    }
}

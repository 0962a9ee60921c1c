//! Whether to use an address.
//!
//! ```text
//! Up --failed--> Down(1 s) --failed when probed--> Down(2 s) ... Down(30 s)
//! Down --works--> Up;  Up --failed within 30 s--> Down, with the previous wait
//! ```

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use super::limits::{PROBE_BACKOFF, STABLE_TIME};

/// The health of one address.
#[derive(Debug)]
pub(super) struct Health(Mutex<State>);

#[derive(Clone, Copy, Debug)]
enum State {
    /// `failures` were counted before it came back at `since`.
    Up {
        since: Option<Instant>,
        failures: u32,
    },
    Down {
        failures: u32,
        probe_at: Instant,
    },
}

// === impl Health ===

impl Health {
    /// An address is considered up at first.
    pub(super) fn new() -> Self {
        Self(Mutex::new(State::Up { since: None, failures: 0 }))
    }

    /// `None` if it is up; otherwise the time of the next attempt.
    pub(super) fn down_until(&self) -> Option<Instant> {
        match *self.lock() {
            State::Up { .. } => None,
            State::Down { probe_at, .. } => Some(probe_at),
        }
    }

    /// Records that a connection failed, or that the server no longer responds. Returns whether the state has changed.
    pub(super) fn failed(&self, now: Instant) -> bool {
        let mut state = self.lock();
        let (failures, was_up) = match *state {
            // Many requests may wait for one connection, whose failure counts once.
            State::Down { probe_at, .. } if now < probe_at => return false,
            State::Down { failures, .. } => (failures, false),
            State::Up { since: Some(since), failures } if now < since + STABLE_TIME => (failures, true),
            State::Up { .. } => (0, true),
        };
        // Jitter, so that agents reconnect to the same API server at different times.
        let wait = PROBE_BACKOFF.after(failures).fail_with_half_jitter();
        *state = State::Down { failures: failures.saturating_add(1), probe_at: now + wait };
        was_up
    }

    /// Records a successful connection. Returns whether the state has changed.
    pub(super) fn works(&self, now: Instant) -> bool {
        let mut state = self.lock();
        match *state {
            State::Up { .. } => false,
            State::Down { failures, .. } => {
                *state = State::Up { since: Some(now), failures };
                true
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn backoff_doubles_and_one_failure_counts_once() {
        let health = Health::new();
        let mut now = Instant::now();
        assert!(health.failed(now));
        for failures in 0..200 {
            let (until, bound) = (health.down_until().unwrap(), PROBE_BACKOFF.after(failures).bound());
            assert!(until <= now + bound && until >= now + bound / 2);
            assert!(!health.failed(until - Duration::from_millis(1)));
            assert_eq!(health.down_until(), Some(until));
            now = until;
            assert!(!health.failed(now));
        }
        assert!(health.works(now) && !health.works(now));
        assert_eq!(health.down_until(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_flapping_address_keeps_its_backoff() {
        let health = Health::new();
        let now = Instant::now();
        for _ in 0..4 {
            health.failed(health.down_until().unwrap_or(now));
        }
        let back = health.down_until().unwrap();
        health.works(back);
        health.failed(back + Duration::from_secs(1));
        assert!(health.down_until().unwrap() > back + Duration::from_secs(8));
        let back = health.down_until().unwrap();
        health.works(back);
        health.failed(back + STABLE_TIME);
        assert!(health.down_until().unwrap() <= back + STABLE_TIME + PROBE_BACKOFF.bound());
    }
}

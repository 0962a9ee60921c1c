//! The rate at which TLS handshakes of agents begin.
//!
//! When thousands of agents connect at the same time, their handshakes would take all CPU time for seconds, and the requests of
//! clients through other tunnels would wait. So handshakes begin at a limited rate. An agent for which the queue is too long is
//! disconnected, and tries again later, at a random time.

use std::sync::{Mutex, PoisonError};
use std::thread::available_parallelism;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// Handshakes per second and processor. One needs less than a millisecond, so they use at most a third of the CPU time.
const PER_PROCESSOR: u32 = 400;

/// The number of handshakes that may begin at the same time, per processor.
const BURST: u32 = 50;

/// The longest time for which a handshake waits. It is shorter than the time for which agents wait for the handshake.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// Limits the rate (the generic cell rate algorithm of ITU-T I.371: one instant is its whole state).
#[derive(Debug)]
pub struct HandshakeRate {
    interval: Duration,
    /// How long before its time a handshake may begin.
    tolerance: Duration,
    /// When the next handshake is due if they are evenly spread.
    next: Mutex<Instant>,
}

// === impl HandshakeRate ===

impl HandshakeRate {
    /// The rate of this machine.
    #[must_use]
    pub fn of_machine() -> Self {
        let processors = available_parallelism().map_or(1, |count| u32::try_from(count.get()).unwrap_or(1));
        Self::new(PER_PROCESSOR * processors, BURST * processors)
    }

    fn new(per_second: u32, burst: u32) -> Self {
        let interval = Duration::from_secs(1) / per_second;
        Self { interval, tolerance: interval * burst, next: Mutex::new(Instant::now()) }
    }

    /// Waits until a handshake may begin. `false`: too many wait already.
    pub(super) async fn wait(&self) -> bool {
        let Some(begin) = self.reserve(Instant::now()) else { return false };
        sleep_until(begin).await;
        true
    }

    fn reserve(&self, now: Instant) -> Option<Instant> {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let due = (*next).max(now);
        let wait = due.saturating_duration_since(now).saturating_sub(self.tolerance);
        if wait > MAX_WAIT {
            return None;
        }
        *next = due + self.interval;
        Some(now + wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_begins_at_once_and_the_rest_evenly() {
        let rate = HandshakeRate::new(100, 10);
        let now = Instant::now() + Duration::from_secs(1);
        let begins: Vec<Instant> = (0..1_000).map_while(|_| rate.reserve(now)).collect();
        assert!(begins.iter().take(11).all(|begin| *begin == now));
        assert_eq!(begins[20] - now, Duration::from_millis(100));
        // Ten at once, and a hundred per second for five seconds.
        assert_eq!(begins.len(), 511);
        assert_eq!(
            rate.reserve(now + Duration::from_secs(1)).map(|begin| begin - now),
            Some(Duration::from_millis(5_010))
        );
        let later = now + Duration::from_secs(60);
        assert_eq!(rate.reserve(later), Some(later), "the rate forgets");
    }
}

//! Exponential back-off with full jitter: after a restart of a proxy-server, a thousand agents reconnect at different
//! times.

use std::time::Duration;

/// The first wait is at most this.
const BASE: Duration = Duration::from_millis(250);
/// No wait is longer.
const CAP: Duration = Duration::from_secs(30);

/// Waits between attempts.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    failures: u32,
}

// === impl Backoff ===

impl Backoff {
    /// The next wait: uniform between nothing and a bound that doubles.
    pub(super) fn next(&mut self) -> Duration {
        let bound = BASE.saturating_mul(1 << self.failures.min(16)).min(CAP);
        self.failures = self.failures.saturating_add(1);
        bound.mul_f64(fastrand::f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_double_up_to_the_cap_for_ever() {
        let mut backoff = Backoff::default();
        for failure in 0..200_u32 {
            let bound = BASE.saturating_mul(1 << failure.min(16)).min(CAP);
            assert!(backoff.next() <= bound);
        }
        assert_eq!(backoff.failures, 200);
    }
}

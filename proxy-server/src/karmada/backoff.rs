//! When to look again.

use std::time::Duration;

/// After a failure: at most this, then twice as much each time.
const BASE: Duration = Duration::from_secs(1);
/// Never longer.
const CAP: Duration = Duration::from_secs(60);
/// While everything is as it should be, give or take a quarter.
const RESYNC: Duration = Duration::from_secs(60);
/// While no agent is there: it comes without telling, and asking costs nothing.
const ABSENT: Duration = Duration::from_secs(1);

/// Waits between two looks at one cluster.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    failures: u32,
}

// === impl Backoff ===

impl Backoff {
    /// After a good one.
    pub(super) fn good(&mut self) -> Duration {
        self.failures = 0;
        RESYNC.mul_f64(0.75 + fastrand::f64() / 2.0)
    }

    /// After a failure. Half of it is chance: proxy-servers that began together must not go on together.
    pub(super) fn failed(&mut self) -> Duration {
        let bound = BASE.saturating_mul(1 << self.failures.min(16)).min(CAP);
        self.failures = self.failures.saturating_add(1);
        bound.mul_f64(0.5 + fastrand::f64() / 2.0)
    }

    /// While no agent is there, which is nobody's failure.
    pub(super) fn absent(&mut self) -> Duration {
        self.failures = 0;
        ABSENT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_waited_for_longer_and_longer_up_to_a_minute() {
        let mut backoff = Backoff::default();
        for failure in 0..100_u32 {
            let bound = BASE.saturating_mul(1 << failure.min(16)).min(CAP);
            let wait = backoff.failed();
            assert!(wait >= bound / 2 && wait <= bound, "{failure}: {wait:?}");
        }
        assert!(backoff.good() >= RESYNC / 2);
        assert!(backoff.failed() <= BASE);
    }
}

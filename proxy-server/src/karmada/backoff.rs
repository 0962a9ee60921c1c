//! The pauses between two passes.

use std::time::Duration;

/// The first pause after a failure. It doubles with each further failure.
const BASE: Duration = Duration::from_secs(1);
/// The longest pause after a failure.
const CAP: Duration = Duration::from_secs(60);
/// The pause after a success, plus or minus a quarter.
const RESYNC: Duration = Duration::from_secs(60);
/// The pause while no agent is connected. Nothing reports the connection, and a check is cheap.
const ABSENT: Duration = Duration::from_secs(1);

/// Waits between two passes for one cluster.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    failures: u32,
}

// === impl Backoff ===

impl Backoff {
    /// The pause after a success.
    pub(super) fn good(&mut self) -> Duration {
        self.failures = 0;
        RESYNC.mul_f64(0.75 + fastrand::f64() / 2.0)
    }

    /// The pause after a failure. Half of it is random, so that proxy-servers that started together do not stay in
    /// step.
    pub(super) fn failed(&mut self) -> Duration {
        let bound = BASE.saturating_mul(1 << self.failures.min(16)).min(CAP);
        self.failures = self.failures.saturating_add(1);
        bound.mul_f64(0.5 + fastrand::f64() / 2.0)
    }

    /// The pause while no agent is connected, which is not a failure.
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

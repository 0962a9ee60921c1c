//! The pauses between two passes.

use std::time::Duration;

use ops::backoff::Backoff;

/// The pauses after failures.
const FAILURES: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(60));
/// The pause after a success, plus or minus a quarter.
const RESYNC: Duration = Duration::from_secs(60);
/// The pause while no agent is connected. There is no notification of the connection, and a check is cheap.
const ABSENT: Duration = Duration::from_secs(1);

/// Waits between two passes for one cluster.
#[derive(Debug)]
pub(super) struct Pauses(Backoff);

// === impl Pauses ===

impl Pauses {
    /// The pause after a success.
    pub(super) fn after_success(&mut self) -> Duration {
        self.0.reset();
        RESYNC.mul_f64(0.75 + fastrand::f64() / 2.0)
    }

    /// The pause after a failure. Half of it is random, so that proxy-servers that started together do not stay in
    /// step.
    pub(super) fn after_failure(&mut self) -> Duration {
        self.0.fail_with_half_jitter()
    }

    /// The pause while no agent is connected, which is not a failure.
    pub(super) fn without_agent(&mut self) -> Duration {
        self.0.reset();
        ABSENT
    }
}

impl Default for Pauses {
    fn default() -> Self {
        Self(FAILURES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_after_failures_grows_up_to_a_minute() {
        let mut pauses = Pauses::default();
        for failure in 0..100_u32 {
            let bound = FAILURES.after(failure).bound();
            let wait = pauses.after_failure();
            assert!(wait >= bound / 2 && wait <= bound, "{failure}: {wait:?}");
        }
        assert!(pauses.after_success() >= RESYNC / 2);
        assert!(pauses.after_failure() <= FAILURES.bound());
    }
}

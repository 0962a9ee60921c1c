//! A limit on the total time of waits that hold up other work.

use std::time::Duration;

use tokio::time::Instant;

/// The maximum time of one wait.
const MAXIMUM: Duration = Duration::from_millis(500);

/// A shorter wait is not worth its timer.
const MINIMUM: Duration = Duration::from_millis(10);

/// The time that is gained in a second.
const GAINED: f64 = 0.05;

/// The time that is left for waits. It grows by a twentieth of the time that passes, up to the maximum of one wait. So the
/// waits together take little of the time, whatever they wait for.
#[derive(Debug)]
pub(crate) struct WaitBudget {
    left: Duration,
    at: Instant,
}

// === impl WaitBudget ===

impl WaitBudget {
    pub(crate) fn new() -> Self {
        Self { left: MAXIMUM, at: Instant::now() }
    }

    /// The time that a wait may take that begins now. Zero if there must be none.
    pub(crate) fn left(&mut self, now: Instant) -> Duration {
        let gained = now.duration_since(self.at).mul_f64(GAINED);
        self.at = now;
        self.left = (self.left + gained).min(MAXIMUM);
        if self.left < MINIMUM { Duration::ZERO } else { self.left }
    }

    /// A wait has taken this long.
    pub(crate) fn spend(&mut self, waited: Duration) {
        self.left = self.left.saturating_sub(waited);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn waits_take_a_twentieth_of_the_time() {
        let mut wait_budget = WaitBudget::new();
        let mut waited = Duration::ZERO;
        // As many waits in vain as fit into 100 seconds.
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(100) {
            let wait = wait_budget.left(Instant::now());
            assert!(wait <= MAXIMUM);
            tokio::time::advance(wait).await;
            wait_budget.spend(wait);
            waited += wait;
            tokio::time::advance(Duration::from_millis(10)).await;
        }
        assert!(waited < Duration::from_secs(6), "{waited:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_quiet_minute_restores_the_whole_wait() {
        let mut wait_budget = WaitBudget::new();
        wait_budget.spend(MAXIMUM);
        assert_eq!(wait_budget.left(Instant::now()), Duration::ZERO);
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(wait_budget.left(Instant::now()), MAXIMUM);
    }
}

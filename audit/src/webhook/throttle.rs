//! Limits the rate of requests (client-go's `util/flowcontrol`: a token bucket).

use std::num::NonZeroU32;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// A token bucket, as the time at which it is full again.
#[derive(Debug)]
pub(super) struct Throttle {
    /// The time for one token.
    interval: Duration,
    burst: u32,
    full_at: Instant,
}

// === impl Throttle ===

impl Throttle {
    /// A full bucket.
    pub(super) fn new(per_second: NonZeroU32, burst: NonZeroU32) -> Self {
        Self { interval: Duration::from_secs(1) / per_second.get(), burst: burst.get(), full_at: Instant::now() }
    }

    /// Takes a token. Waits until there is one.
    pub(super) async fn enter(&mut self) {
        self.full_at = self.full_at.max(Instant::now()) + self.interval;
        let whole = self.interval * self.burst;
        if self.full_at.saturating_duration_since(Instant::now()) > whole
            && let Some(at) = self.full_at.checked_sub(whole)
        {
            sleep_until(at).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn after_a_burst_requests_have_the_rate() {
        let number = |n| NonZeroU32::new(n).unwrap();
        let mut throttle = Throttle::new(number(10), number(3));
        let mut at = Vec::new();
        let began = Instant::now();
        for _ in 0..6 {
            throttle.enter().await;
            at.push(began.elapsed().as_millis() / 50);
        }
        assert_eq!(at, [0, 0, 0, 2, 4, 6]);
    }
}

//! Exponential back-off: how long to wait before the next attempt.
//!
//! What is *not* here: how often to try, and what counts as a failure.

use std::time::Duration;

/// Pauses that double with each failure, up to a maximum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    first: Duration,
    max: Duration,
    failures: u32,
}

// === impl Backoff ===

impl Backoff {
    /// No attempt has failed yet. The first pause is `first`, and none is longer than `max`.
    pub const fn new(first: Duration, max: Duration) -> Self {
        Self { first, max, failures: 0 }
    }

    /// The same after this many failures.
    #[must_use]
    pub const fn after(self, failures: u32) -> Self {
        Self { failures, ..self }
    }

    /// The number of failures since the last success.
    pub const fn failures(&self) -> u32 {
        self.failures
    }

    /// An attempt has succeeded: the next pause is the first one again.
    pub const fn reset(&mut self) {
        self.failures = 0;
    }

    /// The next pause, without jitter.
    pub fn bound(&self) -> Duration {
        // From 2^16 on, every pair of constants has reached its maximum.
        self.first.saturating_mul(1 << self.failures.min(16)).min(self.max)
    }

    /// An attempt has failed. Returns the pause before the next one: for something that only we wait for, such as a
    /// cache of the host that is some milliseconds behind.
    pub fn fail(&mut self) -> Duration {
        let bound = self.bound();
        self.failures = self.failures.saturating_add(1);
        bound
    }

    /// Like [`fail`](Self::fail), with a pause between half of it and all of it, so that processes that failed together
    /// do not stay in step.
    pub fn fail_with_half_jitter(&mut self) -> Duration {
        self.fail().mul_f64(0.5 + fastrand::f64() / 2.0)
    }

    /// Like [`fail`](Self::fail), with a pause between nothing and all of it: after a restart of a server, a thousand
    /// clients reconnect at different times.
    pub fn fail_with_full_jitter(&mut self) -> Duration {
        self.fail().mul_f64(fastrand::f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Duration = Duration::from_millis(250);
    const MAX: Duration = Duration::from_secs(30);

    #[test]
    fn pauses_double_up_to_the_maximum() {
        let mut backoff = Backoff::new(FIRST, MAX);
        let mut expected = FIRST;
        for failure in 0..200 {
            assert_eq!((backoff.failures(), backoff.bound()), (failure, expected));
            assert_eq!(backoff.fail(), expected);
            expected = (expected * 2).min(MAX);
        }
        assert_eq!(backoff, Backoff::new(FIRST, MAX).after(200));
        assert_eq!(backoff.after(u32::MAX).fail(), MAX);
        backoff.reset();
        assert_eq!(backoff.fail(), FIRST);
    }

    #[test]
    fn jitter_only_shortens_a_pause() {
        let mut backoff = Backoff::new(FIRST, MAX);
        for _ in 0..200 {
            let bound = backoff.bound();
            assert!({ backoff }.fail_with_full_jitter() <= bound);
            let pause = backoff.fail_with_half_jitter();
            assert!(pause >= bound / 2 && pause <= bound, "{pause:?}");
        }
    }
}

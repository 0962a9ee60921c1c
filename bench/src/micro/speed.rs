//! The duration of the fastest of several rounds.

#![expect(clippy::disallowed_types, reason = "it measures real time")]

use std::time::{Duration, Instant};

/// The time for a number of bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Speed {
    pub(super) bytes: usize,
    pub(super) time: Duration,
}

// === impl Speed ===

impl Speed {
    /// Measures the fastest of `rounds`. Other work of the machine can only make a round slower.
    pub(super) fn of(bytes: usize, rounds: u32, mut run: impl FnMut()) -> Self {
        let times = (0..rounds.max(1)).map(|_| {
            let start = Instant::now();
            run();
            start.elapsed()
        });
        Self { bytes, time: times.min().unwrap_or_default().max(Duration::from_nanos(1)) }
    }

    #[expect(clippy::cast_precision_loss, reason = "the result is only displayed")]
    pub(super) fn megabytes_per_second(self) -> f64 {
        self.bytes as f64 / 1e6 / self.time.as_secs_f64()
    }

    /// How many times as fast as the other one.
    pub(super) fn ratio_to(self, other: Self) -> f64 {
        other.time.as_secs_f64() / self.time.as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_the_time_is_twice_as_fast() {
        let speed = |millis| Speed { bytes: 1_000_000, time: Duration::from_millis(millis) };
        assert!((speed(500).ratio_to(speed(1_000)) - 2.0).abs() < 1e-9);
        assert!((speed(500).megabytes_per_second() - 2.0).abs() < 1e-9);
    }

    #[test]
    fn every_round_is_run() {
        let mut rounds = 0;
        Speed::of(1, 5, || rounds += 1);
        assert_eq!(rounds, 5);
    }
}

//! The duration of the fastest of several rounds. In each round, all candidates take turns, so that a time in which the machine is
//! slow affects all of them.

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
    /// Measures the fastest of `rounds` for each candidate. Other work of the machine can only make a round slower.
    pub(super) fn of_each<const N: usize>(bytes: usize, rounds: u32, candidates: [&dyn Fn(); N]) -> [Self; N] {
        let mut fastest = [Duration::MAX; N];
        for _ in 0..rounds.max(1) {
            for (fastest, run) in fastest.iter_mut().zip(candidates) {
                let start = Instant::now();
                run();
                *fastest = start.elapsed().clamp(Duration::from_nanos(1), *fastest);
            }
        }
        fastest.map(|time| Self { bytes, time })
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
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn half_the_time_is_twice_as_fast() {
        let speed = |millis| Speed { bytes: 1_000_000, time: Duration::from_millis(millis) };
        assert!((speed(500).ratio_to(speed(1_000)) - 2.0).abs() < 1e-9);
        assert!((speed(500).megabytes_per_second() - 2.0).abs() < 1e-9);
    }

    #[test]
    fn candidates_take_turns() {
        let order = RefCell::new(Vec::new());
        Speed::of_each(1, 3, [&|| order.borrow_mut().push('a'), &|| order.borrow_mut().push('b')]);
        assert_eq!(order.into_inner(), ['a', 'b', 'a', 'b', 'a', 'b']);
    }
}

//! A histogram of durations, and its summary.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Any number of durations, in about 200 KB of memory. Each has three significant digits, between a microsecond and an
/// hour.
#[derive(Clone, Debug)]
pub(crate) struct Latencies {
    micros: Histogram<u64>,
}

/// In milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Summary {
    pub(crate) mean: f64,
    pub(crate) p50: f64,
    pub(crate) p90: f64,
    pub(crate) p99: f64,
    pub(crate) max: f64,
}

/// In microseconds: one hour.
const MAX_MICROS: u64 = 3_600_000_000;
const DIGITS: u8 = 3;

// === impl Latencies ===

impl Latencies {
    pub(crate) fn new() -> Self {
        let micros =
            Histogram::new_with_bounds(1, MAX_MICROS, DIGITS).expect("1 < MAX_MICROS, and there are at most 5 digits");
        Self { micros }
    }

    pub(crate) fn record(&mut self, latency: Duration) {
        let micros = u64::try_from(latency.as_micros()).unwrap_or(MAX_MICROS);
        self.micros.saturating_record(micros.max(1));
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.micros.add(&other.micros).expect("all histograms have the same bounds");
    }

    pub(crate) fn count(&self) -> u64 {
        self.micros.len()
    }

    /// The summary. All values are zero if nothing was recorded.
    pub(crate) fn summary(&self) -> Summary {
        if self.micros.is_empty() {
            return Summary::default();
        }
        let quantile = |quantile| millis(self.micros.value_at_quantile(quantile));
        Summary {
            mean: self.micros.mean() / 1e3,
            p50: quantile(0.5),
            p90: quantile(0.9),
            p99: quantile(0.99),
            max: millis(self.micros.max()),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "an hour in microseconds is less than 2^52")]
fn millis(micros: u64) -> f64 {
    micros as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn near(found: f64, wanted: f64) {
        assert!((found / wanted - 1.0).abs() < 0.002, "{found} is not {wanted}");
    }

    #[test]
    fn quantiles_are_right_to_three_digits_over_six_decades() {
        for scale in [1, 1_000, 1_000_000] {
            let mut latencies = Latencies::new();
            for n in 1..=1_000 {
                latencies.record(Duration::from_micros(n * scale));
            }
            let (summary, scale) = (latencies.summary(), Duration::from_micros(scale).as_secs_f64() * 1e3);
            near(summary.p50, 500.0 * scale);
            near(summary.p90, 900.0 * scale);
            near(summary.p99, 990.0 * scale);
            near(summary.max, 1_000.0 * scale);
            near(summary.mean, 500.5 * scale);
        }
    }

    #[test]
    fn durations_outside_the_bounds_count_as_the_bound() {
        let mut latencies = Latencies::new();
        latencies.record(Duration::ZERO);
        latencies.record(Duration::from_secs(1 << 40));
        assert_eq!(latencies.count(), 2);
        near(latencies.summary().max, 3_600_000.0);
        near(latencies.summary().p50, 0.001);
    }

    #[test]
    fn histograms_can_be_added() {
        let (mut one, mut other) = (Latencies::new(), Latencies::new());
        one.record(Duration::from_millis(1));
        other.record(Duration::from_millis(9));
        one.add(&other);
        assert_eq!(one.count(), 2);
        near(one.summary().mean, 5.0);
    }

    #[test]
    fn an_empty_histogram_has_zeros() {
        assert_eq!(Latencies::new().summary(), Summary::default());
    }
}

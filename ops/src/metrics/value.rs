//! Handles to single series. They are cheap to clone, and count without a lock.

use std::time::Duration;

use prometheus::{IntCounter, IntGauge};
use tokio::time::Instant;

/// A number that only grows.
#[derive(Clone, Debug)]
pub struct Counter {
    pub(super) inner: IntCounter,
}

/// A number that goes up and down.
#[derive(Clone, Debug)]
pub struct Gauge {
    pub(super) inner: IntGauge,
}

/// Increments a gauge until it is dropped.
#[derive(Debug)]
#[must_use = "the gauge goes down again when this is dropped"]
pub struct GaugeGuard {
    gauge: Gauge,
}

/// How often a value fell below each of several bounds.
#[derive(Clone, Debug)]
pub struct Histogram {
    pub(super) inner: prometheus::Histogram,
}

// === impl Counter ===

impl Counter {
    /// One more.
    pub fn inc(&self) {
        self.inner.inc();
    }

    /// `n` more.
    pub fn add(&self, n: u64) {
        self.inner.inc_by(n);
    }

    /// The count so far.
    pub fn get(&self) -> u64 {
        self.inner.get()
    }
}

// === impl Gauge ===

impl Gauge {
    /// Replaces the value.
    pub fn set(&self, value: i64) {
        self.inner.set(value);
    }

    /// Adds to the value; `by` may be negative.
    pub fn add(&self, by: i64) {
        self.inner.add(by);
    }

    /// Increments the gauge while the guard lives.
    pub fn enter(&self) -> GaugeGuard {
        self.inner.inc();
        GaugeGuard { gauge: self.clone() }
    }

    /// The value.
    pub fn get(&self) -> i64 {
        self.inner.get()
    }
}

impl Drop for GaugeGuard {
    fn drop(&mut self) {
        self.gauge.inner.dec();
    }
}

// === impl Histogram ===

impl Histogram {
    /// Counts a value in the unit that the metric is named after.
    pub fn observe(&self, value: f64) {
        self.inner.observe(value);
    }

    /// Counts a duration, in seconds.
    pub fn observe_duration(&self, duration: Duration) {
        self.inner.observe(duration.as_secs_f64());
    }

    /// Counts the time since `start`, in seconds.
    pub fn observe_since(&self, start: Instant) {
        self.observe_duration(start.elapsed());
    }

    /// How many values were counted.
    pub fn count(&self) -> u64 {
        self.inner.get_sample_count()
    }

    /// The sum of all values.
    pub fn sum(&self) -> f64 {
        self.inner.get_sample_sum()
    }
}

//! A gauge whose value is read when metrics are encoded.

use prometheus::IntGauge;
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;

pub(super) struct Observed<F> {
    gauge: IntGauge,
    read: F,
}

// === impl Observed ===

impl<F> Observed<F> {
    pub(super) fn new(gauge: IntGauge, read: F) -> Self {
        Self { gauge, read }
    }
}

impl<F: Fn() -> i64 + Send + Sync> Collector for Observed<F> {
    fn desc(&self) -> Vec<&Desc> {
        self.gauge.desc()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        self.gauge.set((self.read)());
        self.gauge.collect()
    }
}

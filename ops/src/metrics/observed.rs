//! Gauges whose values are read when metrics are encoded.

use std::marker::PhantomData;
use std::sync::{Mutex, PoisonError};

use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{IntGauge, IntGaugeVec};

use super::label::LabelSet;

/// The maximum number of series that one family exports.
const MAX_SERIES: usize = 10_000;

/// One gauge.
pub(super) struct Observed<F> {
    gauge: IntGauge,
    read: F,
}

/// A gauge for each set of labels.
pub(super) struct ObservedFamily<L, F> {
    /// Locked, so that two encodings at the same time do not mix.
    gauges: Mutex<IntGaugeVec>,
    described: IntGaugeVec,
    read: F,
    labels: PhantomData<fn() -> L>,
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

// === impl ObservedFamily ===

impl<L: LabelSet, F> ObservedFamily<L, F> {
    pub(super) fn new(gauges: IntGaugeVec, read: F) -> Self {
        Self { gauges: Mutex::new(gauges.clone()), described: gauges, read, labels: PhantomData }
    }
}

impl<L: LabelSet, F: Fn() -> Vec<(L, i64)> + Send + Sync> Collector for ObservedFamily<L, F> {
    fn desc(&self) -> Vec<&Desc> {
        self.described.desc()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let gauges = self.gauges.lock().unwrap_or_else(PoisonError::into_inner);
        gauges.reset();
        for (labels, value) in (self.read)().into_iter().take(MAX_SERIES) {
            gauges.with_label_values(&labels.values()).set(value);
        }
        gauges.collect()
    }
}

//! Gauges and counters whose values are read when metrics are encoded.

use std::marker::PhantomData;
use std::sync::{Mutex, PoisonError};

use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{IntCounterVec, IntGauge, IntGaugeVec};

use super::label::LabelSet;

/// The maximum number of series that one family exports.
const MAX_SERIES: usize = 10_000;

/// One gauge.
pub(super) struct Observed<F> {
    gauge: IntGauge,
    read: F,
}

/// A value for each set of labels. `V` is the library's type for the whole family.
pub(super) struct ObservedFamily<L, V, F> {
    /// Locked, so that two encodings at the same time do not mix.
    values: Mutex<V>,
    described: V,
    read: F,
    labels: PhantomData<fn() -> L>,
}

/// A family whose series are replaced as a whole.
pub(super) trait Values: Collector + Clone + 'static {
    /// The type of its values.
    type Value;

    /// Removes all series.
    fn clear(&self);

    /// Adds a series.
    fn add(&self, labels: &[&str], value: Self::Value);
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

// === impl Values ===

impl Values for IntGaugeVec {
    type Value = i64;

    fn clear(&self) {
        self.reset();
    }

    fn add(&self, labels: &[&str], value: i64) {
        self.with_label_values(labels).set(value);
    }
}

impl Values for IntCounterVec {
    type Value = u64;

    fn clear(&self) {
        self.reset();
    }

    fn add(&self, labels: &[&str], value: u64) {
        self.with_label_values(labels).inc_by(value);
    }
}

// === impl ObservedFamily ===

impl<L: LabelSet, V: Values, F> ObservedFamily<L, V, F> {
    pub(super) fn new(values: V, read: F) -> Self {
        Self { values: Mutex::new(values.clone()), described: values, read, labels: PhantomData }
    }
}

impl<L, V, F> Collector for ObservedFamily<L, V, F>
where
    L: LabelSet,
    V: Values,
    F: Fn() -> Vec<(L, V::Value)> + Send + Sync,
{
    fn desc(&self) -> Vec<&Desc> {
        self.described.desc()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        values.clear();
        for (labels, value) in (self.read)().into_iter().take(MAX_SERIES) {
            values.add(&labels.values(), value);
        }
        values.collect()
    }
}

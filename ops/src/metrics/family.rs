//! A metric with labels: one series per set of labels, and never more than a limit.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use prometheus::core::Collector;
use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, IntGaugeVec, Opts, Result};

use super::label::LabelSet;
use super::value::{Counter, Gauge, Histogram};

/// The value of all labels of the series that counts everything beyond the limit.
pub(super) const OVERFLOW: &str = "overflow";

/// A metric with labels. Clones are the same family.
pub struct Family<L, K: Kind> {
    shared: Arc<Shared<L, K>>,
}

struct Shared<L, K: Kind> {
    name: &'static str,
    vec: K::Vec,
    /// Handles by typed labels, so that a look-up neither formats nor allocates.
    series: RwLock<HashMap<L, K>>,
    overflow: OnceLock<K>,
}

/// The kind of metric in a family: [`Counter`], [`Gauge`] or [`Histogram`].
#[expect(private_bounds, reason = "sealed: the three kinds are what the text format knows")]
pub trait Kind: LabelValues {}

/// What a [`Kind`] is to this module.
pub(super) trait LabelValues: Clone + Send + Sync + 'static {
    /// The library's type for the whole family.
    type Vec: Collector + Clone + 'static;

    /// The maximum number of series in a family. One takes about 200 bytes; one of a histogram takes that per bucket.
    const LIMIT: usize;

    fn family(opts: Opts, labels: &[&str], buckets: &[f64]) -> Result<Self::Vec>;

    fn series(family: &Self::Vec, values: &[&str]) -> Result<Self>;

    fn remove(family: &Self::Vec, values: &[&str]) -> Result<()>;
}

// === impl Family ===

impl<L: LabelSet, K: Kind> Family<L, K> {
    pub(super) fn new(name: &'static str, help: &str, buckets: &[f64]) -> (Self, K::Vec) {
        let vec = K::family(Opts::new(name, help), L::NAMES, buckets)
            .expect("metric and label names are literals in their form");
        let shared = Shared { name, vec: vec.clone(), series: RwLock::default(), overflow: OnceLock::new() };
        let family = Self { shared: Arc::new(shared) };
        (family, vec)
    }

    /// The series with these labels. Keep it if the labels do not change.
    ///
    /// A family holds at most 10,000 series (1,000 of histograms). Beyond that, this is the series whose labels all are
    /// `overflow`: the sum stays correct, and the memory limited.
    pub fn with(&self, labels: &L) -> K {
        if let Some(known) = self.read().get(labels) {
            return known.clone();
        }
        let mut series = self.write();
        if let Some(known) = series.get(labels) {
            return known.clone();
        }
        if series.len() >= K::LIMIT {
            drop(series);
            return self.overflow();
        }
        let made = self.make(&labels.values());
        series.insert(labels.clone(), made.clone());
        made
    }

    /// Stops exporting a series, such as that of a removed cluster. Handles to it continue to count, but the counts are
    /// not exported.
    pub fn remove(&self, labels: &L) {
        if self.write().remove(labels).is_some()
            && let Err(error) = K::remove(&self.shared.vec, &labels.values())
        {
            tracing::debug!(%error, metric = self.shared.name, "the series was already removed");
        }
    }

    fn overflow(&self) -> K {
        let overflow = || {
            tracing::warn!(
                metric = self.shared.name,
                limit = K::LIMIT,
                "too many label values; further ones are counted as {OVERFLOW:?}"
            );
            self.make(&vec![OVERFLOW; L::NAMES.len()])
        };
        self.shared.overflow.get_or_init(overflow).clone()
    }

    fn make(&self, values: &[&str]) -> K {
        K::series(&self.shared.vec, values).expect("label_set! makes as many values as names")
    }

    // Nothing that can panic leaves the map half changed, so a poisoned map is consistent.

    fn read(&self) -> RwLockReadGuard<'_, HashMap<L, K>> {
        let series = self.shared.series.read();
        series.unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, HashMap<L, K>> {
        let series = self.shared.series.write();
        series.unwrap_or_else(PoisonError::into_inner)
    }
}

impl<L, K: Kind> Clone for Family<L, K> {
    // Not derived: that would require `L: Clone`.
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

impl<L, K: Kind> fmt::Debug for Family<L, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Family").field(&self.shared.name).finish()
    }
}

// === impl Kind ===

impl Kind for Counter {}
impl Kind for Gauge {}
impl Kind for Histogram {}

macro_rules! parts {
    ($kind:ident, $vec:ident, $limit:literal, |$opts:ident, $buckets:ident| $make:expr) => {
        impl LabelValues for $kind {
            type Vec = $vec;
            const LIMIT: usize = $limit;

            fn family($opts: Opts, labels: &[&str], $buckets: &[f64]) -> Result<$vec> {
                $vec::new($make, labels)
            }

            fn series(family: &$vec, values: &[&str]) -> Result<Self> {
                let inner = family.get_metric_with_label_values(values)?;
                Ok(Self { inner })
            }

            fn remove(family: &$vec, values: &[&str]) -> Result<()> {
                family.remove_label_values(values)
            }
        }
    };
}

parts!(Counter, IntCounterVec, 10_000, |opts, _buckets| opts);
parts!(Gauge, IntGaugeVec, 10_000, |opts, _buckets| opts);
parts!(Histogram, HistogramVec, 1_000, |opts, buckets| HistogramOpts::from(opts).buckets(buckets.to_vec()));

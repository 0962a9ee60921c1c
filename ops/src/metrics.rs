//! Metrics in the Prometheus text format.
//!
//! A component creates its families once, in its constructor, from a [`Registry`]. Code that runs per request holds a
//! handle ([`Counter`], [`Gauge`], [`Histogram`]) and never a name. Labels are types
//! ([`label_set!`](crate::label_set)). A family has a maximum number of series, and counts all further ones in one
//! series.
//!
//! What is *not* here: serving (`probes`), and the list of metrics. Nothing outside this module names the `prometheus`
//! crate.
//!
//! Reading order: `value` (the handles), `label`, `family`, then the registry here.

mod family;
mod label;
mod observed;
mod value;

use std::sync::{Arc, Mutex, PoisonError};

use prometheus::core::{Collector, Desc};
use prometheus::{IntCounterVec, IntGauge, IntGaugeVec, Opts, TextEncoder};

pub use family::{Family, Kind};
pub use label::{LabelSet, LabelValue};
use observed::{Observed, ObservedFamily};
pub use value::{Counter, Gauge, GaugeGuard, Histogram};

/// The media type of [`Registry::encode`].
pub const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Upper bounds for durations in seconds: from a cached answer to a watch that ends.
pub const SECONDS: &[f64] = &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];

/// The running binary, for `atoll_build_info`.
#[derive(Clone, Copy, Debug)]
pub struct Build {
    /// The binary: `proxy-server`, `proxy-agent`.
    pub component: &'static str,
    /// Its version: `env!("CARGO_PKG_VERSION")`.
    pub version: &'static str,
}

/// The metrics of one component. Clones are the same registry; two components in one process have one each.
#[derive(Clone, Debug)]
pub struct Registry {
    inner: prometheus::Registry,
    descriptions: Arc<Mutex<Vec<Description>>>,
}

/// A registered metric.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Description {
    /// The name.
    pub name: String,
    /// The names of its labels, in alphabetical order.
    pub labels: Vec<String>,
    /// The help text.
    pub help: String,
}

// === impl Registry ===

/// Names follow the Prometheus conventions: `atoll_` first, the unit, `_total` for counters.
///
/// Every method that creates a metric panics if its name is invalid or in use. Names are literals in constructors that
/// run at start-up, so the first start reveals such a mistake.
impl Registry {
    /// A registry with `atoll_build_info` and, on Linux, the `process_*` metrics (CPU, memory, file descriptors).
    pub fn new(build: Build) -> Self {
        let registry = Self { inner: prometheus::Registry::new(), descriptions: Arc::default() };
        let info = Opts::new("atoll_build_info", "Always 1; what is running is in the labels.")
            .const_label("component", build.component)
            .const_label("version", build.version);
        let info = IntGauge::with_opts(info).expect("the name and both labels are valid");
        info.set(1);
        registry.register(info);
        #[cfg(target_os = "linux")]
        registry.register(prometheus::process_collector::ProcessCollector::for_self());
        registry
    }

    /// A counter for each set of labels.
    pub fn counters<L: LabelSet>(&self, name: &'static str, help: &'static str) -> Family<L, Counter> {
        self.family(name, help, &[])
    }

    /// A gauge for each set of labels.
    pub fn gauges<L: LabelSet>(&self, name: &'static str, help: &'static str) -> Family<L, Gauge> {
        self.family(name, help, &[])
    }

    /// A gauge that is read when metrics are encoded. `read` must be quick and must not block.
    pub fn observe(&self, name: &'static str, help: &'static str, read: impl Fn() -> i64 + Send + Sync + 'static) {
        let gauge = IntGauge::new(name, help).expect("metric names are literals in their form");
        self.register(Observed::new(gauge, read));
    }

    /// A gauge for each set of labels. All of them are read when metrics are encoded, so series that `read` no longer
    /// returns disappear. `read` must be quick and must not block. At most 10,000 series are exported.
    pub fn observe_each<L: LabelSet>(
        &self,
        name: &'static str,
        help: &'static str,
        read: impl Fn() -> Vec<(L, i64)> + Send + Sync + 'static,
    ) {
        let gauges = IntGaugeVec::new(Opts::new(name, help), L::NAMES);
        let gauges = gauges.expect("metric and label names are literals in their form");
        self.register(ObservedFamily::new(gauges, read));
    }

    /// Like [`Registry::observe_each`], for counts that something else keeps. A count must never decrease.
    pub fn observe_counts<L: LabelSet>(
        &self,
        name: &'static str,
        help: &'static str,
        read: impl Fn() -> Vec<(L, u64)> + Send + Sync + 'static,
    ) {
        let counters = IntCounterVec::new(Opts::new(name, help), L::NAMES);
        let counters = counters.expect("metric and label names are literals in their form");
        self.register(ObservedFamily::new(counters, read));
    }

    /// One histogram. `buckets` are upper bounds, ascending, such as [`SECONDS`].
    pub fn histogram(&self, name: &'static str, help: &'static str, buckets: &'static [f64]) -> Histogram {
        self.histograms::<()>(name, help, buckets).with(&())
    }

    /// A histogram for each set of labels. `buckets` are upper bounds, ascending, such as [`SECONDS`].
    pub fn histograms<L: LabelSet>(
        &self,
        name: &'static str,
        help: &'static str,
        buckets: &'static [f64],
    ) -> Family<L, Histogram> {
        self.family(name, help, buckets)
    }

    /// All metrics, whether they have series or not, by name.
    pub fn descriptions(&self) -> Vec<Description> {
        let mut all = self.descriptions.lock().unwrap_or_else(PoisonError::into_inner).clone();
        all.sort();
        all
    }

    /// All metrics as text of [`MEDIA_TYPE`].
    pub fn encode(&self) -> String {
        let mut text = String::new();
        // The encoder writes family by family, so after an error the text is incomplete but well-formed.
        if let Err(error) = TextEncoder::new().encode_utf8(&self.inner.gather(), &mut text) {
            tracing::error!(%error, "metrics are incomplete");
        }
        text
    }

    fn family<L: LabelSet, K: Kind>(&self, name: &'static str, help: &'static str, buckets: &[f64]) -> Family<L, K> {
        let (family, collector) = Family::new(name, help, buckets);
        self.register(collector);
        family
    }

    fn register(&self, collector: impl Collector + 'static) {
        let described = collector.desc().into_iter().map(Description::of).collect::<Vec<_>>();
        self.descriptions.lock().unwrap_or_else(PoisonError::into_inner).extend(described);
        self.inner.register(Box::new(collector)).expect("metric names are literals, each registered once");
    }
}

// === impl Description ===

impl Description {
    fn of(desc: &Desc) -> Self {
        let constant = desc.const_label_pairs.iter().map(|pair| pair.name().to_owned());
        let mut labels: Vec<_> = desc.variable_labels.iter().cloned().chain(constant).collect();
        labels.sort();
        Self { name: desc.fq_name.clone(), labels, help: desc.help.clone() }
    }
}

#[cfg(test)]
mod tests;

//! The metrics of requests: how many of each cluster ended with which code, and how long they took. And the last errors
//! of each cluster, for its operator.
//!
//! Only the clusters of the configuration have series, so clients cannot add any: a request that names no cluster, or an
//! unknown one, is not counted. The handles of a cluster are found once and kept, because the counters are cheaper than
//! their labels.
//!
//! Reading order: [`Names`] (of both halves), [`RequestMetrics`] (all clusters), [`OfCluster`] (one), [`Measured`] (one
//! request), `last_errors`.

mod code;
mod last_errors;
mod verb;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use arc_swap::ArcSwap;
use http::StatusCode;
use ops::metrics::{Counter, Family, Histogram, Registry, SECONDS};
use protocol::ClusterName;
use tokio::time::Instant;

use code::Code;
use last_errors::LastErrors;
pub use last_errors::{Failure, LastError};
pub use verb::VerbClass;

/// The names of the metrics of one half.
#[derive(Clone, Copy, Debug)]
pub struct Names {
    totals: &'static str,
    durations: &'static str,
}

/// The metrics of all clusters.
#[derive(Debug)]
pub struct RequestMetrics {
    families: Families,
    clusters: ArcSwap<HashMap<ClusterName, Arc<OfCluster>>>,
}

/// The metrics of one cluster.
#[derive(Debug)]
pub struct OfCluster {
    name: Arc<str>,
    families: Families,
    series: [OfVerb; VerbClass::ALL.len()],
    /// The cluster has left the configuration. Requests that are still running must not add its series again, so this
    /// is locked while a series is added, and while all are removed.
    is_gone: Mutex<bool>,
    errors: LastErrors,
}

/// The handles of one class of verbs, made when they are first needed.
#[derive(Debug, Default)]
struct OfVerb {
    totals: [OnceLock<Counter>; Code::COUNT],
    duration: OnceLock<Histogram>,
}

#[derive(Clone, Debug)]
struct Families {
    totals: Family<Ended, Counter>,
    durations: Family<DurationLabels, Histogram>,
}

/// One request, which is counted when this is dropped.
#[derive(Debug)]
pub struct Measured {
    cluster: Arc<OfCluster>,
    verb: VerbClass,
    began: Instant,
    code: Option<Code>,
}

ops::label_set! {
    /// Requests that have ended.
    struct Ended {
        cluster: Arc<str>,
        verb: VerbClass,
        code: Code,
    }
}

ops::label_set! {
    /// The time that requests take.
    struct DurationLabels {
        cluster: Arc<str>,
        verb: VerbClass,
    }
}

// === impl Names ===

impl Names {
    /// The metrics of a proxy-server.
    pub const SERVER: Self = Self { totals: "atoll_requests_total", durations: "atoll_request_duration_seconds" };

    /// The metrics of a proxy-agent. They have other names, so that a sum over both halves does not count a request twice.
    pub const AGENT: Self =
        Self { totals: "atoll_agent_requests_total", durations: "atoll_agent_request_duration_seconds" };
}

// === impl RequestMetrics ===

impl RequestMetrics {
    /// Registers the metrics. No cluster has any yet.
    pub fn new(metrics: &Registry, names: Names) -> Self {
        let totals = metrics.counters(
            names.totals,
            "Requests to virtual clusters whose response has ended, by cluster, class of verb and status code.",
        );
        let durations = metrics.histograms(
            names.durations,
            "Time from the head of a request to the end of its response, by cluster and class of verb.",
            SECONDS,
        );
        Self { families: Families { totals, durations }, clusters: ArcSwap::default() }
    }

    /// Takes the clusters of a new configuration. The others lose their series.
    pub fn exchange<'n>(&self, names: impl Iterator<Item = &'n ClusterName>) {
        let before = self.clusters.load_full();
        let of = |name: &ClusterName| match before.get(name) {
            Some(known) => Arc::clone(known),
            None => Arc::new(OfCluster::new(name, self.families.clone())),
        };
        let clusters: HashMap<_, _> = names.map(|name| (name.clone(), of(name))).collect();
        let gone = before.iter().filter(|(name, _)| !clusters.contains_key(*name));
        let gone: Vec<_> = gone.map(|(_, cluster)| Arc::clone(cluster)).collect();
        self.clusters.store(Arc::new(clusters));
        for cluster in gone {
            cluster.remove();
        }
    }

    /// Begins to measure a request that began at `began`. `None` if the cluster is not in the configuration any more.
    pub fn measure(&self, cluster: &ClusterName, verb: VerbClass, began: Instant) -> Option<Measured> {
        let cluster = Arc::clone(self.clusters.load().get(cluster)?);
        Some(Measured { cluster, verb, began, code: None })
    }

    /// Records an error of Atoll that belongs to no measured request.
    pub fn failed(&self, cluster: &ClusterName, failure: &Failure<'_>) {
        if let Some(cluster) = self.clusters.load().get(cluster) {
            cluster.errors.add(failure);
        }
    }

    /// The last errors of a cluster, the newest first.
    pub fn last_errors(&self, cluster: &ClusterName) -> Vec<LastError> {
        self.clusters.load().get(cluster).map(|cluster| cluster.errors.all()).unwrap_or_default()
    }
}

// === impl OfCluster ===

impl OfCluster {
    fn new(name: &ClusterName, families: Families) -> Self {
        let (name, series) = (name.as_str().into(), std::array::from_fn(|_| OfVerb::default()));
        Self { name, families, series, is_gone: Mutex::new(false), errors: LastErrors::default() }
    }

    fn count(&self, verb: VerbClass, code: Code, began: Instant) {
        let series = &self.series[verb.index()];
        // Counts of a removed series are not exported.
        if let Some(total) =
            self.known(&series.totals[code.index()], || self.families.totals.with(&self.ended(verb, code)))
        {
            total.inc();
        }
        if verb.has_duration()
            && let Some(duration) =
                self.known(&series.duration, || self.families.durations.with(&self.duration_labels(verb)))
        {
            duration.observe_since(began);
        }
    }

    /// The handle, which is made if it does not exist. `None` if the cluster is gone.
    fn known<'h, T>(&self, handle: &'h OnceLock<T>, make: impl FnOnce() -> T) -> Option<&'h T> {
        if let Some(known) = handle.get() {
            return Some(known);
        }
        let is_gone = self.is_gone();
        (!*is_gone).then(|| handle.get_or_init(make))
    }

    fn remove(&self) {
        let mut is_gone = self.is_gone();
        *is_gone = true;
        for verb in VerbClass::ALL {
            let series = &self.series[verb.index()];
            for code in Code::all().filter(|code| series.totals[code.index()].get().is_some()) {
                self.families.totals.remove(&self.ended(verb, code));
            }
            if series.duration.get().is_some() {
                self.families.durations.remove(&self.duration_labels(verb));
            }
        }
    }

    fn is_gone(&self) -> MutexGuard<'_, bool> {
        self.is_gone.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ended(&self, verb: VerbClass, code: Code) -> Ended {
        Ended { cluster: Arc::clone(&self.name), verb, code }
    }

    fn duration_labels(&self, verb: VerbClass) -> DurationLabels {
        DurationLabels { cluster: Arc::clone(&self.name), verb }
    }
}

// === impl Measured ===

impl Measured {
    /// Sets the class of the request, once it is known.
    pub fn classified(&mut self, verb: VerbClass) {
        self.verb = verb;
    }

    /// The status of the response. A request without one is not counted: its client left before.
    pub fn answered(&mut self, status: StatusCode) {
        self.code = Some(Code::of(status));
    }

    /// Records that the response is an error of Atoll.
    pub fn failed(&self, failure: &Failure<'_>) {
        self.cluster.errors.add(failure);
    }
}

impl Drop for Measured {
    fn drop(&mut self) {
        if let Some(code) = self.code {
            self.cluster.count(self.verb, code, self.began);
        }
    }
}

#[cfg(test)]
mod tests;

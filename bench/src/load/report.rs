//! The report of a run, as text and as JSON.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use super::pace::Outcome;
use crate::latencies::Summary;
use crate::process::{Cost, NamedProcess, Usage};

/// The figures of one run.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    label: String,
    /// The parameters of the first TLS handshake.
    #[serde(default)]
    tls: Option<String>,
    seconds: f64,
    requests: u64,
    requests_per_second: f64,
    megabytes_per_second: f64,
    /// In milliseconds, from the scheduled time.
    latency: Summary,
    /// In milliseconds, from the time of sending.
    service: Summary,
    errors: u64,
    /// The number of failures of each kind, with an example.
    failures: BTreeMap<String, String>,
    /// The number of scheduled requests that were not sent (open loop).
    missed: u64,
    processes: Vec<Cost>,
}

/// The ratios of two runs.
pub(super) struct Comparison<'a>(&'a Report, &'a Report);

// === impl Report ===

impl Report {
    pub(super) fn new<'a>(
        label: &str,
        tls: Option<&str>,
        outcome: &Outcome,
        usages: impl Iterator<Item = (&'a NamedProcess, (Usage, Usage))>,
    ) -> Self {
        let seconds = outcome.elapsed.as_secs_f64().max(f64::MIN_POSITIVE);
        let (requests, bytes) = (figure(outcome.succeeded()), figure(outcome.bytes));
        let failures = outcome
            .failures
            .iter()
            .map(|(kind, (count, example))| (format!("{kind:?}"), format!("{count} x {example}")));
        Self {
            label: label.to_owned(),
            tls: tls.map(str::to_owned),
            seconds,
            requests: outcome.succeeded(),
            requests_per_second: requests / seconds,
            megabytes_per_second: bytes / 1e6 / seconds,
            latency: outcome.latency.summary(),
            service: outcome.service.summary(),
            errors: outcome.failed(),
            failures: failures.collect(),
            missed: outcome.missed,
            processes: usages
                .map(|(process, (before, after))| Cost::new(process, before, after, outcome.succeeded()))
                .collect(),
        }
    }

    /// Reads the output of `--json`.
    pub(super) fn read(file: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        serde_json::from_slice(&text).with_context(|| format!("{} is not a report of `bench load`", file.display()))
    }

    /// The ratios to another run.
    pub(super) fn compare<'a>(&'a self, other: &'a Self) -> Comparison<'a> {
        Comparison(self, other)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.label.is_empty() {
            writeln!(f, "{}", self.label)?;
        }
        if let Some(tls) = &self.tls {
            writeln!(f, "  {tls}")?;
        }
        let Self { requests, seconds, errors, missed, .. } = self;
        writeln!(f, "  {requests} requests in {seconds:.1} s, {errors} errors, {missed} scheduled but not sent")?;
        writeln!(f, "  {:.0} requests/s, {:.1} MB/s", self.requests_per_second, self.megabytes_per_second)?;
        writeln!(f, "  ms        {:>9}{:>9}{:>9}{:>9}{:>9}", "mean", "p50", "p90", "p99", "max")?;
        for (name, Summary { mean, p50, p90, p99, max }) in [("latency", self.latency), ("service", self.service)] {
            writeln!(f, "  {name:<10}{mean:>9.2}{p50:>9.2}{p90:>9.2}{p99:>9.2}{max:>9.2}")?;
        }
        self.processes.iter().try_for_each(|process| writeln!(f, "  {process} per request"))?;
        self.failures.iter().try_for_each(|(kind, example)| writeln!(f, "  {kind}: {example}"))
    }
}

// === impl Comparison ===

impl fmt::Display for Comparison<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(this, other) = self;
        writeln!(f, "  compared with {}:", if other.label.is_empty() { "the baseline" } else { &other.label })?;
        let ratios = [
            ("requests/s", this.requests_per_second / other.requests_per_second),
            ("MB/s", this.megabytes_per_second / other.megabytes_per_second),
            ("p50", this.latency.p50 / other.latency.p50),
            ("p99", this.latency.p99 / other.latency.p99),
        ];
        ratios.iter().try_for_each(|(name, ratio)| writeln!(f, "    {name:<12}{ratio:.2} x"))
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of a run are less than 2^52")]
fn figure(number: u64) -> f64 {
    number as f64
}

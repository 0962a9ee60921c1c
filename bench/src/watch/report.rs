//! The report of a fan-out, as text and as JSON.

use std::fmt;

use serde::Serialize;

use super::deliveries::Written;
use super::watcher::Watched;
use crate::latencies::{Latencies, Summary};
use crate::load::pace::Outcome;
use crate::process::{Cost, NamedProcess, Usage};

/// The report. Times are in milliseconds.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    watchers: usize,
    changes: usize,
    seconds: f64,
    /// From sending a change to its arrival at each watcher.
    delivery: Summary,
    delivered: u64,
    /// Confirmed changes that a watcher did not receive, summed over all watchers.
    lost: usize,
    twice: u64,
    ended_early: usize,
    /// From sending a change to its confirmation.
    write: Summary,
    failed_writes: String,
    processes: Vec<Cost>,
}

// === impl Report ===

impl Report {
    pub(super) fn new<'a>(
        writes: &Outcome,
        written: &Written,
        watched: &[Watched],
        usages: impl Iterator<Item = (&'a NamedProcess, (Usage, Usage))>,
    ) -> Self {
        let mut latencies = Latencies::new();
        for one in watched {
            latencies.add(&one.deliveries.latencies);
        }
        let delivered = latencies.count();
        Self {
            watchers: watched.len(),
            changes: written.count(),
            seconds: writes.elapsed.as_secs_f64(),
            delivery: latencies.summary(),
            delivered,
            lost: watched.iter().map(|one| one.lost).sum(),
            twice: watched.iter().map(|one| one.deliveries.twice).sum(),
            ended_early: watched.iter().filter(|one| one.ended_early).count(),
            write: writes.service.summary(),
            failed_writes: writes.describe_failures(),
            processes: usages.map(|(process, (before, after))| Cost::new(process, before, after, delivered)).collect(),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { watchers, changes, seconds, delivered, lost, twice, ended_early, failed_writes, .. } = self;
        writeln!(f, "  {changes} changes in {seconds:.1} s to {watchers} watchers")?;
        writeln!(f, "  {delivered} delivered, {lost} lost, {twice} twice; {ended_early} watches ended early")?;
        writeln!(f, "  ms        {:>9}{:>9}{:>9}{:>9}{:>9}", "mean", "p50", "p90", "p99", "max")?;
        for (name, Summary { mean, p50, p90, p99, max }) in [("delivery", self.delivery), ("write", self.write)] {
            writeln!(f, "  {name:<10}{mean:>9.2}{p50:>9.2}{p90:>9.2}{p99:>9.2}{max:>9.2}")?;
        }
        if !failed_writes.is_empty() {
            writeln!(f, "  failed writes: {failed_writes}")?;
        }
        self.processes.iter().try_for_each(|process| writeln!(f, "  {process} per delivery"))
    }
}

//! The report of all runs, as JSON.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::audit::Requests;
use super::cpu::Phase;
use super::ledger::{Ledger, Totals};
use super::writer::Through;
use crate::latencies::Summary;
use crate::load::pace::Outcome;
use crate::process::Memory;

/// The report. Latencies are in milliseconds, CPU times of events in microseconds.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    pub(super) processors: usize,
    pub(super) settings: Settings,
    pub(super) cases: Vec<CaseReport>,
}

/// What was requested.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Settings {
    pub(super) informers_per_cluster: usize,
    pub(super) nodes_per_cluster: u32,
    pub(super) lease_interval_seconds: u32,
    pub(super) watch_seconds: u64,
    pub(super) events_per_second: u32,
    pub(super) burst: u32,
    pub(super) events_through: Through,
    pub(super) seconds: f64,
    pub(super) idle_seconds: f64,
}

/// One run.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CaseReport {
    pub(super) clusters: u32,
    /// The name of the agent's configuration.
    pub(super) config: String,
    /// Why the run ended early.
    pub(super) failed: Option<String>,
    pub(super) measured: Option<Measured>,
}

/// The results of a run.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Measured {
    pub(super) start: Start,
    pub(super) restart: Start,
    pub(super) pods: Pods,
    /// Of each process: `ready` (no client is connected), `informed` and `loaded`.
    pub(super) memory: BTreeMap<&'static str, BTreeMap<String, Memory>>,
    pub(super) watches: Watches,
    pub(super) informers: Informers,
    pub(super) idle: Phase,
    pub(super) load: Phase,
    pub(super) events: Events,
    /// `null` with `--keep-agent`.
    pub(super) interruption: Option<Interruption>,
}

/// The agent is killed and started again, while all informers watch and events are written.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Interruption {
    /// From the start of the agent until all clusters respond.
    pub(super) answering_seconds: f64,
    /// Requests that client-go repeats without a message.
    pub(super) repeated: u64,
    pub(super) relists: u64,
    /// Watches that ended before their time, or that were refused.
    pub(super) failures: BTreeMap<String, u64>,
    pub(super) written: u64,
    pub(super) lost: u64,
    pub(super) twice: u64,
    pub(super) foreign: u64,
    /// From the kill until a minute later, without the agent and the proxy-server.
    pub(super) minute: Phase,
}

/// A start of the agent.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Start {
    /// Until the agent has provisioned all clusters.
    pub(super) provisioned_seconds: f64,
    /// Until all clusters respond through the proxy-server.
    pub(super) answering_seconds: f64,
    /// The agent's requests to the host in this time.
    pub(super) requests: u64,
    pub(super) writes: u64,
    pub(super) requests_by_kind: BTreeMap<String, u64>,
    pub(super) refused: BTreeMap<String, u64>,
}

/// The time to create a pod on the host.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Pods {
    /// Before the start of Atoll.
    pub(super) without: Summary,
    /// In a namespace of no virtual cluster.
    pub(super) outside: Summary,
    /// In a namespace of a virtual cluster.
    pub(super) inside: Summary,
}

/// The number of open watches at kube-apiserver.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Watches {
    /// Without Atoll.
    pub(super) before: u64,
    /// Without clients.
    pub(super) ready: u64,
    /// With all informers. One of them is that of the benchmark itself.
    pub(super) informed: u64,
    /// The difference between `informed` and `before`, if it is not zero.
    pub(super) added_by_resource: BTreeMap<String, i64>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Informers {
    /// Those that have received all objects, with the one at the host itself.
    pub(super) count: u64,
    pub(super) sync_seconds: f64,
    /// The number of watches that began in the idle phase.
    pub(super) watches_begun_idle: u64,
    pub(super) relists: u64,
    pub(super) failures: BTreeMap<String, u64>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Events {
    pub(super) written: u64,
    pub(super) delivered: u64,
    pub(super) lost: u64,
    pub(super) twice: u64,
    pub(super) foreign: u64,
    /// From sending the write to the arrival at an informer of a cluster, and at a watch of the host itself.
    pub(super) delivery: Summary,
    pub(super) direct: Summary,
    pub(super) write: Summary,
    pub(super) failed_writes: String,
    /// Writes that were due and not sent, because the host was too slow.
    pub(super) missed: u64,
    pub(super) cpu_micros: BTreeMap<String, f64>,
}

// === impl Start ===

impl Start {
    pub(super) fn new(provisioned: Duration, answering: Duration, requests: Requests) -> Self {
        Self {
            provisioned_seconds: provisioned.as_secs_f64(),
            answering_seconds: answering.as_secs_f64(),
            requests: requests.total(),
            writes: requests.writes,
            requests_by_kind: requests.by_kind,
            refused: requests.refused,
        }
    }
}

// === impl Watches ===

impl Watches {
    pub(super) fn new(
        before: &BTreeMap<String, u64>,
        ready: &BTreeMap<String, u64>,
        informed: &BTreeMap<String, u64>,
    ) -> Self {
        let of = |watches: &BTreeMap<String, u64>, name: &str| {
            i64::try_from(watches.get(name).copied().unwrap_or_default()).unwrap_or(i64::MAX)
        };
        let names = before.keys().chain(informed.keys());
        let added = names.map(|name| (name.clone(), of(informed, name) - of(before, name)));
        Self {
            before: before.values().sum(),
            ready: ready.values().sum(),
            informed: informed.values().sum(),
            added_by_resource: added.filter(|(_, added)| *added != 0).collect(),
        }
    }
}

// === impl Events ===

impl Events {
    pub(super) fn new(ledger: &Ledger, totals: Totals, outcome: &Outcome, cpu_micros: BTreeMap<String, f64>) -> Self {
        let Totals { confirmed, delivered, lost, twice, foreign } = totals;
        Self {
            written: confirmed,
            delivered,
            lost,
            twice,
            foreign,
            delivery: ledger.delivery(),
            direct: ledger.direct(),
            write: outcome.service.summary(),
            failed_writes: outcome.describe_failures(),
            missed: outcome.missed,
            cpu_micros,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_resources_with_other_numbers_of_watches_are_shown() {
        let watches = |list: &[(&str, u64)]| list.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
        let before = watches(&[("pods", 3), ("nodes", 2), ("leases", 1)]);
        let watches = Watches::new(&before, &before, &watches(&[("pods", 5), ("nodes", 2), ("secrets", 1)]));
        assert_eq!((watches.before, watches.ready, watches.informed), (6, 6, 8));
        let expected = [("leases", -1), ("pods", 2), ("secrets", 1)].map(|(name, added)| (name.to_owned(), added));
        assert_eq!(watches.added_by_resource, BTreeMap::from(expected));
    }
}

//! The report as a table: a column for each run.

use std::fmt;

use super::report::{CaseReport, Interruption, Measured, Report};

/// A row: its label, and the value of a run.
type Row = (&'static str, fn(&Measured) -> String);

const ROWS: [Row; 40] = [
    ("start: all provisioned, s", |run| seconds(run.start.provisioned_seconds)),
    ("start: all respond, s", |run| seconds(run.start.answering_seconds)),
    ("start: requests to the host", |run| run.start.requests.to_string()),
    ("start: writes among them", |run| run.start.writes.to_string()),
    ("restart: all provisioned, s", |run| seconds(run.restart.provisioned_seconds)),
    ("restart: all respond, s", |run| seconds(run.restart.answering_seconds)),
    ("restart: requests to the host", |run| run.restart.requests.to_string()),
    ("restart: writes among them", |run| run.restart.writes.to_string()),
    ("pod without Atoll, p50 ms", |run| millis(run.pods.without.p50)),
    ("pod outside of clusters, p50 ms", |run| millis(run.pods.outside.p50)),
    ("pod in a cluster, p50 ms", |run| millis(run.pods.inside.p50)),
    ("agent without clients, MB", |run| memory(run, "ready", AGENT)),
    ("server without clients, MB", |run| memory(run, "ready", SERVER)),
    ("agent with informers, MB", |run| memory(run, "informed", AGENT)),
    ("server with informers, MB", |run| memory(run, "informed", SERVER)),
    ("agent after events, MB", |run| memory(run, "loaded", AGENT)),
    ("server after events, MB", |run| memory(run, "loaded", SERVER)),
    ("kube-apiserver after events, MB", |run| memory(run, "loaded", API_SERVER)),
    ("host watches without Atoll", |run| run.watches.before.to_string()),
    ("host watches without clients", |run| run.watches.ready.to_string()),
    ("host watches with informers", |run| run.watches.informed.to_string()),
    ("informers", |run| run.informers.count.to_string()),
    ("informers: all synced, s", |run| seconds(run.informers.sync_seconds)),
    ("informers: failed watches", |run| run.informers.failures.values().sum::<u64>().to_string()),
    ("informers: relists", |run| run.informers.relists.to_string()),
    ("events written", |run| run.events.written.to_string()),
    ("lost / twice / foreign", |run| format!("{} / {} / {}", run.events.lost, run.events.twice, run.events.foreign)),
    ("delivery p50 / p99, ms", |run| {
        format!("{} / {}", millis(run.events.delivery.p50), millis(run.events.delivery.p99))
    }),
    ("directly p50 / p99, ms", |run| format!("{} / {}", millis(run.events.direct.p50), millis(run.events.direct.p99))),
    ("CPU us per event: agent", |run| micros(run, AGENT)),
    ("CPU us per event: server", |run| micros(run, SERVER)),
    ("CPU us per event: kube-apiserver", |run| micros(run, API_SERVER)),
    ("CPU us per event: bench", |run| micros(run, "bench")),
    ("other work, CPUs, idle / events", |run| {
        let share = |phase: &super::cpu::Phase| phase.other_cpu_seconds / phase.seconds;
        format!("{:.2} / {:.2}", share(&run.idle), share(&run.load))
    }),
    ("agent killed: all respond, s", |run| interruption(run, |it| seconds(it.answering_seconds))),
    ("agent killed: failed watches", |run| interruption(run, |it| it.failures.values().sum::<u64>().to_string())),
    ("agent killed: repeated requests", |run| interruption(run, |it| it.repeated.to_string())),
    ("agent killed: relists", |run| interruption(run, |it| it.relists.to_string())),
    ("agent killed: lost / twice / foreign", |run| {
        interruption(run, |Interruption { lost, twice, foreign, .. }| format!("{lost} / {twice} / {foreign}"))
    }),
    ("agent killed: kube-apiserver CPU, s", |run| {
        interruption(run, |it| it.minute.cpu_seconds.get(API_SERVER).map_or_else(absent, |cpu| seconds(*cpu)))
    }),
];

const AGENT: &str = "proxy-agent";
const SERVER: &str = "proxy-server";
const API_SERVER: &str = "kube-apiserver";
const LABEL_WIDTH: usize = 36;
const WIDTH: usize = 18;

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<LABEL_WIDTH$}", "clusters")?;
        self.cases.iter().try_for_each(|case| write!(f, "{:>WIDTH$}", case.clusters))?;
        write!(f, "\n{:<LABEL_WIDTH$}", "agent configuration")?;
        self.cases.iter().try_for_each(|case| write!(f, "{:>WIDTH$}", case.config))?;
        writeln!(f)?;
        for (label, value) in ROWS {
            write!(f, "{label:<LABEL_WIDTH$}")?;
            for CaseReport { measured, .. } in &self.cases {
                write!(f, "{:>WIDTH$}", measured.as_ref().map_or_else(absent, value))?;
            }
            writeln!(f)?;
        }
        for case in &self.cases {
            let CaseReport { clusters, config, failed, measured } = case;
            let failures = measured.iter().flat_map(|run| &run.informers.failures);
            for (reason, count) in failures {
                writeln!(f, "{clusters} clusters, {config}: {count} failed watches: {reason}")?;
            }
            for (reason, count) in measured.iter().flat_map(|run| &run.interruption).flat_map(|it| &it.failures) {
                writeln!(f, "{clusters} clusters, {config}, agent killed: {count} failed watches: {reason}")?;
            }
            if let Some(reason) = failed {
                writeln!(f, "{clusters} clusters, {config}: the run failed: {reason}")?;
            }
        }
        Ok(())
    }
}

fn seconds(seconds: f64) -> String {
    format!("{seconds:.1}")
}

fn millis(millis: f64) -> String {
    format!("{millis:.2}")
}

fn interruption(run: &Measured, show: impl FnOnce(&Interruption) -> String) -> String {
    run.interruption.as_ref().map_or_else(absent, show)
}

/// The text for a figure that a run does not have.
fn absent() -> String {
    "-".to_owned()
}

fn memory(run: &Measured, phase: &str, process: &str) -> String {
    let memory = run.memory.get(phase).and_then(|phase| phase.get(process));
    memory.map_or_else(absent, |memory| format!("{}.{}", memory.rss_kb / 1024, memory.rss_kb % 1024 * 10 / 1024))
}

fn micros(run: &Measured, process: &str) -> String {
    run.events.cpu_micros.get(process).map_or_else(absent, |micros| format!("{micros:.0}"))
}

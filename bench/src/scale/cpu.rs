//! The CPU time of all processes of a run during a phase, and that of all other work on the machine.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context as _;
use serde::Serialize;
use tokio::time::Instant;

use crate::process::{Memory, NamedProcess};

/// The processes of a run.
pub(super) struct Processes {
    /// Those that this program started. The others are not its descendants.
    pub(super) children: Vec<NamedProcess>,
    pub(super) others: Vec<NamedProcess>,
}

/// The CPU time so far.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    at: Instant,
    processes: BTreeMap<String, Duration>,
    machine: Duration,
}

/// A phase: its duration, and the CPU time in it, in seconds.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Phase {
    pub(super) seconds: f64,
    /// By process.
    pub(super) cpu_seconds: BTreeMap<String, f64>,
    /// Of all processes that are not of this run.
    pub(super) other_cpu_seconds: f64,
}

const BENCH: &str = "bench";
/// The unit of times in `/proc/stat` (proc_stat(5)).
const TICKS_PER_SECOND: u64 = 100;

// === impl Processes ===

impl Processes {
    pub(super) fn sample(&self) -> anyhow::Result<Sample> {
        let mut processes = BTreeMap::new();
        // The time of this program includes that of its children.
        let mut own = NamedProcess::own().usage()?.cpu;
        for process in &self.children {
            let cpu = process.usage()?.cpu;
            own = own.saturating_sub(cpu);
            processes.insert(process.name.clone(), cpu);
        }
        for process in &self.others {
            processes.insert(process.name.clone(), process.usage()?.cpu);
        }
        processes.insert(BENCH.to_owned(), own);
        let stat = std::fs::read_to_string("/proc/stat")?;
        let machine = busy(&stat).context("/proc/stat has an unknown format")?;
        Ok(Sample { at: Instant::now(), processes, machine })
    }

    /// The memory of the processes now.
    pub(super) fn memory(&self) -> anyhow::Result<BTreeMap<String, Memory>> {
        let all = self.children.iter().chain(&self.others);
        all.map(|process| Ok((process.name.clone(), process.usage()?.memory))).collect()
    }
}

// === impl Phase ===

impl Phase {
    pub(super) fn between(before: &Sample, after: &Sample) -> Self {
        let spent = |(name, after): (&String, &Duration)| {
            let before = before.processes.get(name).copied().unwrap_or_default();
            (name.clone(), after.saturating_sub(before).as_secs_f64())
        };
        let cpu_seconds: BTreeMap<String, f64> = after.processes.iter().map(spent).collect();
        let machine = after.machine.saturating_sub(before.machine).as_secs_f64();
        let other_cpu_seconds = (machine - cpu_seconds.values().sum::<f64>()).max(0.0);
        Self { seconds: (after.at - before.at).as_secs_f64(), cpu_seconds, other_cpu_seconds }
    }

    /// The CPU time of each process for an operation, in microseconds, without what the process uses when idle.
    pub(super) fn micros_per_operation(&self, idle: &Self, operations: u64) -> BTreeMap<String, f64> {
        let cost = |(name, spent): (&String, &f64)| {
            let idle_rate = idle.cpu_seconds.get(name).copied().unwrap_or_default() / idle.seconds;
            (name.clone(), (spent - idle_rate * self.seconds) * 1e6 / count(operations.max(1)))
        };
        self.cpu_seconds.iter().map(cost).collect()
    }
}

/// The time in which the processors of this machine were busy.
fn busy(stat: &str) -> Option<Duration> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let fields: Vec<u64> = line.split_ascii_whitespace().map_while(|field| field.parse().ok()).collect();
    // user, nice, system, idle, iowait, irq, softirq
    let [user, nice, system, _, _, irq, softirq, ..] = fields[..] else { return None };
    Some(Duration::from_millis((user + nice + system + irq + softirq) * 1_000 / TICKS_PER_SECOND))
}

#[expect(clippy::cast_precision_loss, reason = "counts of a run are less than 2^52")]
pub(super) fn count(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phase(seconds: f64, agent: f64) -> Phase {
        Phase { seconds, cpu_seconds: BTreeMap::from([("agent".to_owned(), agent)]), other_cpu_seconds: 0.0 }
    }

    #[test]
    fn idle_time_is_not_part_of_the_cost() {
        // 0.1 s of CPU per second when idle.
        let (idle, load) = (phase(10.0, 1.0), phase(20.0, 3.0));
        let cost = load.micros_per_operation(&idle, 1_000);
        assert!((cost["agent"] - 1_000.0).abs() < 0.1, "{cost:?}");
    }

    #[test]
    fn other_work_is_the_rest_of_the_machine() {
        let sample = |seconds: u64, agent, machine| Sample {
            at: Instant::now() + Duration::from_secs(seconds),
            processes: BTreeMap::from([("agent".to_owned(), Duration::from_secs(agent))]),
            machine: Duration::from_secs(machine),
        };
        let phase = Phase::between(&sample(0, 1, 10), &sample(5, 2, 14));
        assert!((phase.other_cpu_seconds - 3.0).abs() < 1e-6, "{phase:?}");
        assert!((phase.seconds - 5.0).abs() < 0.1, "{phase:?}");
    }

    #[test]
    fn waiting_processors_are_not_busy() {
        let stat = "cpu  100 20 30 4000 500 6 7 8 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n";
        assert_eq!(busy(stat), Some(Duration::from_millis(1_630)));
        assert_eq!(busy("cpu0 1 2 3 4 5 6 7"), None);
        assert_eq!(busy("cpu  1 2"), None);
    }
}

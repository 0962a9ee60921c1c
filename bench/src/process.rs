//! The CPU time and memory of processes, from `/proc` (proc_pid_stat(5), proc_pid_status(5)).
//!
//! The figures of a process include all its descendants. For example, the workers of nginx forward requests, and its
//! master process does not.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::str::FromStr;
use std::time::Duration;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

/// A process, and its name in the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedProcess {
    pub(crate) name: String,
    pub(crate) pid: u32,
}

/// The CPU time of a process and its descendants so far, and their memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) cpu: Duration,
    pub(crate) memory: Memory,
}

/// Resident memory, in units of 1,024 bytes, like `/proc`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Memory {
    pub(crate) rss_kb: u64,
    /// The peak. For several processes, the sum of their peaks.
    pub(crate) peak_kb: u64,
}

/// The contents of `/proc/PID/stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stat {
    parent: u32,
    /// The user and system time of all threads, and of descendants that have ended and were waited for.
    cpu: Duration,
}

/// The cost of a process for a number of operations.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Cost {
    pub(crate) name: String,
    pub(crate) cpu_seconds: f64,
    /// The CPU time of one operation.
    pub(crate) cpu_micros: f64,
    pub(crate) before: Memory,
    pub(crate) after: Memory,
}

/// The value is not `NAME=PID`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be NAME=PID, for example agent=4711")]
pub(crate) struct InvalidProcess;

/// The unit of times in `/proc`: `USER_HZ`, which is 100 on all supported architectures
/// (include/asm-generic/param.h).
const TICKS_PER_SECOND: u64 = 100;

// === impl NamedProcess ===

impl NamedProcess {
    /// This program.
    pub(crate) fn own() -> Self {
        Self { name: "bench".to_owned(), pid: std::process::id() }
    }

    pub(crate) fn usage(&self) -> anyhow::Result<Usage> {
        let all = stats().context("cannot read /proc")?;
        let own = all.get(&self.pid).with_context(|| format!("{}: process {} does not exist", self.name, self.pid))?;
        let mut usage = Usage { cpu: own.cpu, memory: memory(self.pid) };
        for pid in descendants(self.pid, &all) {
            usage.cpu += all[&pid].cpu;
            let Memory { rss_kb, peak_kb } = memory(pid);
            usage.memory.rss_kb += rss_kb;
            usage.memory.peak_kb += peak_kb;
        }
        Ok(usage)
    }
}

impl FromStr for NamedProcess {
    type Err = InvalidProcess;

    fn from_str(text: &str) -> Result<Self, InvalidProcess> {
        let (name, pid) = text.split_once('=').ok_or(InvalidProcess)?;
        let pid = pid.parse().map_err(|_| InvalidProcess)?;
        if name.is_empty() || pid == 0 { Err(InvalidProcess) } else { Ok(Self { name: name.to_owned(), pid }) }
    }
}

// === impl Cost ===

impl Cost {
    #[expect(clippy::cast_precision_loss, reason = "counts of a run are less than 2^52")]
    pub(crate) fn new(process: &NamedProcess, before: Usage, after: Usage, operations: u64) -> Self {
        let cpu_seconds = after.cpu.saturating_sub(before.cpu).as_secs_f64();
        Self {
            name: process.name.clone(),
            cpu_seconds,
            cpu_micros: cpu_seconds * 1e6 / operations.max(1) as f64,
            before: before.memory,
            after: after.memory,
        }
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, cpu_seconds, cpu_micros, before, after } = self;
        let [rss, then, peak] = [before.rss_kb, after.rss_kb, after.peak_kb].map(|kb| kb / 1024);
        write!(f, "{name}: RSS {rss} -> {then} MB, peak {peak}; {cpu_seconds:.2} s of CPU, {cpu_micros:.0} us")
    }
}

// === impl Stat ===

impl Stat {
    /// Field 4 is the parent. Fields 14 to 17 are the user and system time of the process, and those of its children
    /// that were waited for.
    fn parse(stat: &str) -> Option<Self> {
        // Field 2 is the name of the program in parentheses. The name can contain parentheses and spaces.
        let after_name = &stat[stat.rfind(')')? + 1..];
        let mut fields = after_name.split_ascii_whitespace().skip(1);
        let parent = fields.next()?.parse().ok()?;
        let ticks: Vec<u64> = fields.skip(9).take(4).map_while(|field| field.parse().ok()).collect();
        let ticks = (ticks.len() == 4).then(|| ticks.iter().sum::<u64>())?;
        Some(Self { parent, cpu: Duration::from_millis(ticks * 1_000 / TICKS_PER_SECOND) })
    }
}

/// All processes of this machine, except those that end in the meantime.
fn stats() -> std::io::Result<BTreeMap<u32, Stat>> {
    let stat = |entry: fs::DirEntry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        Some((pid, Stat::parse(&fs::read_to_string(entry.path().join("stat")).ok()?)?))
    };
    Ok(fs::read_dir("/proc")?.filter_map(|entry| stat(entry.ok()?)).collect())
}

fn descendants(of: u32, all: &BTreeMap<u32, Stat>) -> Vec<u32> {
    let mut found = vec![of];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        // A process cannot be its own ancestor, but the files in `/proc` are read one after the other.
        let children = all.iter().filter(|(_, stat)| stat.parent == parent).map(|(pid, _)| *pid);
        let new: Vec<u32> = children.filter(|pid| !found.contains(pid)).collect();
        found.extend(new);
        next += 1;
    }
    found.split_off(1)
}

/// The memory of a process. Zero if it is ending.
fn memory(pid: u32) -> Memory {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    Memory { rss_kb: kb(&status, "VmRSS"), peak_kb: kb(&status, "VmHWM") }
}

/// The value of a line, or 0 without such a line: a process that is ending has no memory.
fn kb(status: &str, key: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
    line.and_then(|line| line.split_ascii_whitespace().next()?.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_a_name_and_a_number() {
        let process: NamedProcess = "agent=4711".parse().unwrap();
        assert_eq!(process, NamedProcess { name: "agent".to_owned(), pid: 4711 });
        for wrong in ["", "agent", "=1", "agent=", "agent=x", "agent=0", "agent=-1"] {
            assert_eq!(wrong.parse::<NamedProcess>(), Err(InvalidProcess), "{wrong}");
        }
    }

    #[test]
    fn cpu_time_is_read_behind_any_name() {
        let rest = "S 1 2 3 4 5 6 7 8 9 10 250 50 20 10 20 0 4 0 100";
        for name in ["proxy-agent", "a) R 1 (b", ""] {
            let stat = Stat { parent: 1, cpu: Duration::from_millis(3_300) };
            assert_eq!(Stat::parse(&format!("12 ({name}) {rest}")), Some(stat), "{name}");
        }
        assert_eq!(Stat::parse("12 (cut) S 1 2"), None);
    }

    #[test]
    fn children_and_their_children_are_descendants() {
        let stat = |parent| Stat { parent, cpu: Duration::ZERO };
        let all = BTreeMap::from([(1, stat(0)), (2, stat(1)), (3, stat(2)), (4, stat(2)), (5, stat(4)), (6, stat(1))]);
        assert_eq!(descendants(2, &all), [3, 4, 5]);
        assert!(descendants(5, &all).is_empty());
    }

    #[test]
    fn a_child_counts() {
        // It waits for input, and gets none.
        let mut child = std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let found = descendants(std::process::id(), &stats().unwrap()).contains(&child.id());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(found);
    }

    #[test]
    fn memory_is_read_by_its_key() {
        let status = "Name:\tx\nVmHWM:\t  2048 kB\nVmRSS:\t  1024 kB\n";
        assert_eq!((kb(status, "VmRSS"), kb(status, "VmHWM"), kb(status, "VmSwap")), (1024, 2048, 0));
    }

    #[test]
    fn this_process_uses_something() {
        let usage = NamedProcess::own().usage().unwrap();
        assert!(usage.memory.rss_kb > 0 && usage.memory.peak_kb >= usage.memory.rss_kb, "{usage:?}");
    }
}

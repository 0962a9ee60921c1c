//! The memory and the open files of the agent and the proxy-server over time.

use std::time::Duration;

use anyhow::ensure;
use atoll_tests::process::Process;

const MIB: u64 = 1 << 20;

/// The maximum growth of a process until the end, in bytes: allocators do not return all memory.
const MORE_BYTES: u64 = 8 * MIB;

/// The maximum growth of a process in open files: the clients that watch may have other connections.
const MORE_FILES: u64 = 30;

/// What a process holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Held {
    bytes: u64,
    files: u64,
}

/// Samples, each with its time: the agent, and the proxy-server.
#[derive(Default)]
pub(super) struct Memory(Vec<(Duration, [Held; 2])>);

// === impl Memory ===

impl Memory {
    /// Takes a sample, and describes it.
    pub(super) fn sample(&mut self, at: Duration, processes: [&Process; 2]) -> anyhow::Result<String> {
        let held = |process: &Process| anyhow::Ok(Held { bytes: process.memory()?, files: process.files()? });
        let sample = [held(processes[0])?, held(processes[1])?];
        self.0.push((at, sample));
        let [agent, server] = sample.map(|held| format!("{} MiB, {} files", held.bytes / MIB, held.files));
        Ok(format!("agent {agent}, proxy-server {server}"))
    }

    /// Compares the last tenth with the tenth before the middle.
    pub(super) fn is_flat(&self, duration: Duration) -> anyhow::Result<String> {
        let (middle, end) = (self.median(duration * 4 / 10, duration / 2), self.median(duration * 9 / 10, duration));
        let shown = |[agent, server]: [Held; 2]| {
            let one = |held: Held| format!("{} KiB and {} files", held.bytes >> 10, held.files);
            format!("agent {}, proxy-server {}", one(agent), one(server))
        };
        let shown = format!("before the middle: {}; at the end: {}", shown(middle), shown(end));
        let is_flat = middle
            .iter()
            .zip(end)
            .all(|(middle, end)| end.bytes < middle.bytes + MORE_BYTES && end.files < middle.files + MORE_FILES);
        ensure!(is_flat, "{shown}");
        Ok(shown)
    }

    /// The medians of the samples in this time.
    fn median(&self, from: Duration, to: Duration) -> [Held; 2] {
        [0, 1].map(|process| {
            let median = |read: fn(&Held) -> u64| {
                let within = self.0.iter().filter(|(at, _)| (from..to).contains(at));
                let mut values: Vec<u64> = within.map(|(_, sample)| read(&sample[process])).collect();
                values.sort_unstable();
                values.get(values.len() / 2).copied().unwrap_or_default()
            };
            Held { bytes: median(|held| held.bytes), files: median(|held| held.files) }
        })
    }
}

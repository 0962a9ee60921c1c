//! The memory of the agent and the proxy-server over time.

use std::time::Duration;

use anyhow::ensure;
use atoll_tests::process::Process;

const MIB: u64 = 1 << 20;

/// The maximum growth of a process until the end, in bytes: allocators do not return all memory.
const MORE: u64 = 8 * MIB;

/// Samples, each with its time: the agent, and the proxy-server, in bytes.
#[derive(Default)]
pub(super) struct Memory(Vec<(Duration, [u64; 2])>);

// === impl Memory ===

impl Memory {
    /// Takes a sample, and describes it.
    pub(super) fn sample(&mut self, at: Duration, processes: [&Process; 2]) -> anyhow::Result<String> {
        let [agent, server] = processes.map(Process::memory);
        let sample = [agent?, server?];
        self.0.push((at, sample));
        let [agent, server] = sample.map(|bytes| bytes / MIB);
        Ok(format!("agent {agent} MiB, proxy-server {server} MiB"))
    }

    /// Compares the last tenth with the tenth before the middle.
    pub(super) fn is_flat(&self, duration: Duration) -> anyhow::Result<String> {
        let (middle, end) = (self.median(duration * 4 / 10, duration / 2), self.median(duration * 9 / 10, duration));
        let shown = |[agent, server]: [u64; 2]| format!("agent {} KiB, proxy-server {} KiB", agent >> 10, server >> 10);
        let shown = format!("memory before the middle: {}; at the end: {}", shown(middle), shown(end));
        let is_flat = middle.iter().zip(end).all(|(middle, end)| end < middle + MORE);
        ensure!(is_flat, "{shown}");
        Ok(shown)
    }

    /// The medians of the samples in this time.
    fn median(&self, from: Duration, to: Duration) -> [u64; 2] {
        [0, 1].map(|process| {
            let within = self.0.iter().filter(|(at, _)| (from..to).contains(at));
            let mut bytes: Vec<u64> = within.map(|(_, sample)| sample[process]).collect();
            bytes.sort_unstable();
            bytes.get(bytes.len() / 2).copied().unwrap_or_default()
        })
    }
}

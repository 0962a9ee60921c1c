//! One line for each attack.

use std::collections::BTreeMap;
use std::fmt;

use crate::tenant::{ACTS, Outcome};

/// The maximum additional memory of proxy-server or agent during an attack, in bytes.
const MAX_MEMORY: u64 = 128 << 20;

pub(crate) struct Header {
    /// Whether harmless requests replace the attacks.
    pub(crate) is_control: bool,
}

pub(crate) struct Row {
    pub(crate) name: &'static str,
    /// The maximum ratio of the 99th percentiles of the tenant's latencies, with and without the attack.
    pub(crate) max_ratio: f64,
    /// How often the attacker got each response.
    pub(crate) responses: BTreeMap<String, u64>,
    /// Peaks above idle, in bytes.
    pub(crate) agent: u64,
    pub(crate) server: u64,
    pub(crate) host: u64,
    /// The requests of the tenant.
    pub(crate) without: Outcome,
    pub(crate) with: Outcome,
    /// Whether to print each kind of request, too.
    pub(crate) by_request: bool,
}

// === impl Header ===

impl fmt::Display for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_control {
            writeln!(f, "Control: the requests of the attacks are harmless ones.")?;
        }
        writeln!(
            f,
            "Memory: peak in MB above idle. Latency: 99th percentile of the tenant's lists, and of its other requests, \
             in ms, without and with the attack."
        )?;
        write!(
            f,
            "{:<32}{:>7}{:>8}{:>6}{:>9}{:>8}{:>7}{:>9}{:>8}{:>7}{:>8}  responses to the attacker",
            "attack", "agent", "server", "host", "lists", "with", "ratio", "others", "with", "ratio", "errors"
        )
    }
}

// === impl Row ===

impl Row {
    /// The 99th percentiles of lists and of all other requests, without and with the attack, in milliseconds.
    fn p99(&self) -> [(&'static str, f64, f64); 2] {
        let ([lists, others], [attacked_lists, attacked_others]) = (self.without.p99(), self.with.p99());
        [("lists", lists, attacked_lists), ("other requests", others, attacked_others)]
    }

    /// The exceeded bounds.
    pub(crate) fn misses(&self) -> Vec<String> {
        let mut misses = Vec::new();
        for (process, peak) in [("agent", self.agent), ("proxy-server", self.server)] {
            if peak >= MAX_MEMORY {
                misses.push(format!("the {process} used {} MB", peak >> 20));
            }
        }
        for (what, without, with) in self.p99() {
            let ratio = with / without;
            // NaN if there was no response.
            if ratio.is_nan() || ratio > self.max_ratio {
                misses.push(format!(
                    "the p99 of the tenant's {what} is {ratio:.2} times as long (at most {})",
                    self.max_ratio
                ));
            }
        }
        for (error, times) in self.without.errors().iter().chain(self.with.errors()) {
            misses.push(format!("{times} x {error}"));
        }
        misses
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [agent, server, host] = [self.agent, self.server, self.host].map(|bytes| bytes >> 20);
        let errors: usize = self.with.errors().values().sum();
        write!(f, "{:<32}{agent:>7}{server:>8}{host:>6}", self.name)?;
        for (_, without, with) in self.p99() {
            write!(f, "{without:>9.1}{with:>8.1}{:>7.2}", with / without)?;
        }
        write!(f, "{errors:>8}  ")?;
        for (response, times) in &self.responses {
            write!(f, "{times} x {response}, ")?;
        }
        write!(f, "{} in total", self.responses.values().sum::<u64>())?;
        if self.by_request {
            for act in ACTS {
                write!(f, "\n  {act:?}:")?;
                for percent in [50, 90, 99] {
                    let [without, with] = [&self.without, &self.with].map(|phases| phases.percentile_of(percent, act));
                    write!(f, "  p{percent} {without:.1} -> {with:.1}")?;
                }
            }
        }
        self.misses().iter().try_for_each(|miss| write!(f, "\n  MISSED: {miss}"))
    }
}

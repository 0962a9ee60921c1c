//! One line for each attack.

use std::collections::BTreeMap;
use std::fmt;

use crate::tenant::Outcome;

/// What an attack may cost either half, in bytes.
const MEMORY: u64 = 128 << 20;

/// How much longer the 99th percentile of another tenant's requests may take.
const RATIO: f64 = 2.0;

pub(crate) struct Header {
    /// Whether nothing is attacked.
    pub(crate) is_control: bool,
}

pub(crate) struct Row {
    pub(crate) name: &'static str,
    /// How often each answer came to the attacker.
    pub(crate) answers: BTreeMap<String, u64>,
    /// Peaks above idle, in bytes.
    pub(crate) agent: u64,
    pub(crate) server: u64,
    pub(crate) host: u64,
    /// The other tenant's.
    pub(crate) without: Outcome,
    pub(crate) with: Outcome,
}

// === impl Header ===

impl fmt::Display for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_control {
            writeln!(f, "Control: wherever an attack is a number of requests, these are harmless ones.")?;
        }
        writeln!(
            f,
            "Peaks of memory are MB above idle. p99 is the other tenant's, in ms, without and with the attack."
        )?;
        write!(
            f,
            "{:<24}{:>7}{:>8}{:>6}{:>9}{:>8}{:>7}{:>8}  answers to the attacker",
            "attack", "agent", "server", "host", "without", "with", "ratio", "errors"
        )
    }
}

// === impl Row ===

impl Row {
    fn ratio(&self) -> f64 {
        self.with.p99() / self.without.p99()
    }

    /// The bounds that it does not keep.
    pub(crate) fn misses(&self) -> Vec<String> {
        let mut misses = Vec::new();
        for (half, peak) in [("agent", self.agent), ("proxy-server", self.server)] {
            if peak >= MEMORY {
                misses.push(format!("the {half} took {} MB", peak >> 20));
            }
        }
        // Not a number if nothing was answered.
        if self.ratio().is_nan() || self.ratio() > RATIO {
            misses.push(format!("the other tenant's p99 is {:.2} times as long", self.ratio()));
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
        let (without, with) = (self.without.p99(), self.with.p99());
        write!(f, "{:<24}{agent:>7}{server:>8}{host:>6}", self.name)?;
        write!(f, "{without:>9.1}{with:>8.1}{:>7.2}{errors:>8}  ", self.ratio())?;
        for (answer, times) in &self.answers {
            write!(f, "{times} x {answer}, ")?;
        }
        write!(f, "{} in all", self.answers.values().sum::<u64>())?;
        self.misses().iter().try_for_each(|miss| write!(f, "\n  MISSED: {miss}"))
    }
}

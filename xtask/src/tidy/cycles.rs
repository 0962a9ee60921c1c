//! The modules of a crate do not depend on each other in cycles.
//!
//! The rule applies to the children of each module, at every level. Everything inside a child counts as the child. The
//! code of the parent itself is one more member of that level. So if a parent uses its child, and the child uses what
//! the parent's own file defines, this is a cycle of two. A parent that only declares and re-exports its children is
//! not part of a cycle. If an `impl Type` block is outside of the module that defines the type, that module depends on
//! the block's module, because whoever uses the type has all its methods.
//!
//! Reading order: [`level`] (dependencies), [`mod@components`] (cycles).

mod components;
mod level;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::known::{Known, Violation};
use super::modules::Unit;
use crate::finding::Finding;
use components::{components, shortest_cycle};
use level::{Level, levels};

const REMEDY: &str = "move what both sides need into a module below them, or pass it as an argument";

/// A maximal set of modules in which each depends on each other one, directly or indirectly.
pub(crate) struct Cycle {
    unit: String,
    members: BTreeSet<String>,
    /// Between the members.
    level: Level,
}

/// The cycles of a unit.
pub(crate) fn measure(unit: &Unit) -> Vec<Cycle> {
    let mut cycles = Vec::new();
    for level in levels(unit) {
        for members in components(&level) {
            let level = level.within(&members);
            cycles.push(Cycle { unit: unit.name.clone(), members, level });
        }
    }
    cycles
}

// === impl Cycle ===

impl Cycle {
    pub(crate) fn violation(&self) -> Violation {
        Violation::Cycle { unit: self.unit.clone(), members: self.members.clone() }
    }

    /// Shows a shortest cycle that is not part of a known one, with a use for each of its edges.
    pub(crate) fn finding(&self, known: &Known) -> Finding {
        let candidates: Vec<_> =
            self.level.edges().filter_map(|(from, to)| shortest_cycle(&self.level, from, to)).collect();
        let is_new = |cycle: &&Vec<&str>| {
            let members = cycle.iter().map(|&name| name.to_owned()).collect();
            !known.covers(&Violation::Cycle { unit: self.unit.clone(), members })
        };
        let cycle = candidates.iter().filter(is_new).min_by_key(|cycle| cycle.len());
        let cycle = cycle.expect("otherwise, a known cycle would cover this one");

        let mut problem = match self.members.len() {
            n if n == cycle.len() => "these modules form a cycle:".to_owned(),
            n => format!("{n} modules form cycles, such as:"),
        };
        let uses: Vec<_> = cycle
            .iter()
            .zip(cycle.iter().cycle().skip(1))
            .filter_map(|(from, to)| Some((from, to, self.level.place(from, to)?)))
            .collect();
        for (from, to, place) in &uses {
            let _ = write!(problem, "\n    {from} -> {to}  {place}");
        }
        if self.members.len() > cycle.len() {
            let members: Vec<_> = self.members.iter().map(String::as_str).collect();
            let _ = write!(problem, "\n    all {}: {}", members.len(), members.join(", "));
        }
        let (_, _, first) = uses[0];
        Finding::new(&first.file, first.line, problem, REMEDY)
    }
}

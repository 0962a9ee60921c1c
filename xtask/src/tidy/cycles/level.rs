//! The dependencies between the children of one module.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;

use crate::tidy::modules::{ModuleId, Scopes, Unit, inherent_impls, uses};

/// The edges between the children of one module and its own code, by their paths, each with a place in the code.
#[derive(Default)]
pub(super) struct Level {
    edges: BTreeMap<(String, String), Place>,
}

/// The place of an edge: `path:line`.
#[derive(Clone)]
pub(super) struct Place {
    /// Relative to the root of the workspace.
    pub(super) file: PathBuf,
    /// From 1.
    pub(super) line: usize,
    /// The type, if one of its `impl` blocks is the reason.
    methods_of: Option<String>,
}

/// The levels of a unit that have an edge, from the root down.
pub(super) fn levels(unit: &Unit) -> Vec<Level> {
    let scopes = Scopes::new(unit);
    let mut levels: BTreeMap<ModuleId, Level> = BTreeMap::new();
    let mut add = |from, to, at, line, methods_of| {
        let (from, to) = (unit.lineage(from), unit.lineage(to));
        let shared = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
        let parent = from[shared - 1];
        let member = |line: &[ModuleId]| unit.path(line.get(shared).copied().unwrap_or(parent));
        let place = || Place { file: unit.module(at).file.clone(), line, methods_of };
        if from != to {
            let level = levels.entry(parent).or_default();
            level.edges.entry((member(&from), member(&to))).or_insert_with(place);
        }
    };
    for found in uses(unit, &scopes) {
        add(found.from, found.to, found.from, found.line, None);
    }
    for block in inherent_impls(unit, &scopes) {
        add(block.home, block.module, block.module, block.line, Some(block.name));
    }
    levels.into_values().collect()
}

// === impl Level ===

impl Level {
    pub(super) fn edges(&self) -> impl Iterator<Item = (&str, &str)> {
        self.edges.keys().map(|(from, to)| (from.as_str(), to.as_str()))
    }

    pub(super) fn place(&self, from: &str, to: &str) -> Option<&Place> {
        self.edges.get(&(from.to_owned(), to.to_owned()))
    }

    /// The edges with both ends in `members`.
    pub(super) fn within(&self, members: &BTreeSet<String>) -> Self {
        let edges = self.edges.iter().filter(|((from, to), _)| members.contains(from) && members.contains(to));
        Self { edges: edges.map(|(edge, place)| (edge.clone(), place.clone())).collect() }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file.display(), self.line)?;
        match &self.methods_of {
            Some(name) => write!(f, " (methods of {name})"),
            None => Ok(()),
        }
    }
}

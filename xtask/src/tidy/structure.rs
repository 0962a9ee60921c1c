//! The structural rules, and their known violations.

use std::path::Path;

use super::cycles::{self, Cycle};
use super::graph::Graph;
use super::known::{self, Known, Violation};
use super::methods::{self, Crowded};
use super::modules;
use super::shares::{self, Share};
use crate::finding::Finding;
use crate::tree::Tree;

/// All violations in the workspace, known or not.
pub(crate) struct Structure {
    shares: Vec<Share>,
    crowded: Vec<Crowded>,
    cycles: Vec<Cycle>,
}

/// Measures the workspace and reads the checked-in list. Without the file, the list is empty.
pub(crate) fn read(graph: &Graph, tree: &Tree) -> Result<(Structure, Known), Vec<Finding>> {
    let known = Known::parse(tree.text(Path::new(known::FILE)).unwrap_or_default());
    match (Structure::measure(graph, tree), known) {
        (Ok(structure), Ok(known)) => Ok((structure, known)),
        (structure, known) => Err(structure.err().into_iter().chain(known.err()).collect()),
    }
}

/// Finds violations that are not on the list, and entries that are no longer needed.
pub(crate) fn check(graph: &Graph, tree: &Tree) -> Vec<Finding> {
    let (structure, known) = match read(graph, tree) {
        Ok(read) => read,
        Err(findings) => return findings,
    };
    let mut findings = structure.growth(&known);
    findings.extend(known.check(&structure.violations()));
    findings
}

// === impl Structure ===

impl Structure {
    /// Fails at the first file that cannot be read.
    fn measure(graph: &Graph, tree: &Tree) -> Result<Self, Finding> {
        let mut structure = Self { shares: shares::measure(graph, tree), crowded: Vec::new(), cycles: Vec::new() };
        for (_, package) in graph.members() {
            for (name, root) in &package.units {
                let unit = modules::read(name.clone(), root, tree)?;
                structure.crowded.extend(methods::measure(&unit));
                structure.cycles.extend(cycles::measure(&unit));
            }
        }
        Ok(structure)
    }

    pub(crate) fn violations(&self) -> Vec<Violation> {
        let shares = self.shares.iter().map(Share::violation);
        let crowded = self.crowded.iter().map(Crowded::violation);
        let cycles = self.cycles.iter().map(Cycle::violation);
        shares.chain(crowded).chain(cycles).collect()
    }

    /// Violations that are not on the list.
    pub(crate) fn growth(&self, known: &Known) -> Vec<Finding> {
        let is_new = |violation: Violation| !known.covers(&violation);
        let shares = self.shares.iter().filter(|share| is_new(share.violation())).map(|share| share.finding(known));
        let crowded =
            self.crowded.iter().filter(|crowded| is_new(crowded.violation())).map(|crowded| crowded.finding(known));
        let cycles = self.cycles.iter().filter(|cycle| is_new(cycle.violation()));
        shares.chain(crowded).chain(cycles.map(|cycle| cycle.finding(known))).collect()
    }
}

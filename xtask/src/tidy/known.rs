//! The known violations of the structural rules: a list that only gets shorter.
//!
//! Tidy fails if a violation is not on the list. It also fails if a violation on the list no longer exists or has
//! become smaller, so that it cannot return. The list names modules and types, not files or lines, so that it does not
//! change with other code.
//!
//! Reading order: [`violation`], [`text`] (how the list is written).

mod text;
mod violation;

use std::path::Path;

use crate::finding::Finding;
pub(crate) use violation::Violation;

/// Relative to the root of the workspace.
pub(crate) const FILE: &str = "xtask/known-violations.txt";

/// The list.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Known {
    /// Each with its line, from 1.
    entries: Vec<(usize, Violation)>,
}

// === impl Known ===

impl Known {
    pub(crate) fn parse(text: &str) -> Result<Self, Finding> {
        let parsed = text::parse(text);
        let entries = parsed.map_err(|(line, problem)| {
            Finding::new(Path::new(FILE), line, problem, "write it as --write-known does")
        })?;
        Ok(Self { entries })
    }

    /// Whether a violation is on the list, as it is now or larger.
    pub(crate) fn covers(&self, violation: &Violation) -> bool {
        self.entries.iter().any(|(_, entry)| entry.covers(violation))
    }

    /// For a message: what the list allows, if a violation is larger.
    pub(crate) fn allowance(&self, violation: &Violation) -> String {
        let entry = self.entries.iter().find(|(_, entry)| violation.covers(entry));
        entry.map_or_else(String::new, |(line, entry)| format!(" ({FILE}:{line} allows `{entry}`)"))
    }

    /// Entries that allow more than the code needs. A violation that became larger is reported as new, and is not among
    /// them.
    pub(crate) fn check(&self, now: &[Violation]) -> Vec<Finding> {
        let is_needed = |entry: &Violation| now.iter().any(|now| entry.fits(now) || now.covers(entry));
        let mut findings = Vec::new();
        for (line, entry) in self.entries.iter().filter(|(_, entry)| !is_needed(entry)) {
            let rest: Vec<_> = now.iter().filter(|now| entry.covers(now)).map(ToString::to_string).collect();
            let problem = match rest.len() {
                0 => format!("a known violation is gone: {entry}"),
                _ => format!("a known violation is smaller: {entry} is now {}", rest.join(" and ")),
            };
            let remedy = "run `cargo run -p xtask -- tidy --write-known`, so that it does not come back";
            findings.push(Finding::new(Path::new(FILE), *line, problem, remedy));
        }
        findings
    }

    /// The text of a list of the current violations. Entries that still fit do not change.
    pub(crate) fn updated(&self, now: &[Violation]) -> String {
        let keep_or_record = |now: &Violation| {
            let kept = self.entries.iter().find(|(_, entry)| entry.fits(now));
            kept.map_or_else(|| now.to_entry(), |(_, entry)| entry.clone())
        };
        let mut entries: Vec<_> = now.iter().map(keep_or_record).collect();
        entries.sort();
        text::print(&entries)
    }
}

#[cfg(test)]
mod tests;

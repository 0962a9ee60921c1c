//! The labels of the guard in a node selector, for all encodings.

use super::refusal::{Reason, Refusal};
use crate::Guard;
use crate::guard::Entry;
use crate::json::{Fault as _, Step};

/// The labels of the guard in a node selector.
#[derive(Default)]
pub(super) struct GuardedLabels<'g> {
    entries: &'g [Entry],
    has: Vec<bool>,
    /// A label for which another value is requested, and that value.
    conflict: Option<(usize, String)>,
}

// === impl GuardedLabels ===

impl<'g> GuardedLabels<'g> {
    pub(super) fn new(guard: &'g Guard) -> Self {
        let entries = guard.entries();
        Self { entries, has: vec![false; entries.len()], conflict: None }
    }

    /// The index of this label.
    pub(super) fn position(&self, is: impl Fn(&str) -> bool) -> Option<usize> {
        self.entries.iter().position(|entry| is(&entry.key))
    }

    /// Records a label. Returns whether its value is that of the guard.
    pub(super) fn claim(&mut self, number: usize, is: impl FnOnce(&str) -> bool) -> Result<bool, Refusal> {
        if std::mem::replace(&mut self.has[number], true) {
            return Err(Reason::Duplicate.into());
        }
        Ok(is(&self.entries[number].value))
    }

    /// Another value is requested. The first one is reported to the client.
    pub(super) fn conflict(&mut self, number: usize, wanted: String) {
        self.conflict.get_or_insert((number, wanted));
    }

    /// The missing labels, at the end of the selector.
    pub(super) fn missing(self) -> Result<impl Iterator<Item = &'g Entry>, Refusal> {
        if let Some((number, wanted)) = self.conflict {
            // Paths write keys of maps in brackets, and only this code knows that it is a map.
            let entry = &self.entries[number];
            let refusal = Refusal::from(Reason::Conflict { wanted, guard: entry.value.clone() });
            return Err(refusal.within(Step::MapKey(&entry.key)));
        }
        Ok(self.entries.iter().zip(self.has).filter(|(_, has)| !has).map(|(entry, _)| entry))
    }
}

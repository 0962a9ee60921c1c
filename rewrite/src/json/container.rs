//! What remains of a container whose members or elements are visited.

use super::edit::Edits;

/// What happens to a visited member or element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Keep it, with the edits in it.
    Keep,
    /// Remove it, with its comma.
    Remove,
}

/// The result of a visit to a container.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// The offset after the opening bracket, at which a new first member can be inserted.
    pub inside: usize,
    /// The offset of the closing bracket, at which a new last element can be inserted.
    pub close: usize,
    /// The number of kept members or elements.
    pub kept: usize,
    /// The number of removed members or elements.
    pub removed: usize,
}

/// The comma to remove with a member: the one before it, or the one after it if no member before it is kept.
#[derive(Default)]
pub(super) struct Cuts {
    pub(super) kept: usize,
    pub(super) removed: usize,
    /// The start of a removed run that nothing kept precedes.
    leading: Option<usize>,
    /// The end of the last value.
    pub(super) end: usize,
}

// === impl Cuts ===

impl Cuts {
    /// A member begins. If only removed ones precede it, they are removed with the comma before it.
    pub(super) fn next(&mut self, start: usize, edits: &mut Edits) {
        if let Some(from) = self.leading.take() {
            edits.delete(from..start);
        }
    }

    /// The member from `start` to `end` is removed.
    pub(super) fn remove(&mut self, start: usize, end: usize, edits: &mut Edits) {
        self.removed += 1;
        if self.kept == 0 {
            self.leading = Some(start);
        } else {
            edits.delete(self.end..end);
        }
    }

    /// The container has ended.
    pub(super) fn finish(&self, edits: &mut Edits) {
        if let Some(from) = self.leading {
            edits.delete(from..self.end);
        }
    }
}

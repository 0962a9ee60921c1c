//! The changes of a text, and how the output is assembled.

use std::ops::Range;

use bytes::Bytes;

use crate::Sink;

/// Changes to one text, by byte ranges of it. Ranges never overlap.
#[derive(Debug, Default)]
pub struct Edits {
    list: Vec<Edit>,
    /// Whether an edit was recorded at a position before an earlier one.
    unordered: bool,
}

/// A point in the recording that [`Edits::forget_since`] goes back to.
#[derive(Clone, Copy, Debug)]
pub struct Mark(usize);

/// A position among the edits, for one that is known after later ones.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub(crate) struct Reserved(usize);

#[derive(Debug)]
struct Edit {
    start: usize,
    end: usize,
    with: Bytes,
}

/// The number of edits that a body usually has at most: so many need one allocation. In protobuf, each name takes one for itself
/// and one for the length of each message around it.
const USUAL: usize = 48;

// === impl Edits ===

impl Edits {
    /// No changes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether the output equals the input.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Removes all edits, and keeps the capacity.
    pub fn clear(&mut self) {
        self.list.clear();
        self.unordered = false;
    }

    /// Replaces a range by `with`.
    pub fn replace(&mut self, range: Range<usize>, with: Bytes) {
        if self.list.last().is_some_and(|last| range.start < last.end) {
            self.unordered = true;
        }
        if self.list.capacity() == 0 {
            self.list.reserve(USUAL);
        }
        self.list.push(Edit { start: range.start, end: range.end, with });
    }

    /// Replaces `old`, which is at `range`, by `new`. If `old` begins with `new`, as `edge-ke-beijing` with `edge`, it cuts the
    /// tail instead, which saves a piece of output.
    pub fn rename(&mut self, range: Range<usize>, old: &[u8], new: &Bytes) {
        if old.len() == range.len() && old.starts_with(new) {
            if old.len() > new.len() {
                self.delete(range.start + new.len()..range.end);
            }
        } else {
            self.replace(range, new.clone());
        }
    }

    /// Removes a range. Neighbouring removed ranges take the memory of one.
    pub fn delete(&mut self, range: Range<usize>) {
        match self.list.last_mut() {
            Some(last) if last.with.is_empty() && last.end == range.start && last.start < last.end => {
                last.end = range.end;
            }
            _ => self.replace(range, Bytes::new()),
        }
    }

    /// Inserts `what` before the byte at `at`.
    pub fn insert(&mut self, at: usize, what: impl Into<Bytes>) {
        self.replace(at..at, what.into());
    }

    /// Reserves the position of an edit at `at`, so that the edits stay in order although later ones are recorded first.
    pub(crate) fn reserve(&mut self, at: usize) -> Reserved {
        self.replace(at..at, Bytes::new());
        Reserved(self.list.len() - 1)
    }

    /// Replaces the range at a reserved position by `with`. The range must begin where it was reserved.
    pub(crate) fn fill(&mut self, reserved: Reserved, range: Range<usize>, with: Bytes) {
        let edit = &mut self.list[reserved.0];
        debug_assert_eq!(edit.start, range.start, "another position was reserved");
        edit.end = range.end;
        edit.with = with;
    }

    /// Returns a reserved position that is not needed.
    pub(crate) fn release(&mut self, reserved: Reserved) {
        // Before other edits it stays, and changes nothing.
        if reserved.0 + 1 == self.list.len() {
            self.list.pop();
        }
    }

    /// The current state of the recording.
    pub fn mark(&self) -> Mark {
        Mark(self.list.len())
    }

    /// Forgets what was recorded since `mark`.
    pub fn forget_since(&mut self, mark: Mark) {
        self.list.truncate(mark.0);
    }

    /// The changed ranges, for edits that are applied later.
    pub fn into_ranges(self) -> impl Iterator<Item = Range<usize>> {
        self.list.into_iter().map(|edit| edit.start..edit.end)
    }

    /// Writes the edited `range` of `text` to `sink`, and removes all edits. They must be in that range.
    pub fn splice(&mut self, text: &Bytes, range: Range<usize>, sink: &mut impl Sink) {
        if self.unordered {
            // The sort is stable, so inserts at one position keep their order. They precede the replacement of the text
            // at this position, because their range is empty.
            self.list.sort_by_key(|edit| (edit.start, edit.end));
            self.unordered = false;
        }
        let mut kept = range.start;
        for edit in self.list.drain(..) {
            if kept < edit.start {
                sink.emit_range(text, kept..edit.start);
            }
            if !edit.with.is_empty() {
                sink.emit(edit.with);
            }
            kept = edit.end;
        }
        if kept < range.end {
            sink.emit_range(text, kept..range.end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spliced(mut edits: Edits) -> Vec<u8> {
        let mut out: Vec<Bytes> = Vec::new();
        edits.splice(&Bytes::from_static(b"0123456789"), 0..10, &mut out);
        out.concat()
    }

    #[test]
    fn a_reserved_position_keeps_its_place_among_later_edits() {
        let mut edits = Edits::new();
        let [outer, inner] = [1, 3].map(|at| edits.reserve(at));
        edits.replace(5..6, Bytes::from_static(b"five"));
        edits.insert(8, Bytes::from_static(b"+"));
        edits.fill(inner, 3..4, Bytes::from_static(b"three"));
        edits.fill(outer, 1..2, Bytes::from_static(b"one"));
        assert!(!edits.unordered);
        assert_eq!(spliced(edits), b"0one2three4five67+89");
    }

    #[test]
    fn a_released_position_changes_nothing() {
        let mut edits = Edits::new();
        let first = edits.reserve(1);
        edits.release(first);
        assert!(edits.is_empty());

        let second = edits.reserve(2);
        edits.delete(4..5);
        edits.release(second);
        assert_eq!(spliced(edits), b"012356789");
    }
}

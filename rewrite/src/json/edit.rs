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

#[derive(Debug)]
struct Edit {
    start: usize,
    end: usize,
    with: Bytes,
}

/// The number of edits that a body usually has at most: so many need one allocation.
const USUAL: usize = 16;

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

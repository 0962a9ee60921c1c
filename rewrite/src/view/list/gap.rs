//! The commas and white space between items, some of which are removed with hidden items.

use std::ops::Range;

use bytes::Bytes;

use crate::Sink;
use crate::json::Edits;

/// Forwards a window, in runs as long as possible.
pub(super) struct Output<'a, S> {
    window: &'a Bytes,
    /// Everything before it was forwarded or removed.
    from: usize,
    sink: &'a mut S,
}

/// The text between the last item and the next.
///
/// It is only needed if the next item is visible. Within a window, it is a range that the output has not reached yet. Its part
/// in earlier windows is kept in `spilled`.
#[derive(Default)]
pub(super) struct Gap {
    spilled: Vec<u8>,
    /// The start of the gap in this window.
    from: usize,
    /// The white space before the first item, which will be written before the first visible item.
    lead: Vec<u8>,
    /// Whether an item of this array was visible.
    shown: bool,
    /// Whether an item was removed.
    left_out: bool,
}

// === impl Output ===

impl<'a, S: Sink> Output<'a, S> {
    pub(super) fn new(window: &'a Bytes, sink: &'a mut S) -> Self {
        Self { window, from: 0, sink }
    }

    /// Forwards everything up to `to`.
    pub(super) fn flush(&mut self, to: usize) {
        if self.from < to {
            self.sink.emit_range(self.window, self.from..to);
            self.from = to;
        }
    }

    /// Forwards everything up to `range`, and `range` with its changes.
    pub(super) fn splice(&mut self, range: Range<usize>, edits: &mut Edits) {
        if !edits.is_empty() {
            self.flush(range.start);
            edits.splice(self.window, range.clone(), self.sink);
            self.from = range.end;
        }
    }

    fn emit(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.sink.emit(Bytes::copy_from_slice(bytes));
        }
    }
}

// === impl Gap ===

impl Gap {
    /// An array begins; its first item is at `at` or later.
    pub(super) fn open(&mut self, at: usize) {
        *self = Self { from: at, ..Self::default() };
    }

    /// The number of bytes that it holds.
    pub(super) fn len(&self) -> usize {
        self.spilled.len() + self.lead.len()
    }

    pub(super) fn enter_window(&mut self) {
        self.from = 0;
    }

    /// The window ends at `end`, within the gap.
    pub(super) fn leave_window(&mut self, end: usize, output: &mut Output<'_, impl Sink>) {
        output.flush(self.from);
        self.spilled.extend_from_slice(&output.window[self.from..end]);
        output.from = end;
        self.from = end;
    }

    /// An item from `start` to `end` is shown; the output continues with it.
    pub(super) fn keep(&mut self, start: usize, end: usize, output: &mut Output<'_, impl Sink>) {
        if self.shown || !self.left_out {
            output.emit(&self.spilled);
        } else {
            output.emit(&self.lead);
            output.from = start;
        }
        self.spilled.clear();
        self.shown = true;
        self.from = end;
    }

    /// An item from `start` to `end` is removed, with the gap before it.
    pub(super) fn leave_out(&mut self, start: usize, end: usize, output: &mut Output<'_, impl Sink>) {
        if !self.shown && !self.left_out {
            self.lead.extend_from_slice(&self.spilled);
            self.lead.extend_from_slice(&output.window[self.from..start]);
        }
        output.flush(self.from);
        output.from = end;
        self.spilled.clear();
        self.left_out = true;
        self.from = end;
    }

    /// The array ends with the bracket at `bracket`.
    pub(super) fn close(&mut self, bracket: usize, output: &mut Output<'_, impl Sink>) {
        if self.shown || !self.left_out {
            output.emit(&self.spilled);
        } else {
            // `[]`, for any white space of the items.
            output.flush(self.from);
            output.from = bracket;
        }
        *self = Self::default();
    }
}

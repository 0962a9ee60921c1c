//! Removes a member of an object, if that is decided after the object has been read.

use std::ops::Range;

use super::cursor::Cursor;

/// The text to remove with a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The member, with one comma if there is one. Two neighbours of which the first has nothing before it share that comma.
    pub whole: Range<usize>,
    /// The start of the next member, or the end of this one if it is the last.
    pub next: usize,
}

// === impl Cut ===

impl Cut {
    /// The member that begins at `start` (see [`Cursor::member`]), and has just been read.
    pub fn around(cursor: &Cursor<'_>, start: usize) -> Self {
        let (end, next) = (cursor.at(), behind(cursor));
        let is_space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
        let before = cursor.slice(0..start);
        let space = before.iter().rev().take_while(|byte| is_space(byte)).count();
        let has_comma = before[..start - space].ends_with(b",");
        let whole = if has_comma { start - space - 1..end } else { start..next };
        Self { whole, next }
    }
}

/// The start of the member that follows.
fn behind(cursor: &Cursor<'_>) -> usize {
    let mut behind = cursor.clone();
    if behind.expect(b',').is_err() {
        return cursor.at();
    }
    // The start of the next member, if the text is whole.
    let _ = behind.peek();
    behind.at()
}

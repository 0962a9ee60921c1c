//! The blocks that a thread has made last.
//!
//! When an object changes, many watches send the same event after the same history. Then one of them compresses it, and all share the
//! block and the next history.

use std::collections::VecDeque;

use bytes::Bytes;

use super::history::{History, MAX};

/// The number of blocks. A thread sends an event to all its watches before the next one, so a few are enough. 16 blocks and their
/// histories take less than 400 KiB.
const NUMBER: usize = 16;

/// The last blocks, the latest first.
#[derive(Debug, Default)]
pub(super) struct Recent(VecDeque<Made>);

/// What the encoder has made of some bytes.
#[derive(Clone, Debug)]
struct Made {
    before: History,
    /// It ends with the bytes of the block, because these are not longer than a history.
    after: History,
    /// The number of these bytes.
    length: usize,
    block: Bytes,
}

// === impl Recent ===

impl Recent {
    /// The kept block of these bytes after this history, and the next history. Makes it if necessary.
    pub(super) fn block(&mut self, before: &History, bytes: &[u8], make: impl FnOnce() -> Bytes) -> (Bytes, History) {
        if bytes.len() > MAX {
            return (make(), before.followed_by(bytes));
        }
        let found = self.0.iter().position(|made| made.is_of(before, bytes));
        let made = match found.and_then(|index| self.0.remove(index)) {
            Some(made) => made,
            None => self.make(before, bytes, make()),
        };
        self.0.truncate(NUMBER - 1);
        self.0.push_front(made.clone());
        (made.block, made.after)
    }

    fn make(&self, before: &History, bytes: &[u8], block: Bytes) -> Made {
        let after = before.followed_by(bytes);
        // Watches that began at different times have the same history after 8 KiB of the same events.
        let equal = self.0.iter().map(|made| &made.after).find(|other| other.dictionary() == after.dictionary());
        Made { before: before.clone(), after: equal.cloned().unwrap_or(after), length: bytes.len(), block }
    }
}

// === impl Made ===

impl Made {
    fn is_of(&self, before: &History, bytes: &[u8]) -> bool {
        self.length == bytes.len() && self.before.is_same(before) && self.after.dictionary().ends_with(bytes)
    }
}

//! Objects of a JSON body that get more members.

use crate::json::{Cursor, Edits};

/// An object, with the position after its brace for insertions.
#[derive(Clone, Copy, Default)]
pub(super) struct Open {
    at: usize,
    is_empty: bool,
}

// === impl Open ===

impl Open {
    /// The object that is the next value.
    pub(super) fn of(cursor: &Cursor<'_>) -> Self {
        Self { at: cursor.at(), is_empty: cursor.is_empty_container() }
    }

    /// Inserts members before the others.
    pub(super) fn insert(self, members: String, edits: &mut Edits) {
        edits.insert(self.at + 1, members + if self.is_empty { "" } else { "," });
    }
}

//! The type of the generated table.

use crate::program::Place;

/// A row of the table: one kind, in versions with the same places.
pub(super) struct Row {
    /// The API group; empty for the core.
    pub(super) group: &'static str,
    pub(super) versions: &'static [&'static str],
    pub(super) kind: &'static str,
    /// The plural in paths.
    pub(super) resource: &'static str,
    pub(super) places: &'static [(&'static str, Place)],
}

//! The form of a body.

/// Whether a body contains a whole object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// The whole object. Absent fields will be absent, so the guard is added.
    Whole,
    /// Only changes (a merge patch). Absent fields stay unchanged.
    Partial,
}

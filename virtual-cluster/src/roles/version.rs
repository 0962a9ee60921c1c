//! Whether the roles that a virtual cluster sees have changed.

/// The version of the roles that a virtual cluster sees: the number of their changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) shared: u64,
    pub(super) own: u64,
}

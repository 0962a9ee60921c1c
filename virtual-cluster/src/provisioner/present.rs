//! What a start need not write.

/// What exists as wanted in the root namespace of a virtual cluster.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Present {
    /// The administrators' binding.
    pub(super) administrators: bool,
    /// The RoleBinding of the group that attempts grants.
    pub(super) attempts_binding: bool,
    /// Its Role.
    pub(super) attempts_role: bool,
}

//! The contents of a body that the caller needs.

use crate::name::VirtualNamespace;
use crate::review::OriginalAttributes;

/// What the caller must know about a mapped body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The nodes to which pods will be bound. The caller checks that they belong to the virtual cluster.
    pub nodes: Vec<String>,
    /// Namespaces that the body names, up to a limit: the response of the host may contain them.
    pub namespaces: Vec<VirtualNamespace>,
    /// A merge patch would remove a part of the guard (by a `null`), so the caller must apply it instead.
    pub removes_guard: bool,
    /// The attributes of an access review, for the [view](crate::View::with_original_attributes) of its response.
    pub about: OriginalAttributes,
}

// === impl Report ===

impl Report {
    /// The maximum number of remembered names.
    pub(super) const MANY: usize = 16;

    /// Records the name of a namespace.
    pub(super) fn names(&mut self, name: &VirtualNamespace) {
        if self.namespaces.len() < Self::MANY && !self.namespaces.contains(name) {
            self.namespaces.push(name.clone());
        }
    }
}

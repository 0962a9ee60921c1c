//! The author of a write.

use crate::access::User;

/// Who writes, and as whom it is remembered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Writer<'a> {
    /// Whose rights count; without one it is a controller of ours.
    pub(crate) user: Option<&'a User>,
    /// Who owns the fields that change; an apply has noted it by itself.
    pub(crate) manager: Option<&'a str>,
}

// === impl Writer ===

impl Writer<'static> {
    /// What Kubernetes has a program of its own for.
    pub(crate) const CONTROLLER: Self = Self { user: None, manager: Some("kube-controller-manager") };
}

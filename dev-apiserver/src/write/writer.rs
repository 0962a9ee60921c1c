//! The author of a write.

use crate::auth::User;

/// The author of a write.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Writer<'a> {
    /// The user, whose rights limit what roles may grant. `None` for a controller of this server.
    pub(crate) user: Option<&'a User>,
    /// The manager of the fields that change. `None` if `managedFields` are complete, as after an apply.
    pub(crate) manager: Option<&'a str>,
}

// === impl Writer ===

impl Writer<'static> {
    /// The controllers of this server.
    pub(crate) const CONTROLLER: Self = Self { user: None, manager: Some("kube-controller-manager") };
}

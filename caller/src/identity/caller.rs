//! The caller of a request.

use super::host_user::HostUser;

/// The caller of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The user on the host.
    pub host: HostUser,
    /// How the caller is known.
    pub kind: Kind,
    virtual_name: String,
}

/// How the caller is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// By a client certificate.
    Certificate,
    /// By the token of a service account.
    ServiceAccount,
    /// By another token of the host that the virtual cluster accepts.
    Token,
    /// The caller is anonymous.
    Anonymous,
    /// By impersonation: another caller may act as this user.
    Impersonated,
}

// === impl Caller ===

impl Caller {
    /// The name of the caller in the virtual cluster, for messages and logs.
    pub fn virtual_name(&self) -> &str {
        &self.virtual_name
    }

    /// Whether the caller is in `system:authenticated`.
    pub fn is_authenticated(&self) -> bool {
        self.host.is_authenticated()
    }

    pub(crate) fn new(host: HostUser, virtual_name: String, kind: Kind) -> Self {
        Self { host, kind, virtual_name }
    }
}

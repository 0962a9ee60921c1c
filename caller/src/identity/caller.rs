//! Somebody who asks.

use super::host_user::HostUser;

/// Somebody who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Who that is on the host.
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
    /// By another token that the host knows, and the virtual cluster takes.
    Token,
    /// Not at all.
    Anonymous,
    /// As somebody that another caller may act as.
    Impersonated,
}

// === impl Caller ===

impl Caller {
    /// What the virtual cluster calls the caller; for messages and logs.
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

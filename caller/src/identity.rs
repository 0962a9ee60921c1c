//! Authenticator a caller is: in the virtual cluster, and on the host.
//!
//! [`HostUser`] is the only identity on the host, and only this crate creates it: from a name that gets the prefix of its
//! virtual cluster, or from a service account in a namespace of the virtual cluster. What is *not* here: what proves an
//! identity ([`authn`](crate::authn)), and what it may do ([`authz`](crate::authz)).
//!
//! Reading order: [`Caller`], [`host_user`], `account`, `headers` (how a request goes upstream as somebody).

mod account;
pub(crate) mod headers;
pub mod host_user;

pub(crate) use account::Account;
pub use host_user::{HostUser, Inexpressible};

/// `Anonymous` of `k8s.io/apiserver/pkg/authentication/user/user.go`.
pub const ANONYMOUS: &str = "system:anonymous";

/// The name of the Role or RoleBinding in the dry run, in a root namespace, that shows whether a caller may grant certain
/// rights.
pub const ATTEMPT: &str = "atoll:attempt";

/// Somebody who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Authenticator that is on the host.
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

/// The group on the host whose members may attempt grants in a virtual cluster. No client is a member: names of clients'
/// groups have another prefix.
pub fn attempt_group(cluster: &rewrite::ClusterName) -> String {
    format!("{ATTEMPT}:{cluster}")
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

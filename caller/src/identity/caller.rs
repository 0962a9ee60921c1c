//! The caller of a request.

use protocol::audit::UserInfo;
use rewrite::Mapping;
use rewrite::mapping::identity::Seen;

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

    /// The caller in virtual names, for an audit log.
    pub fn user_info(&self, mapping: &Mapping) -> UserInfo {
        let mut groups = Vec::new();
        for group in self.host.groups() {
            if let Seen::Own(group) = mapping.seen(group)
                && !groups.contains(&group)
            {
                groups.push(group);
            }
        }
        UserInfo {
            username: self.virtual_name.clone(),
            uid: self.host.uid().unwrap_or_default().to_owned(),
            groups,
            extra: self.host.extra().iter().cloned().collect(),
        }
    }

    pub(crate) fn new(host: HostUser, virtual_name: String, kind: Kind) -> Self {
        Self { host, kind, virtual_name }
    }
}

//! Tokens of the host that belong to no service account: those of OIDC issuers, webhooks, static files and bootstrap tokens.
//!
//! The host authenticates such users for its own purposes. A virtual cluster accepts them only if its configuration says
//! so, and adds a prefix to each user and group, as kube-apiserver does for an OIDC issuer (`--oidc-username-prefix`).
//! The prefix distinguishes them from users of certificates. Names that begin with `system:` belong to the host: users
//! with such names are rejected, and such groups are dropped. So the group `system:masters` of a token, which makes
//! administrators of the host, makes none of the virtual cluster.

use http::HeaderValue;
use rewrite::mapping::FOREIGN_PREFIX;

/// The prefix of Kubernetes' own names.
const SYSTEM: &str = "system:";

/// How a virtual cluster accepts tokens of the host that belong to no service account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostTokens {
    prefix: String,
}

/// An invalid prefix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPrefix {
    /// It would produce names that Kubernetes reserves, or that no binding can contain.
    #[error("names that begin with {0:?} are reserved")]
    Reserved(&'static str),
    /// The names cannot be written in HTTP headers.
    #[error("it contains control characters, or begins with white space")]
    Inexpressible,
}

// === impl HostTokens ===

impl HostTokens {
    /// With a prefix of user and group names, which may be empty.
    pub fn new(prefix: impl Into<String>) -> Result<Self, BadPrefix> {
        let prefix = prefix.into();
        for reserved in [SYSTEM, FOREIGN_PREFIX] {
            if prefix.starts_with(reserved) {
                return Err(BadPrefix::Reserved(reserved));
            }
        }
        if HeaderValue::from_bytes(prefix.as_bytes()).is_err() || prefix.starts_with([' ', '\t']) {
            return Err(BadPrefix::Inexpressible);
        }
        Ok(Self { prefix })
    }

    /// The name of a host user or group in the virtual cluster; `None` if the name belongs to the host.
    pub(crate) fn name(&self, host: &str) -> Option<String> {
        (!host.starts_with(SYSTEM)).then(|| format!("{}{host}", self.prefix))
    }

    /// The groups that the virtual cluster knows.
    pub(crate) fn groups(&self, host: &[String]) -> Vec<String> {
        host.iter().filter_map(|group| self.name(group)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_cannot_produce_reserved_names() {
        for (prefix, error) in [
            ("sso:", None),
            ("", None),
            ("system", None),
            ("system:", Some(BadPrefix::Reserved("system:"))),
            ("host:", Some(BadPrefix::Reserved("host:"))),
            (" a", Some(BadPrefix::Inexpressible)),
            ("a\n", Some(BadPrefix::Inexpressible)),
        ] {
            assert_eq!(HostTokens::new(prefix).err(), error, "{prefix:?}");
        }
    }

    #[test]
    fn names_of_the_host_are_dropped() {
        for prefix in ["sso:", ""] {
            let tokens = HostTokens::new(prefix).unwrap();
            assert_eq!(tokens.name("system:admin"), None);
            assert_eq!(tokens.name("jane"), Some(format!("{prefix}jane")));
            let groups = ["system:masters", "developers", "system:authenticated"].map(str::to_owned);
            assert_eq!(tokens.groups(&groups), [format!("{prefix}developers")]);
        }
    }
}

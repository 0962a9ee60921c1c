//! Users and groups.
//!
//! The user name and the groups of a service account contain a namespace, which is mapped like any other. All other users and
//! groups are `vc:<cluster>:<name>` on the host, so that `system:masters` of a virtual cluster has no rights there.

use bytes::Bytes;

use super::namespaces::{FOREIGN_PREFIX, Namespaces, Shown, Taken};
use crate::name::{ClusterName, VirtualNamespace};

/// `MakeUsername` in `staging/src/k8s.io/apiserver/pkg/authentication/serviceaccount/util.go`.
const ACCOUNT: &str = "system:serviceaccount:";
/// `MakeNamespaceGroupName`, ibidem.
const ACCOUNTS_OF: &str = "system:serviceaccounts:";

/// The users and groups of one virtual cluster.
#[derive(Clone, Debug)]
pub(crate) struct Identities {
    /// `vc:<cluster>:`, the prefix of this virtual cluster's users, groups and ClusterRoles on the host.
    prefix: Bytes,
}

/// A user or group that the host knows, as the virtual cluster sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// One of its own.
    Own(String),
    /// A user or group of the host or of another virtual cluster.
    Foreign,
}

/// A user or group in a request that cannot belong to this virtual cluster.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unmappable {
    /// It has the prefix of a host identity that was shown to the client.
    #[error("{FOREIGN_PREFIX} marks an identity of the host cluster, which cannot be written")]
    Host,
    /// The namespace of a service account is not a valid name.
    #[error("the namespace of the service account is not a DNS label")]
    NotALabel,
    /// The namespace of a service account belongs to another virtual cluster or to the host.
    #[error(transparent)]
    Taken(#[from] Taken),
}

// === impl Identities ===

impl Identities {
    pub(super) fn new(cluster: &ClusterName) -> Self {
        Self { prefix: Bytes::from(format!("vc:{cluster}:")) }
    }

    /// The virtual cluster's name for a user or group of the host.
    pub(super) fn seen(&self, namespaces: &Namespaces, host: &str) -> Seen {
        if let Some(own) = self.own(host.as_bytes()) {
            return Seen::Own(String::from_utf8_lossy(own).into_owned());
        }
        if let Some((prefix, namespace, rest)) = split_account(host)
            && let Shown::As(name) = namespaces.shown(namespace.as_bytes())
        {
            return Seen::Own(format!("{prefix}{}{rest}", String::from_utf8_lossy(&name)));
        }
        Seen::Foreign
    }

    /// The host's name for a user or group of the virtual cluster.
    pub(super) fn host(&self, namespaces: &Namespaces, name: &str) -> Result<String, Unmappable> {
        if name.starts_with(FOREIGN_PREFIX) {
            return Err(Unmappable::Host);
        }
        let Some((prefix, namespace, rest)) = split_account(name) else {
            return Ok(self.prefixed(name));
        };
        let namespace = VirtualNamespace::new(namespace).map_err(|_| Unmappable::NotALabel)?;
        Ok(format!("{prefix}{}{rest}", namespaces.host(&namespace)?))
    }

    /// `vc:<cluster>:`.
    pub(super) fn prefix(&self) -> &Bytes {
        &self.prefix
    }

    /// `vc:<cluster>:<name>`.
    pub(super) fn prefixed(&self, name: &str) -> String {
        format!("{}{name}", String::from_utf8_lossy(&self.prefix))
    }

    /// The name in `vc:<cluster>:<name>`.
    pub(super) fn own<'h>(&self, host: &'h [u8]) -> Option<&'h [u8]> {
        host.strip_prefix(&self.prefix[..])
    }
}

/// The parts of a service account's user name or group: before the namespace, the namespace, and after it.
fn split_account(name: &str) -> Option<(&str, &str, &str)> {
    let (prefix, rest) = if let Some(rest) = name.strip_prefix(ACCOUNT) {
        (ACCOUNT, rest)
    } else {
        (ACCOUNTS_OF, name.strip_prefix(ACCOUNTS_OF)?)
    };
    let end = rest.find(':').unwrap_or(rest.len());
    Some((prefix, &rest[..end], &rest[end..]))
}

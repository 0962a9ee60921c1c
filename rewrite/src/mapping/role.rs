//! ClusterRoles.
//!
//! The ClusterRole `X` of a virtual cluster is `vc:<cluster>:X` on the host. The ClusterRoles that an API server creates itself
//! (`bootstrappolicy`) are shared under their own names. RBAC accepts any path segment as a name, so the prefix is always
//! valid, and names of ClusterRoles in messages are mapped like those of users.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;

use super::identity::{Identities, Unmappable};
use super::namespaces::FOREIGN_PREFIX;
use crate::same::Same;

/// Names of ClusterRoles that are the same on both sides.
pub type SharedRoles = HashSet<Bytes>;

/// The ClusterRoles that every virtual cluster has.
#[derive(Clone, Debug, Default)]
pub(crate) struct Roles {
    shared: Arc<SharedRoles>,
}

/// A ClusterRole of the host, as the virtual cluster sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SeenRole {
    /// One of its own, with this name.
    Own(Bytes),
    /// One that every cluster has, with the same name.
    Shared,
    /// One of the operator of the host, or of another virtual cluster.
    Foreign,
}

// === impl Roles ===

impl Roles {
    /// The API server of the host creates these ClusterRoles itself.
    pub(super) fn sharing(shared: Arc<SharedRoles>) -> Self {
        Self { shared }
    }

    /// How the virtual cluster sees a ClusterRole of the host.
    pub(super) fn seen(&self, identities: &Identities, host: &[u8]) -> SeenRole {
        match identities.own(host) {
            Some(own) => SeenRole::Own(Bytes::copy_from_slice(own)),
            None if self.shared.contains(host) => SeenRole::Shared,
            None => SeenRole::Foreign,
        }
    }

    /// The host's name for a ClusterRole.
    pub(super) fn host(&self, identities: &Identities, name: &str) -> Result<String, Unmappable> {
        if self.is_shared(name) {
            Ok(name.to_owned())
        } else if name.starts_with(FOREIGN_PREFIX) {
            Err(Unmappable::Host)
        } else {
            Ok(identities.prefixed(name))
        }
    }

    /// Whether every cluster has a role of this name.
    pub(super) fn is_shared(&self, name: &str) -> bool {
        self.shared.contains(name.as_bytes())
    }
}

impl Same for Roles {
    fn is_same(&self, other: &Self) -> bool {
        let Self { shared } = self;
        shared.is_same(&other.shared)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_roles_are_prefixed_and_shared_ones_are_not() {
        let shared = SharedRoles::from([Bytes::from("view")]);
        let (roles, ke) = (Roles::sharing(Arc::new(shared)), Identities::new(&"ke".parse().unwrap()));
        for (name, host) in [("view", "view"), ("a", "vc:ke:a"), ("vc:hz:a", "vc:ke:vc:hz:a"), ("a b", "vc:ke:a b")] {
            assert_eq!(roles.host(&ke, name).as_deref(), Ok(host));
            let own = if name == host { SeenRole::Shared } else { SeenRole::Own(Bytes::from(name)) };
            assert_eq!(roles.seen(&ke, host.as_bytes()), own);
        }
        for foreign in ["vc:hz:a", "a", "vc:ke", ""] {
            assert_eq!(roles.seen(&ke, foreign.as_bytes()), SeenRole::Foreign, "{foreign}");
        }
        assert_eq!(roles.host(&ke, "host:a"), Err(Unmappable::Host));
    }
}

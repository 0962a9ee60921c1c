//! ClusterRoles.
//!
//! The ClusterRole `X` of a virtual cluster is `vc:<cluster>:X` on the host. The ClusterRoles that an API server creates itself
//! (`bootstrappolicy`) are shared under their own names. RBAC accepts any path segment as a name, so the prefix is always
//! valid, and names of ClusterRoles in messages are mapped like those of users.

use std::sync::Arc;

use bytes::Bytes;

use super::identity::Unmappable;
use super::{FOREIGN_PREFIX, Mapping, SharedRoles};

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

// === impl Mapping ===

impl Mapping {
    /// The same names, on a host whose API server creates these ClusterRoles itself.
    #[must_use]
    pub fn sharing_roles(mut self, roles: Arc<SharedRoles>) -> Self {
        self.shared_roles = roles;
        self
    }

    /// How the virtual cluster sees a ClusterRole of the host.
    pub fn seen_role(&self, host: &[u8]) -> SeenRole {
        match host.strip_prefix(&self.identity_prefix[..]) {
            Some(own) => SeenRole::Own(Bytes::copy_from_slice(own)),
            None if self.shared_roles.contains(host) => SeenRole::Shared,
            None => SeenRole::Foreign,
        }
    }

    /// The host's name for a ClusterRole.
    pub fn role(&self, name: &str) -> Result<String, Unmappable> {
        if self.is_shared_role(name) {
            Ok(name.to_owned())
        } else if name.starts_with(FOREIGN_PREFIX) {
            Err(Unmappable::Host)
        } else {
            Ok(format!("{}{name}", self.identity_prefix()))
        }
    }

    /// Whether every cluster has a role of this name.
    pub fn is_shared_role(&self, name: &str) -> bool {
        self.shared_roles.contains(name.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapping::Index;

    #[test]
    fn own_roles_are_prefixed_and_shared_ones_are_not() {
        let shared = SharedRoles::from([Bytes::from("view")]);
        let mapping = Mapping::new("ke".parse().unwrap(), Arc::new(Index::new())).sharing_roles(Arc::new(shared));
        for (name, host) in [("view", "view"), ("a", "vc:ke:a"), ("vc:hz:a", "vc:ke:vc:hz:a"), ("a b", "vc:ke:a b")] {
            assert_eq!(mapping.role(name).as_deref(), Ok(host));
            let own = if name == host { SeenRole::Shared } else { SeenRole::Own(Bytes::from(name)) };
            assert_eq!(mapping.seen_role(host.as_bytes()), own);
        }
        for foreign in ["vc:hz:a", "a", "vc:ke", ""] {
            assert_eq!(mapping.seen_role(foreign.as_bytes()), SeenRole::Foreign, "{foreign}");
        }
        assert_eq!(mapping.role("host:a"), Err(Unmappable::Host));
    }
}

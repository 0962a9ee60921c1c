//! The quota for the memory that the ClusterRoles of a virtual cluster use in the agent.
//!
//! The agent caches all of them, to aggregate them. Clients can create any number, so the agent estimates their memory,
//! and refuses a write that would exceed the quota.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::role::Role;

/// The quota for all ClusterRoles of one virtual cluster, in bytes. Those of Kubernetes together use about 50,000.
const MAX_BYTES: usize = 16 << 20;

/// The quota would be exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "exceeded quota: the ClusterRoles of a virtual cluster are limited to {MAX_BYTES} bytes of memory; with this write, \
     they would take {bytes}"
)]
pub struct NoRoom {
    bytes: usize,
}

/// Whether a virtual cluster with these roles may have one of this weight, in place of the role with the same name.
pub(super) fn check(own: &BTreeMap<String, Arc<Role>>, name: &str, weight: usize) -> Result<(), NoRoom> {
    // A write that does not grow a role is always allowed.
    if own.get(name).is_some_and(|role| role.weight >= weight) {
        return Ok(());
    }
    let others = own.iter().filter(|(own, _)| *own != name).map(|(own, role)| own.len() + role.weight);
    let bytes = others.sum::<usize>() + name.len() + weight;
    if bytes > MAX_BYTES { Err(NoRoom { bytes }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use rewrite::ClusterName;
    use serde_json::{Value, json};

    use super::*;
    use crate::roles::Roles;

    fn role(name: &str, bytes: usize) -> Value {
        let labels = json!({"atoll.dev/virtual-cluster": "ke"});
        json!({"metadata": {"name": format!("vc:ke:{name}"), "labels": labels}, "rules": ["x".repeat(bytes)]})
    }

    #[test]
    fn a_write_that_exceeds_the_quota_is_refused() {
        let (ke, other): (ClusterName, ClusterName) = ("ke".parse().unwrap(), "other".parse().unwrap());
        let large = MAX_BYTES / 4;
        let roles = Roles::with([role("a", large), role("b", large), role("c", large)]);
        let weight = |bytes| Role::of(&role("d", bytes)).weight;
        assert_eq!(roles.has_room(&ke, "d", weight(large / 2)), Ok(()));
        assert!(roles.has_room(&ke, "d", weight(large)).is_err());
        assert_eq!(roles.has_room(&other, "d", weight(large)), Ok(()));
        // An existing role counts once, and may always become smaller.
        assert_eq!(roles.has_room(&ke, "c", weight(large + large / 2)), Ok(()));
        assert!(roles.has_room(&ke, "c", weight(2 * large)).is_err());
        let full = Roles::with([role("a", MAX_BYTES), role("b", MAX_BYTES)]);
        assert_eq!(full.has_room(&ke, "b", weight(MAX_BYTES)), Ok(()));
        assert!(full.has_room(&ke, "b", weight(MAX_BYTES + 1)).is_err());
    }
}

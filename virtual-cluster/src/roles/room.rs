//! The quota for the memory that the ClusterRoles of a virtual cluster use in the agent.
//!
//! The agent caches all of them, to aggregate them. Clients can create any number, so the agent estimates their memory,
//! and refuses a write that would exceed the quota.

use rewrite::ClusterName;

use super::{Role, Roles, Rule};

/// The quota for all ClusterRoles of one virtual cluster, in bytes. Those of Kubernetes together use about 50,000.
const MOST: usize = 16 << 20;

/// The overhead of a role, a rule and a label in addition to their texts. This is a rough upper estimate.
const ROLE: usize = 512;
const PART: usize = 96;

/// The quota would be exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "exceeded quota: the ClusterRoles of a virtual cluster are limited to {MOST} bytes of memory; with this write, \
     they would take {bytes}"
)]
pub struct NoRoom {
    bytes: usize,
}

// === impl Roles ===

impl Roles {
    /// Whether a virtual cluster may have a role of this weight, in place of the role with the same name. The known
    /// state may be slightly out of date.
    pub fn has_room(&self, cluster: &ClusterName, name: &str, weight: usize) -> Result<(), NoRoom> {
        let known = self.lock();
        let roles = || known.own.get(cluster).into_iter().flat_map(|own| &own.roles);
        // A write that does not grow a role is always allowed.
        if roles().any(|(own, role)| own == name && role.weight >= weight) {
            return Ok(());
        }
        let others = roles().filter(|(own, _)| *own != name).map(|(own, role)| own.len() + role.weight);
        let bytes = others.sum::<usize>() + name.len() + weight;
        if bytes > MOST { Err(NoRoom { bytes }) } else { Ok(()) }
    }
}

// === impl Role ===

impl Role {
    /// The memory that it uses, without its name.
    pub(super) fn weigh(&self) -> usize {
        let labels = self.labels.iter().map(|(key, value)| PART + key.len() + value.len());
        let texts = [&self.aggregation, &self.auto_update].into_iter().flatten().map(String::len);
        ROLE + labels.chain(texts).sum::<usize>() + weight(&self.rules)
    }
}

/// The memory that these rules use.
pub(super) fn weight(rules: &[Rule]) -> usize {
    rules.iter().map(|rule| PART + rule.text.len()).sum()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn role(name: &str, bytes: usize) -> Value {
        let labels = json!({"atoll.dev/virtual-cluster": "ke"});
        json!({"metadata": {"name": format!("vc:ke:{name}"), "labels": labels}, "rules": ["x".repeat(bytes)]})
    }

    #[test]
    fn a_write_that_exceeds_the_quota_is_refused() {
        let (ke, other): (ClusterName, ClusterName) = ("ke".parse().unwrap(), "other".parse().unwrap());
        let large = MOST / 4;
        let roles = Roles::with([role("a", large), role("b", large), role("c", large)]);
        let weight = |bytes| Role::of(&role("d", bytes)).weight;
        assert_eq!(roles.has_room(&ke, "d", weight(large / 2)), Ok(()));
        assert!(roles.has_room(&ke, "d", weight(large)).is_err());
        assert_eq!(roles.has_room(&other, "d", weight(large)), Ok(()));
        // An existing role counts once, and may always become smaller.
        assert_eq!(roles.has_room(&ke, "c", weight(large + large / 2)), Ok(()));
        assert!(roles.has_room(&ke, "c", weight(2 * large)).is_err());
        let full = Roles::with([role("a", MOST), role("b", MOST)]);
        assert_eq!(full.has_room(&ke, "b", weight(MOST)), Ok(()));
        assert!(full.has_room(&ke, "b", weight(MOST + 1)).is_err());
    }

    #[test]
    fn small_parts_weigh_more_than_their_texts() {
        let labels: serde_json::Map<_, _> = (0..1000).map(|number| (number.to_string(), json!(""))).collect();
        let rules = vec![json!({}); 1000];
        let weight = Role::of(&json!({"metadata": {"labels": labels}, "rules": rules})).weight;
        assert!(weight > 2000 * PART, "{weight}");
    }
}

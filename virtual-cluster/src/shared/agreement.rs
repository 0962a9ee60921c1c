//! Whether a virtual cluster may change an object that other clusters use.

use super::HostObject;

/// How to handle a change of anything but labels and annotations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// Make the change.
    Given,
    /// Record the change: other clusters have not requested it yet.
    Awaited,
    /// Refuse the change: the object belongs to the operator.
    Never,
}

// === impl Agreement ===

impl Agreement {
    /// Whether all other clusters that use the object have requested the change with the digest `pending_change`.
    pub fn to(host: &HostObject, cluster: &str, pending_change: &str) -> Self {
        if !host.is_of_clusters() {
            return Self::Never;
        }
        let mut others = host.attached().owners().filter(|owner| *owner != cluster);
        let agrees = |owner: &str| {
            host.attached().overlay(owner).and_then(|overlay| overlay.pending_change).as_deref() == Some(pending_change)
        };
        if others.all(agrees) { Self::Given } else { Self::Awaited }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::overlay::Overlay;
    use super::*;

    fn host(pending_changes: &[(String, Option<String>)]) -> HostObject {
        let mut host = HostObject::new(json!({"metadata": {"name": "a"}}));
        host.mark();
        for (owner, pending_change) in pending_changes {
            host.join(owner, &Overlay { pending_change: pending_change.clone(), ..Overlay::default() });
        }
        host
    }

    #[test]
    fn an_operators_object_is_never_changed() {
        let mut host = HostObject::new(json!({"metadata": {"name": "a"}}));
        host.join("ke", &Overlay::default());
        assert_eq!(Agreement::to(&host, "ke", "x"), Agreement::Never);
    }

    #[test]
    fn a_cluster_alone_may_change_everything() {
        assert_eq!(Agreement::to(&host(&[("ke".into(), Some("y".into()))]), "ke", "x"), Agreement::Given);
    }

    proptest! {
        #[test]
        fn all_other_clusters_must_agree(pending_changes in proptest::collection::btree_map("[a-d]", proptest::option::of("[xy]"), 1..5)) {
            let pending_changes: Vec<_> = pending_changes.into_iter().collect();
            let host = host(&pending_changes);
            let all = pending_changes.iter().all(|(owner, pending_change)| owner == "a" || pending_change.as_deref() == Some("x"));
            prop_assert_eq!(Agreement::to(&host, "a", "x"), if all { Agreement::Given } else { Agreement::Awaited });
        }

        /// The request of the last cluster is carried out, in whatever order the requests come.
        #[test]
        fn a_change_is_made_once_all_clusters_request_it(owners in proptest::collection::btree_set("[a-e]", 1..5)) {
            let mut host = host(&owners.iter().map(|owner| (owner.clone(), None)).collect::<Vec<_>>());
            for (number, owner) in owners.iter().enumerate() {
                let is_last = number + 1 == owners.len();
                prop_assert_eq!(Agreement::to(&host, owner, "x") == Agreement::Given, is_last);
                host.join(owner, &Overlay { pending_change: Some("x".into()), ..Overlay::default() });
            }
        }
    }
}

//! Whether a cluster may change what others rely on.

use super::HostObject;

/// What is to be done with a change of anything but labels and annotations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consent {
    /// It is made.
    Given,
    /// It is noted: others have not asked for it.
    Awaited,
    /// It is refused: the object is the operator's.
    Never,
}

// === impl Consent ===

impl Consent {
    /// Whether all that have the object besides `cluster` have asked for what `wish` is the digest of.
    pub fn to(host: &HostObject, cluster: &str, wish: &str) -> Self {
        if !host.is_of_clusters() {
            return Self::Never;
        }
        let mut others = host.owners().filter(|owner| *owner != cluster);
        let agrees = |owner: &str| host.overlay(owner).and_then(|overlay| overlay.wish).as_deref() == Some(wish);
        if others.all(agrees) { Self::Given } else { Self::Awaited }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::object::Overlay;
    use super::*;

    fn host(wishes: &[(String, Option<String>)]) -> HostObject {
        let mut host = HostObject::new(json!({"metadata": {"name": "a"}}));
        host.mark();
        for (owner, wish) in wishes {
            host.join(owner, &Overlay { wish: wish.clone(), ..Overlay::default() });
        }
        host
    }

    #[test]
    fn an_operators_object_is_never_changed() {
        let mut host = HostObject::new(json!({"metadata": {"name": "a"}}));
        host.join("ke", &Overlay::default());
        assert_eq!(Consent::to(&host, "ke", "x"), Consent::Never);
    }

    #[test]
    fn alone_everything_is_allowed() {
        assert_eq!(Consent::to(&host(&[("ke".into(), Some("y".into()))]), "ke", "x"), Consent::Given);
    }

    proptest! {
        #[test]
        fn it_takes_all_others(wishes in proptest::collection::btree_map("[a-d]", proptest::option::of("[xy]"), 1..5)) {
            let wishes: Vec<_> = wishes.into_iter().collect();
            let host = host(&wishes);
            let all = wishes.iter().all(|(owner, wish)| owner == "a" || wish.as_deref() == Some("x"));
            prop_assert_eq!(Consent::to(&host, "a", "x"), if all { Consent::Given } else { Consent::Awaited });
        }

        /// Whoever comes last is the one whose request is made, in whatever order they come.
        #[test]
        fn all_who_ask_for_the_same_get_it(owners in proptest::collection::btree_set("[a-e]", 1..5)) {
            let mut host = host(&owners.iter().map(|owner| (owner.clone(), None)).collect::<Vec<_>>());
            for (number, owner) in owners.iter().enumerate() {
                let is_last = number + 1 == owners.len();
                prop_assert_eq!(Consent::to(&host, owner, "x") == Consent::Given, is_last);
                host.join(owner, &Overlay { wish: Some("x".into()), ..Overlay::default() });
            }
        }
    }
}

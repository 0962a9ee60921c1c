//! How much the mirrors of a virtual cluster may take on the host.
//!
//! Every namespace has a mirror of every ClusterRoleBinding, so a client that makes a thousand of each would fill the host's
//! etcd with a million objects. On a host of its own it would have made two thousand. So the copies are counted, and the
//! namespace or binding that would make too many is refused, as by a quota.

use rewrite::ClusterName;
use serde_json::Value;

use super::Root;
use super::binding::Binding;
use crate::clusters::host_api::HostApi;

/// Mirrors of a virtual cluster: a hundred ClusterRoleBindings in a thousand namespaces.
const COUNT: usize = 100_000;
/// What they may take, in bytes of JSON. The host's etcd holds 2 GiB unless it is told otherwise (`--quota-backend-bytes`).
const BYTES: usize = 256 * 1024 * 1024;
/// What a mirror takes beside what its binding says, in bytes.
const OVERHEAD: usize = 512;
/// What the bindings themselves may say, in bytes of JSON: the agent keeps them in memory, and has several copies of one
/// while it writes its mirrors.
const SAID: usize = 4 * 1024 * 1024;

/// What makes mirrors more.
#[derive(Clone, Copy, Debug)]
pub enum Growth<'a> {
    /// Another namespace.
    Namespace,
    /// A ClusterRoleBinding: the RoleBinding in the root namespace as it would be stored.
    Binding(&'a Value),
}

/// There would be too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoRoom {
    /// Mirrors.
    #[error(
        "exceeded quota: every namespace has a copy of every ClusterRoleBinding, and all copies may be {COUNT} and take \
         {BYTES} bytes; this would make them {count}, with {bytes} bytes"
    )]
    Mirrors {
        /// How many.
        count: usize,
        /// What they would take.
        bytes: usize,
    },
    /// Bindings.
    #[error(
        "exceeded quota: all ClusterRoleBindings of a virtual cluster may have {SAID} bytes, and this would make them {0}"
    )]
    Bindings(usize),
}

// === impl Root ===

impl<A: HostApi> Root<A> {
    /// Whether the mirrors of this virtual cluster may grow so. What is known of it may be a moment old.
    pub fn has_room(&self, cluster: &ClusterName, growth: Growth<'_>) -> Result<(), NoRoom> {
        let namespaces = self.shared.namespaces.members(cluster).len();
        let (namespaces, binding) = match growth {
            Growth::Namespace => (namespaces + 1, None),
            Growth::Binding(binding) => (namespaces, Binding::of(binding)),
        };
        let catalog = self.catalog();
        if binding.as_ref().is_some_and(|binding| !catalog.is_growth(cluster, binding)) {
            return Ok(());
        }
        let (bindings, said) = catalog.weigh(cluster, binding.as_ref());
        if said > SAID {
            return Err(NoRoom::Bindings(said));
        }
        let count = bindings.saturating_mul(namespaces);
        let bytes = said.saturating_add(bindings * OVERHEAD).saturating_mul(namespaces);
        if count > COUNT || bytes > BYTES { Err(NoRoom::Mirrors { count, bytes }) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Arc;

    use serde_json::json;

    use super::super::catalog::Event;
    use super::super::testing::FakeHost;
    use super::*;
    use crate::namespaces::{Annotations, Namespaces};

    #[test]
    fn copies_are_counted_and_weighed() {
        let cluster: ClusterName = "ke".parse().unwrap();
        let namespaces = Arc::new(Namespaces::new([cluster.clone()]));
        let root = Root::of(
            FakeHost::new(),
            Arc::clone(&namespaces),
            Arc::default(),
            HashMap::from([(cluster.clone(), Annotations::default())]),
        );
        for number in 0..200 {
            let name = format!("n{number}");
            let labels = json!({"atoll.dev/virtual-cluster": "ke", "atoll.dev/namespace": name});
            let metadata = json!({"name": format!("{name}-ke"), "uid": name, "labels": labels});
            namespaces.learn(&json!({"metadata": metadata})).unwrap();
        }
        let object = |name: &str, subject: usize| {
            let subjects = json!([{"kind": "User", "name": "x".repeat(subject)}]);
            json!({"metadata": {"name": name}, "roleRef": {"kind": "ClusterRole", "name": "view"}, "subjects": subjects})
        };
        let large = object("large", 2 * 1024 * 1024);
        let no_room = root.has_room(&cluster, Growth::Binding(&large));
        assert!(matches!(no_room, Err(NoRoom::Mirrors { .. })), "{no_room:?}");
        let larger = object("larger", SAID);
        let no_room = root.has_room(&cluster, Growth::Binding(&larger));
        assert!(matches!(no_room, Err(NoRoom::Bindings(_))), "{no_room:?}");
        for number in 1..499 {
            let binding = Binding::of(&object(&format!("b{number}"), 8)).unwrap();
            root.catalog().tell(&cluster, Event::There(&binding));
        }
        assert_eq!(root.has_room(&cluster, Growth::Binding(&object("another", 8))), Ok(()));
        // 500 with that of the administrators.
        let last = Binding::of(&object("last", 8)).unwrap();
        root.catalog().tell(&cluster, Event::There(&last));
        assert!(root.has_room(&cluster, Growth::Binding(&object("another", 8))).is_err());
        assert!(root.has_room(&cluster, Growth::Namespace).is_err());
        // What does not grow is always taken.
        assert_eq!(root.has_room(&cluster, Growth::Binding(&object("last", 7))), Ok(()));
    }
}

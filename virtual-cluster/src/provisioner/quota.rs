//! The quota of namespaces and of mirrors of a virtual cluster on the host.
//!
//! For each namespace, the host and its controllers store further objects, such as a service account.
//!
//! Every namespace has a mirror of every ClusterRoleBinding, so a client that creates a thousand of each would fill the
//! host's etcd with a million objects, instead of two thousand. So the mirrors are counted, and a namespace or binding
//! that would exceed the limits is refused, as by a quota.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rewrite::ClusterName;
use serde_json::Value;

use super::binding::Binding;
use super::catalog::SharedCatalog;
use super::found::Found;
use crate::config::Shares;
use crate::namespaces::Namespaces;

/// The maximum number of mirrors of a virtual cluster: a hundred ClusterRoleBindings in a thousand namespaces.
const MAX_COUNT: usize = 100_000;
/// The maximum size of their JSON, in bytes. The host's etcd holds 2 GiB by default (`--quota-backend-bytes`).
const MAX_BYTES: usize = 256 * 1024 * 1024;
/// The overhead of a binding or a mirror in addition to its content, in bytes.
const OVERHEAD: usize = 512;
/// The maximum memory of the bindings themselves in the agent, in bytes: their JSON, and [`OVERHEAD`] for each.
const MAX_BINDING_BYTES: usize = 8 * 1024 * 1024;

/// The quota of each virtual cluster, and how much of it is used.
pub(super) struct Quota {
    namespaces: Arc<Namespaces>,
    catalog: SharedCatalog,
    shares: ArcSwap<HashMap<ClusterName, Shares>>,
}

/// A write that adds mirrors.
#[derive(Clone, Copy, Debug)]
pub enum Growth<'a> {
    /// Another namespace.
    Namespace,
    /// A ClusterRoleBinding, as the RoleBinding in the root namespace that would be stored.
    Binding(&'a Value),
}

/// The quota would be exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoRoom {
    /// That of namespaces, in the words of the admission plugin ResourceQuota (`checkRequest` in apiserver's
    /// `pkg/admission/plugin/resourcequota`).
    #[error(
        "exceeded quota: atoll, requested: count/namespaces=1, used: count/namespaces={used}, \
         limited: count/namespaces={limit}"
    )]
    Namespaces {
        /// The number of namespaces without this one.
        used: usize,
        /// `shares.namespaces` in the configuration.
        limit: usize,
    },
    /// That of mirrors.
    #[error(
        "exceeded quota: every namespace has a copy of every ClusterRoleBinding, and a virtual cluster is limited to \
         {MAX_COUNT} copies and {MAX_BYTES} bytes; with this write, there would be {count} copies with {bytes} bytes"
    )]
    Mirrors {
        /// The number of mirrors with this write.
        count: usize,
        /// Their size, in bytes.
        bytes: usize,
    },
    /// That of the bindings themselves, with their size in bytes.
    #[error(
        "exceeded quota: the ClusterRoleBindings of a virtual cluster are limited to {MAX_BINDING_BYTES} bytes of memory; with this \
         write, they would take {0}"
    )]
    Bindings(usize),
}

// === impl Quota ===

impl Quota {
    pub(super) fn new(namespaces: Arc<Namespaces>, catalog: SharedCatalog) -> Self {
        Self { namespaces, catalog, shares: ArcSwap::default() }
    }

    /// From now on, these limits apply.
    pub(super) fn limit(&self, shares: HashMap<ClusterName, Shares>) {
        self.shares.store(Arc::new(shares));
    }

    /// Whether the quota of this virtual cluster has room for the write. The known state may be slightly out of date.
    pub(super) fn has_room(&self, cluster: &ClusterName, growth: Growth<'_>) -> Result<(), NoRoom> {
        let namespaces = self.namespaces.index().count(cluster);
        let limit = self.shares.load().get(cluster).map_or_else(|| Shares::default().namespaces, |it| it.namespaces);
        if matches!(growth, Growth::Namespace) && namespaces >= limit {
            return Err(NoRoom::Namespaces { used: namespaces, limit });
        }
        let (namespaces, binding) = match growth {
            Growth::Namespace => (namespaces + 1, None),
            Growth::Binding(binding) => (namespaces, Found::of(binding).as_ref().and_then(Binding::of)),
        };
        let catalog = self.catalog.lock();
        if binding.as_ref().is_some_and(|binding| !catalog.is_growth(cluster, binding)) {
            return Ok(());
        }
        let (bindings, content) = catalog.weigh(cluster, binding.as_ref());
        let size = content.saturating_add(bindings.saturating_mul(OVERHEAD));
        if size > MAX_BINDING_BYTES {
            return Err(NoRoom::Bindings(size));
        }
        let count = bindings.saturating_mul(namespaces);
        let bytes = size.saturating_mul(namespaces);
        if count > MAX_COUNT || bytes > MAX_BYTES { Err(NoRoom::Mirrors { count, bytes }) } else { Ok(()) }
    }

    /// Whether a ClusterRoleBinding, as the RoleBinding in the root namespace that would be stored, is new, or larger
    /// than the stored one. The known state may be slightly out of date.
    pub(super) fn is_growth(&self, cluster: &ClusterName, binding: &Value) -> bool {
        let binding = Found::of(binding).as_ref().and_then(Binding::of);
        binding.is_none_or(|binding| self.catalog.lock().is_growth(cluster, &binding))
    }
}

#[cfg(test)]
mod tests {
    use host_client::api::HostApi;
    use serde_json::json;

    use super::super::catalog::Event;
    use super::super::testing::FakeHost;
    use super::*;

    #[tokio::test]
    async fn copies_are_counted_and_weighed() {
        let cluster: ClusterName = "ke".parse().unwrap();
        let namespaces = Arc::new(Namespaces::new([cluster.clone()]));
        let catalog = SharedCatalog::new(std::slice::from_ref(&cluster));
        let quota = Quota::new(Arc::clone(&namespaces), catalog.clone());
        for number in 0..200 {
            let name = format!("n{number}");
            let labels = json!({"atoll.dev/virtual-cluster": "ke", "atoll.dev/namespace": name});
            let metadata = json!({"name": format!("{name}-ke"), "uid": name, "labels": labels});
            namespaces.learn(&json!({"metadata": metadata})).unwrap();
        }
        let following = FakeHost::new().follow::<Value>(crate::namespaces::PATH, "");
        tokio::select! {
            () = namespaces.follow(following) => {}
            () = namespaces.synced() => {}
        }
        let object = |name: &str, subject: usize| {
            let subjects = json!([{"kind": "User", "name": "x".repeat(subject)}]);
            json!({"metadata": {"name": name}, "roleRef": {"kind": "ClusterRole", "name": "view"}, "subjects": subjects})
        };
        let binding = |object: &Value| Binding::of(&Found::of(object).unwrap()).unwrap();
        let large = object("large", 2 * 1024 * 1024);
        let no_room = quota.has_room(&cluster, Growth::Binding(&large));
        assert!(matches!(no_room, Err(NoRoom::Mirrors { .. })), "{no_room:?}");
        let larger = object("larger", MAX_BINDING_BYTES);
        let no_room = quota.has_room(&cluster, Growth::Binding(&larger));
        assert!(matches!(no_room, Err(NoRoom::Bindings(_))), "{no_room:?}");
        for number in 1..499 {
            let binding = binding(&object(&format!("b{number}"), 8));
            catalog.lock().tell(&cluster, Event::There(&binding));
        }
        assert_eq!(quota.has_room(&cluster, Growth::Binding(&object("another", 8))), Ok(()));
        // Together with the administrators' binding, there are 500.
        let last = binding(&object("last", 8));
        catalog.lock().tell(&cluster, Event::There(&last));
        assert!(quota.has_room(&cluster, Growth::Binding(&object("another", 8))).is_err());
        assert!(quota.has_room(&cluster, Growth::Namespace).is_err());
        quota.limit(HashMap::from([(cluster.clone(), Shares { namespaces: 200, ..Shares::default() })]));
        let no_room = quota.has_room(&cluster, Growth::Namespace).unwrap_err().to_string();
        assert!(no_room.ends_with("used: count/namespaces=200, limited: count/namespaces=200"), "{no_room}");
        // A write that does not grow a binding is always allowed.
        assert_eq!(quota.has_room(&cluster, Growth::Binding(&object("last", 7))), Ok(()));

        let subjects = |mut object: Value, subjects: &[&str]| {
            object["subjects"] = subjects.iter().map(|name| json!({"kind": "User", "name": name})).collect();
            quota.is_growth(&cluster, &object)
        };
        let mut labelled = object("last", 8);
        labelled["metadata"]["labels"] = json!({"a": "b"});
        assert!(!quota.is_growth(&cluster, &labelled) && quota.is_growth(&cluster, &object("unknown", 8)));
        let wide = object("wide", 100);
        catalog.lock().tell(&cluster, Event::There(&binding(&wide)));
        assert!(!subjects(wide.clone(), &[]) && !subjects(wide.clone(), &["a"]));
        // More subjects are growth, even if their JSON is shorter.
        assert!(subjects(wide, &["a", "b"]));
    }
}

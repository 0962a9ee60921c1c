//! Which bindings every namespace of a virtual cluster must mirror: those of its root namespace.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use rewrite::ClusterName;

use super::binding::{Binding, CLUSTER_ADMIN, Wanted};

/// The ClusterRoleBindings of each virtual cluster, as mirrors.
#[derive(Debug)]
pub(super) struct Catalog(HashMap<ClusterName, Mirrors>);

#[derive(Debug)]
struct Mirrors {
    /// That of the administrators. It does not depend on what the root namespace says at the moment.
    administrators: Arc<Wanted>,
    by_binding: BTreeMap<String, Arc<Wanted>>,
    is_complete: bool,
}

// === impl Catalog ===

impl Catalog {
    pub(super) fn new(clusters: &[ClusterName]) -> Self {
        let mut catalog = Self(HashMap::new());
        catalog.serve(clusters);
        catalog
    }

    /// From now on, for exactly these clusters.
    pub(super) fn serve(&mut self, clusters: &[ClusterName]) {
        self.0.retain(|cluster, _| clusters.contains(cluster));
        for cluster in clusters {
            self.0.entry(cluster.clone()).or_insert_with(|| Mirrors {
                administrators: Arc::new(Binding::cluster_admin(cluster).mirror()),
                by_binding: BTreeMap::new(),
                is_complete: false,
            });
        }
    }

    /// What each namespace of the cluster must have, as far as it is known; the administrators' comes last, so that
    /// the others are in force when it is. Caches of RBAC take changes in order.
    pub(super) fn mirrors(&self, cluster: &ClusterName) -> Vec<Arc<Wanted>> {
        let Some(mirrors) = self.0.get(cluster) else { return Vec::new() };
        mirrors.by_binding.values().chain([&mirrors.administrators]).cloned().collect()
    }

    /// Whether [`mirrors`](Self::mirrors) are all: before, a mirror that is not among them may be right.
    pub(super) fn is_complete(&self, cluster: &ClusterName) -> bool {
        self.0.get(cluster).is_some_and(|mirrors| mirrors.is_complete)
    }

    /// The root namespace was listed.
    pub(super) fn complete(&mut self, cluster: &ClusterName) {
        if let Some(mirrors) = self.0.get_mut(cluster) {
            mirrors.is_complete = true;
        }
    }

    /// The root namespace was listed, and these are all.
    pub(super) fn replace(&mut self, cluster: &ClusterName, bindings: &[Binding]) {
        if let Some(mirrors) = self.0.get_mut(cluster) {
            mirrors.by_binding.retain(|name, _| bindings.iter().any(|binding| binding.name == *name));
        }
        for binding in bindings {
            self.insert(cluster, binding);
        }
    }

    /// A binding is there. Returns whether that changes the mirrors.
    pub(super) fn insert(&mut self, cluster: &ClusterName, binding: &Binding) -> bool {
        let Some(mirrors) = self.0.get_mut(cluster) else { return false };
        if binding.name == CLUSTER_ADMIN {
            return false;
        }
        let mirror = binding.mirror();
        if mirrors.by_binding.get(&binding.name).is_some_and(|known| **known == mirror) {
            return false;
        }
        mirrors.by_binding.insert(binding.name.clone(), Arc::new(mirror));
        true
    }

    /// A binding is gone. Returns whether that changes the mirrors.
    pub(super) fn remove(&mut self, cluster: &ClusterName, binding: &str) -> bool {
        self.0.get_mut(cluster).is_some_and(|mirrors| mirrors.by_binding.remove(binding).is_some())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn administrators_are_last_and_stay() {
        let cluster = ClusterName::new("vc").unwrap();
        let mut catalog = Catalog::new(std::slice::from_ref(&cluster));
        let names = |catalog: &Catalog| -> Vec<_> {
            catalog.mirrors(&cluster).iter().map(|mirror| mirror.name.clone()).collect()
        };
        let binding = |name| {
            Binding::of(&json!({"metadata": {"name": name}, "roleRef": {"kind": "ClusterRole", "name": "view"}}))
        };
        let (own, admin) = (binding("zz").unwrap(), binding(CLUSTER_ADMIN).unwrap());
        assert!(catalog.insert(&cluster, &own) && !catalog.insert(&cluster, &own) && !catalog.insert(&cluster, &admin));
        assert_eq!(names(&catalog), ["atoll:crb:zz", "atoll:crb:cluster-admin"]);
        assert!(!catalog.remove(&cluster, CLUSTER_ADMIN) && catalog.remove(&cluster, "zz"));
        assert_eq!(names(&catalog), ["atoll:crb:cluster-admin"]);
        assert!(!catalog.insert(&ClusterName::new("other").unwrap(), &own));
    }
}

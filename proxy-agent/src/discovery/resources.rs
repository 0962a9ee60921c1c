//! The resources that discovery lists.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};

use kube_wire::gvr::{GroupResource, GroupVersionResource};
use virtual_cluster::policy::{self, Class};
use virtual_cluster::shared::Kind;
use virtual_cluster::usage;

/// The known facts about one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Resource {
    /// The kind, which determines the places of names in objects.
    pub(crate) kind: String,
    /// Whether it is namespaced.
    pub(crate) namespaced: bool,
    /// Whether a CustomResourceDefinition defines it. Resources of aggregated APIs are neither custom nor built in.
    pub(crate) custom: bool,
    /// Whether clients can create, list and watch its objects, so that the host stores them.
    pub(crate) stored: bool,
}

/// Resources by group, version and plural.
#[derive(Debug, Default)]
pub(crate) struct Resources {
    by_name: HashMap<(String, String, String), Resource>,
    /// The kinds of cluster-scoped custom resources, by group and resource.
    pub(super) scopeless: HashMap<(String, String), String>,
    /// The resources whose objects count towards the shares of virtual clusters.
    counted: BTreeMap<(String, String), usage::Resource>,
}

// === impl Resources ===

impl Resources {
    pub(crate) fn insert(&mut self, group: &str, version: &str, resource: &str, found: Resource) {
        if found.custom && !found.namespaced {
            self.scopeless.insert((group.to_owned(), resource.to_owned()), found.kind.clone());
        }
        let name = GroupResource { group, resource };
        if found.stored && (found.namespaced || found.custom || is_counted_built_in(name)) {
            self.count(name, version);
        }
        self.by_name.insert((group.to_owned(), version.to_owned(), resource.to_owned()), found);
    }

    fn count(&mut self, resource: GroupResource<'_>, version: &str) {
        // In the version that discovery lists first.
        if let Entry::Vacant(new) = self.counted.entry((resource.group.to_owned(), resource.resource.to_owned()))
            && let Some(counted) = usage::Resource::new(resource, version)
        {
            new.insert(counted);
        }
    }

    /// The resources whose objects count towards the shares of virtual clusters.
    pub(super) fn counted(&self) -> Vec<usage::Resource> {
        self.counted.values().cloned().collect()
    }

    pub(super) fn get(&self, resource: GroupVersionResource<'_>) -> Option<&Resource> {
        let GroupVersionResource { group, version, resource } = resource;
        self.by_name.get(&(group.to_owned(), version.to_owned(), resource.to_owned()))
    }
}

/// Whether virtual clusters can have objects of their own of this built-in cluster-scoped resource. They have ClusterRoleBindings as
/// RoleBindings.
fn is_counted_built_in(resource: GroupResource<'_>) -> bool {
    matches!(policy::class(resource), Class::Namespaces | Class::Roles) || Kind::of(resource).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_virtual_clusters_can_have_counts() {
        let mut resources = Resources::default();
        let mut insert = |group: &str, version: &str, resource: &str, namespaced: bool, custom: bool| {
            let found = Resource { kind: "K".to_owned(), namespaced, custom, stored: resource != "selfsubjectreviews" };
            resources.insert(group, version, resource, found);
        };
        for version in ["v1", "v2"] {
            insert("example.com", version, "gears", false, true);
            insert("example.com", version, "cogs", true, true);
        }
        for (group, resource, namespaced) in [
            ("", "namespaces", false),
            ("", "nodes", false),
            ("", "secrets", true),
            ("", "events", true),
            ("events.k8s.io", "events", true),
            ("apiextensions.k8s.io", "customresourcedefinitions", false),
            ("rbac.authorization.k8s.io", "clusterroles", false),
            ("rbac.authorization.k8s.io", "clusterrolebindings", false),
            ("storage.k8s.io", "csidrivers", false),
            ("storage.k8s.io", "storageclasses", false),
            ("authentication.k8s.io", "selfsubjectreviews", false),
            ("aggregated.example.com", "things", false),
        ] {
            insert(group, "v1", resource, namespaced, false);
        }
        let counted: Vec<_> = resources.counted().iter().map(|counted| counted.name().to_owned()).collect();
        assert_eq!(
            counted,
            [
                "events",
                "namespaces",
                "secrets",
                "customresourcedefinitions.apiextensions.k8s.io",
                "cogs.example.com",
                "gears.example.com",
                "clusterroles.rbac.authorization.k8s.io",
                "storageclasses.storage.k8s.io",
            ]
        );
    }
}

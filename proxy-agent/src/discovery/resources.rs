//! The resources that discovery lists.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};

use kube_wire::gvr::{GroupResource, GroupVersionResource};
use virtual_cluster::policy::{self, Class};
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
    /// The resources whose objects count to the shares of virtual clusters.
    counted: BTreeMap<(String, String), usage::Resource>,
}

// === impl Resources ===

impl Resources {
    pub(crate) fn insert(&mut self, group: &str, version: &str, resource: &str, found: Resource) {
        if found.custom && !found.namespaced {
            self.scopeless.insert((group.to_owned(), resource.to_owned()), found.kind.clone());
        }
        if found.stored && (found.namespaced || found.custom || is_written_outside_namespaces(group, resource)) {
            self.count(GroupResource { group, resource }, version);
        }
        self.by_name.insert((group.to_owned(), version.to_owned(), resource.to_owned()), found);
    }

    fn count(&mut self, resource: GroupResource<'_>, version: &str) {
        match self.counted.entry((resource.group.to_owned(), resource.resource.to_owned())) {
            Entry::Occupied(counted) => counted.into_mut().add(version),
            Entry::Vacant(new) => drop(usage::Resource::new(resource, version).map(|counted| new.insert(counted))),
        }
    }

    /// The resources whose objects count to the shares of virtual clusters.
    pub(super) fn counted(&self) -> Vec<usage::Resource> {
        self.counted.values().cloned().collect()
    }

    pub(super) fn get(&self, resource: GroupVersionResource<'_>) -> Option<&Resource> {
        let GroupVersionResource { group, version, resource } = resource;
        self.by_name.get(&(group.to_owned(), version.to_owned(), resource.to_owned()))
    }
}

/// Whether virtual clusters may write objects of this built-in cluster-scoped resource. ClusterRoles and ClusterRoleBindings have
/// limits of their own.
fn is_written_outside_namespaces(group: &str, resource: &str) -> bool {
    matches!(policy::class(GroupResource { group, resource }), Class::Namespaces | Class::Shared)
}

//! The resources that discovery lists.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use kube_wire::gvr::{GroupResource, GroupVersionResource};
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
    /// The namespaced resources whose objects the host stores, in the version that discovery lists first.
    stored: BTreeMap<(String, String), usage::Resource>,
}

// === impl Resources ===

impl Resources {
    pub(crate) fn insert(&mut self, group: &str, version: &str, resource: &str, found: Resource) {
        if found.custom && !found.namespaced {
            self.scopeless.insert((group.to_owned(), resource.to_owned()), found.kind.clone());
        }
        if found.namespaced && found.stored {
            let counted = usage::Resource::new(GroupResource { group, resource }, version);
            if let Some(counted) = counted {
                self.stored.entry((group.to_owned(), resource.to_owned())).or_insert(counted);
            }
        }
        self.by_name.insert((group.to_owned(), version.to_owned(), resource.to_owned()), found);
    }

    /// The namespaced resources whose objects the host stores.
    pub(super) fn stored(&self) -> BTreeSet<usage::Resource> {
        self.stored.values().cloned().collect()
    }

    pub(super) fn get(&self, resource: GroupVersionResource<'_>) -> Option<&Resource> {
        let GroupVersionResource { group, version, resource } = resource;
        self.by_name.get(&(group.to_owned(), version.to_owned(), resource.to_owned()))
    }
}

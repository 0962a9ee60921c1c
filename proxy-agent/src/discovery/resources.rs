//! The resources that discovery lists.

use std::collections::HashMap;

use kube_wire::gvr::GroupVersionResource;

/// The known facts about one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Resource {
    /// The kind, which determines the places of names in objects.
    pub(crate) kind: String,
    /// Whether it is namespaced.
    pub(crate) namespaced: bool,
    /// Whether a CustomResourceDefinition defines it. Resources of aggregated APIs are neither custom nor built in.
    pub(crate) custom: bool,
}

/// Resources by group, version and plural.
#[derive(Debug, Default)]
pub(crate) struct Resources {
    by_name: HashMap<(String, String, String), Resource>,
    /// The kinds of cluster-scoped custom resources, by group and resource.
    pub(super) scopeless: HashMap<(String, String), String>,
}

// === impl Resources ===

impl Resources {
    pub(crate) fn insert(&mut self, group: &str, version: &str, resource: &str, found: Resource) {
        if found.custom && !found.namespaced {
            self.scopeless.insert((group.to_owned(), resource.to_owned()), found.kind.clone());
        }
        self.by_name.insert((group.to_owned(), version.to_owned(), resource.to_owned()), found);
    }

    pub(super) fn get(&self, resource: GroupVersionResource<'_>) -> Option<&Resource> {
        let GroupVersionResource { group, version, resource } = resource;
        self.by_name.get(&(group.to_owned(), version.to_owned(), resource.to_owned()))
    }
}

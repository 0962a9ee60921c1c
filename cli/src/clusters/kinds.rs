//! The resources that a host serves.

use anyhow::Context as _;
use host_client::api::{Api, ApiError};
use kube_wire::name::SegmentName;
use kube_wire::request_info::ResourcePath;
use serde::Deserialize;

/// A resource in one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Resource {
    pub(super) group: String,
    pub(super) version: String,
    /// Plural.
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) is_namespaced: bool,
    /// Whether objects can be listed and created.
    pub(super) is_stored: bool,
    /// Whether this is the preferred version of its group.
    is_preferred: bool,
}

/// All resources, in all versions.
#[derive(Debug, Default)]
pub(super) struct Resources(Vec<Resource>);

#[derive(Deserialize)]
struct GroupList {
    groups: Vec<Group>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Group {
    versions: Vec<GroupVersion>,
    preferred_version: GroupVersion,
}

#[derive(Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
struct GroupVersion {
    group_version: String,
}

#[derive(Deserialize)]
struct ResourceList {
    resources: Vec<Listed>,
}

#[derive(Deserialize)]
struct Listed {
    name: String,
    namespaced: bool,
    kind: String,
    verbs: Vec<String>,
}

// === impl Resources ===

impl Resources {
    /// Asks the host. A group of an aggregated API server that does not respond is an error, unless it is in `without`.
    pub(super) async fn of(api: &Api, without: &[String]) -> anyhow::Result<Self> {
        let mut found = Self::default();
        found.add("v1", true, api.read("/api/v1").await.context("/api/v1")?);
        let groups: GroupList = api.read("/apis").await.context("/apis")?;
        for group in &groups.groups {
            for version in &group.versions {
                let name = &version.group_version;
                if without.iter().any(|without| name.split('/').next() == Some(without)) {
                    continue;
                }
                let listed: Result<ResourceList, ApiError> = api.read(&format!("/apis/{name}")).await;
                match listed {
                    // The group has been removed since.
                    Err(error) if error.is_not_found() => {}
                    listed => {
                        let hint = || format!("the host does not say which resources {name} has; see --without-group");
                        found.add(name, *version == group.preferred_version, listed.with_context(hint)?);
                    }
                }
            }
        }
        Ok(found)
    }

    fn add(&mut self, group_version: &str, is_preferred: bool, list: ResourceList) {
        let (group, version) = group_version.split_once('/').unwrap_or(("", group_version));
        self.0.extend(list.resources.into_iter().filter(|listed| !listed.name.contains('/')).map(|listed| Resource {
            group: group.to_owned(),
            version: version.to_owned(),
            is_stored: ["list", "create"].iter().all(|verb| listed.verbs.iter().any(|listed| listed == verb)),
            name: listed.name,
            kind: listed.kind,
            is_namespaced: listed.namespaced,
            is_preferred,
        }));
    }

    /// The namespaced resources whose objects are stored, each in one version.
    pub(super) fn in_namespaces(&self) -> Vec<Resource> {
        let mut found: Vec<Resource> = Vec::new();
        let mut all: Vec<_> = self.0.iter().filter(|resource| resource.is_namespaced && resource.is_stored).collect();
        // The preferred version may lack a resource.
        all.sort_by_key(|resource| !resource.is_preferred);
        for resource in all {
            if !found.iter().any(|known| known.group == resource.group && known.name == resource.name) {
                found.push(resource.clone());
            }
        }
        found
    }

    /// The resource of an object.
    pub(super) fn of_kind(&self, api_version: &str, kind: &str) -> Option<&Resource> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        self.0.iter().find(|resource| {
            resource.group == group && resource.version == version && resource.kind == kind && resource.is_stored
        })
    }
}

// === impl Resource ===

impl Resource {
    #[cfg(test)]
    pub(super) fn for_tests(group: &str, name: &str, is_namespaced: bool) -> Self {
        let (group, name, version) = (group.to_owned(), name.to_owned(), "v1".to_owned());
        Self { group, version, name, kind: String::new(), is_namespaced, is_stored: true, is_preferred: true }
    }

    /// Whether a definition, or an aggregated API server, brings it. The policy table may not know each built-in group yet.
    pub(super) fn is_custom(&self) -> bool {
        let is_of_kubernetes = self.group.ends_with(".k8s.io") && self.group.split('.').count() == 3;
        self.group.contains('.') && !is_of_kubernetes
    }

    /// `plural.group`.
    pub(super) fn full_name(&self) -> String {
        if self.group.is_empty() { self.name.clone() } else { format!("{}.{}", self.name, self.group) }
    }

    pub(super) fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// The path of all objects in a namespace, or of all.
    pub(super) fn path(&self, namespace: Option<&str>) -> anyhow::Result<String> {
        self.build(namespace, None)
    }

    /// The path of one object.
    pub(super) fn path_of(&self, namespace: Option<&str>, name: &str) -> anyhow::Result<String> {
        self.build(namespace, Some(name))
    }

    fn build(&self, namespace: Option<&str>, name: Option<&str>) -> anyhow::Result<String> {
        let segment = |text: &str| SegmentName::new(text.to_owned()).with_context(|| format!("{text:?} is not a name"));
        Ok(ResourcePath {
            namespace: namespace.map(segment).transpose()?,
            name: name.map(segment).transpose()?,
            ..ResourcePath::new(&self.group, &self.version, &self.name)
        }
        .build())
    }
}

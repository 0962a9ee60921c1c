//! The paths of the objects of one resource.

use host_client::api::{ApiError, HostApi, Partial};
use kube_wire::gvr::GroupResource;
use kube_wire::name::SegmentName;
use kube_wire::request_info::ResourcePath;
use serde::Deserialize;

/// A cluster-scoped resource in one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Collection {
    group: String,
    version: String,
    resource: String,
}

/// A part of the discovery document of an API group.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Group {
    preferred_version: Version,
}

#[derive(Deserialize)]
struct Version {
    version: String,
}

// === impl Collection ===

impl Collection {
    pub(super) fn new(group: &str, version: &str, resource: &str) -> Self {
        Self { group: group.to_owned(), version: version.to_owned(), resource: resource.to_owned() }
    }

    /// The resource in the preferred version of its group. `None` if the host does not serve it.
    pub(super) async fn preferred(api: &impl HostApi, resource: GroupResource<'_>) -> Result<Option<Self>, ApiError> {
        let group: Group = match api.read(&format!("/apis/{}", resource.group)).await {
            Err(error) if error.is_not_found() => return Ok(None),
            group => group?,
        };
        let found = Self::new(resource.group, &group.preferred_version.version, resource.resource);
        // A version of the group may lack the resource.
        match api.any(&found.path(), "", |_: Partial| true).await {
            Err(error) if error.is_not_found() => Ok(None),
            outcome => outcome.map(|_| Some(found)),
        }
    }

    /// `plural.group`, and `plural` in the core group.
    pub(super) fn name(&self) -> String {
        GroupResource { group: &self.group, resource: &self.resource }.to_string()
    }

    /// The path of all objects.
    pub(super) fn path(&self) -> String {
        ResourcePath::new(&self.group, &self.version, &self.resource).build()
    }

    /// The path of one object. `None` if no object can have this name. Names of RBAC objects may need escapes.
    pub(super) fn path_of(&self, name: &str) -> Option<String> {
        let name = Some(SegmentName::new(name).ok()?);
        Some(ResourcePath { name, ..ResourcePath::new(&self.group, &self.version, &self.resource) }.build())
    }
}

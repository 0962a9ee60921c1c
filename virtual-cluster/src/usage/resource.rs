//! The resources that are counted.

use std::sync::Arc;

use kube_wire::gvr::GroupResource;
use kube_wire::request_info::ResourcePath;

/// The group in which the host serves Events a second time.
const EVENTS: &str = "events.k8s.io";

/// A resource of the host whose objects count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// The name in limits: `secrets` or `deployments.apps`.
    name: Arc<str>,
    group: Box<str>,
    plural: Box<str>,
    /// The version that discovery lists first.
    version: Box<str>,
}

// === impl Resource ===

impl Resource {
    /// The resource, in this version; `None` if the host stores its objects as those of another resource.
    pub fn new(resource: GroupResource<'_>, version: &str) -> Option<Self> {
        (resource.group != EVENTS).then(|| Self {
            name: name(resource).into(),
            group: resource.group.into(),
            plural: resource.resource.into(),
            version: version.into(),
        })
    }

    /// The name in limits: `secrets` or `deployments.apps`. For a custom resource, this is also the name of its definition.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The path of all its objects: `/apis/apps/v1/deployments`.
    ///
    /// For a custom resource, in the version `stored` in which the host stores the objects, if the host serves it: any other version
    /// hides the fields that it does not have. Otherwise, in the version that discovery lists first.
    pub(super) fn path(&self, stored: Option<&str>) -> Arc<str> {
        ResourcePath::new(&self.group, stored.unwrap_or(&self.version), &self.plural).build().into()
    }
}

/// The name of a resource in limits.
pub(super) fn name(resource: GroupResource<'_>) -> String {
    let group = if resource.group == EVENTS { "" } else { resource.group };
    GroupResource { group, ..resource }.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn custom_objects_are_read_as_they_are_stored() {
        let gears = GroupResource { group: "example.com", resource: "gears" };
        let gears = Resource::new(gears, "v2").unwrap();
        assert_eq!(gears.name(), "gears.example.com");
        assert_eq!(&*gears.path(Some("v1")), "/apis/example.com/v1/gears");
        assert_eq!(&*gears.path(None), "/apis/example.com/v2/gears");
        let events = |group| Resource::new(GroupResource { group, resource: "events" }, "v1");
        assert_eq!(events("").map(|events| events.path(None)).as_deref(), Some("/api/v1/events"));
        assert_eq!(events(EVENTS), None);
    }
}

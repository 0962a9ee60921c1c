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
    /// The versions that the host serves, in the order of discovery.
    versions: Vec<Box<str>>,
}

// === impl Resource ===

impl Resource {
    /// The resource, in this version; `None` if the host stores its objects as those of another resource.
    pub fn new(resource: GroupResource<'_>, version: &str) -> Option<Self> {
        (resource.group != EVENTS).then(|| Self {
            name: name(resource).into(),
            group: resource.group.into(),
            plural: resource.resource.into(),
            versions: vec![version.into()],
        })
    }

    /// The host serves this version, too.
    pub fn add(&mut self, version: &str) {
        self.versions.push(version.into());
    }

    /// The name in limits: `secrets` or `deployments.apps`. For a custom resource, this is also the name of its definition.
    pub(super) fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The path of all its objects: `/apis/apps/v1/deployments`.
    ///
    /// For a custom resource, in the version in which the host stores the objects. In any other version, it hides the fields that
    /// this version does not have.
    pub(super) fn path(&self, storage: Option<&str>) -> Arc<str> {
        let mut versions = self.versions.iter().map(|version| &**version);
        let first = versions.clone().next().unwrap_or_default();
        let version = versions.find(|version| Some(*version) == storage).unwrap_or(first);
        ResourcePath::new(&self.group, version, &self.plural).build().into()
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
        let mut gears = Resource::new(gears, "v2").unwrap();
        gears.add("v1");
        assert_eq!(&**gears.name(), "gears.example.com");
        for (storage, path) in [
            (Some("v1"), "/apis/example.com/v1/gears"),
            (Some("v2"), "/apis/example.com/v2/gears"),
            // A built-in resource, and a version that the host does not serve.
            (None, "/apis/example.com/v2/gears"),
            (Some("v3"), "/apis/example.com/v2/gears"),
        ] {
            assert_eq!(&*gears.path(storage), path);
        }
        let events = |group| Resource::new(GroupResource { group, resource: "events" }, "v1");
        assert_eq!(events("").map(|events| events.path(None)).as_deref(), Some("/api/v1/events"));
        assert_eq!(events(EVENTS), None);
    }
}

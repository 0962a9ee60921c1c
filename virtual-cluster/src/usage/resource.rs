//! The resources that are counted.

use std::fmt;
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
    first: Box<str>,
    /// The other versions that the host serves.
    others: Vec<Box<str>>,
}

// === impl Resource ===

impl Resource {
    /// The resource, in this version; `None` if the host stores its objects as those of another resource.
    pub fn new(resource: GroupResource<'_>, version: &str) -> Option<Self> {
        (resource.group != EVENTS).then(|| Self {
            name: name(resource).into(),
            group: resource.group.into(),
            plural: resource.resource.into(),
            first: version.into(),
            others: Vec::new(),
        })
    }

    /// The host serves this version, too.
    pub fn add_version(&mut self, version: &str) {
        self.others.push(version.into());
    }

    /// The name in limits: `secrets` or `deployments.apps`. For a custom resource, this is also the name of its definition.
    pub(super) fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The path of all its objects: `/apis/apps/v1/deployments`.
    ///
    /// For a custom resource, in the version in which the host stores the objects, if the host serves it: any other version hides
    /// the fields that it does not have. Otherwise, in the version that discovery lists first.
    pub(super) fn path(&self, storage: Option<&str>) -> Arc<str> {
        let other = self.others.iter().find(|version| Some(&***version) == storage);
        ResourcePath::new(&self.group, other.unwrap_or(&self.first), &self.plural).build().into()
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
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
        gears.add_version("v1");
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

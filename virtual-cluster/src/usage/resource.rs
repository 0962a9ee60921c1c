//! The resources that are counted.

use std::sync::Arc;

use kube_wire::gvr::GroupResource;
use kube_wire::request_info::ResourcePath;

/// The group in which the host serves Events a second time.
const EVENTS: &str = "events.k8s.io";

/// A namespaced resource of the host.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Resource {
    /// The name in limits: `secrets` or `deployments.apps`.
    pub name: Arc<str>,
    /// The path of all its objects, in one version: `/apis/apps/v1/deployments`.
    pub path: Arc<str>,
}

// === impl Resource ===

impl Resource {
    /// The resource, in this version; `None` if the host stores its objects as those of another resource.
    pub fn new(resource: GroupResource<'_>, version: &str) -> Option<Self> {
        let path = ResourcePath::new(resource.group, version, resource.resource).build();
        (resource.group != EVENTS).then(|| Self { name: name(resource).into(), path: path.into() })
    }
}

/// The name of a resource in limits.
pub(super) fn name(resource: GroupResource<'_>) -> String {
    let group = if resource.group == EVENTS { "" } else { resource.group };
    GroupResource { group, ..resource }.to_string()
}

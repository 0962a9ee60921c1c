//! The attributes of a request that RBAC decides about.

use kube_wire::gvr::GroupResource;
use kube_wire::request_info::NonResourceRequest;
use kube_wire::status::Denied;
use kube_wire::{ResourceRequest, Status};

use crate::auth::User;

/// The attributes of a request that RBAC decides about.
#[derive(Clone, Debug)]
pub(crate) enum RequestAttributes<'a> {
    /// A request for a resource.
    Resource {
        verb: &'a str,
        group: &'a str,
        resource: &'a str,
        subresource: Option<&'a str>,
        namespace: Option<&'a str>,
        name: Option<&'a str>,
    },
    /// A request for a path that is not a resource.
    Path { verb: &'a str, path: &'a str },
}

// === impl RequestAttributes ===

impl<'a> RequestAttributes<'a> {
    /// The attributes of a request.
    pub(crate) fn of(request: &'a ResourceRequest<'_>) -> Self {
        Self::Resource {
            verb: request.verb().as_str(),
            group: request.group(),
            resource: request.resource(),
            subresource: request.subresource(),
            namespace: request.namespace(),
            name: request.name(),
        }
    }

    pub(crate) fn of_path(request: &'a NonResourceRequest<'_>) -> Self {
        Self::Path { verb: request.verb(), path: request.path() }
    }

    /// The attributes of an impersonation.
    pub(crate) fn impersonate(group: &'a str, resource: &'a str, name: &'a str) -> Self {
        Self::Resource { verb: "impersonate", group, resource, subresource: None, namespace: None, name: Some(name) }
    }

    pub(crate) fn within(mut self, value: &'a str) -> Self {
        if let Self::Resource { namespace, .. } = &mut self {
            *namespace = Some(value);
        }
        self
    }

    pub(crate) fn below(mut self, value: &'a str) -> Self {
        if let Self::Resource { subresource, .. } = &mut self {
            *subresource = Some(value);
        }
        self
    }

    /// The response 403 for a user that is not allowed to send this request.
    pub(crate) fn forbidden(&self, user: &User) -> Status {
        let user = user.name.as_str();
        let denied = match *self {
            Self::Path { verb, path } => Denied::Path { user, verb, path },
            Self::Resource { verb, group, resource, subresource, namespace, name } => Denied::Resource {
                user,
                verb,
                resource: GroupResource { group, resource },
                subresource,
                namespace,
                name,
            },
        };
        Status::forbidden(denied, "")
    }

    pub(super) fn namespace(&self) -> Option<&'a str> {
        match self {
            Self::Resource { namespace, .. } => namespace.filter(|namespace| !namespace.is_empty()),
            Self::Path { .. } => None,
        }
    }
}

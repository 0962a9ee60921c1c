//! Refusals that several classes of resources have in common.

use kube_wire::gvr::GroupResource;
use kube_wire::{ResourceRequest, Status, Verb};

use crate::refusal::Refusal;

/// The resource of Namespaces.
pub(super) const NAMESPACES: GroupResource<'_> = GroupResource { group: "", resource: "namespaces" };

/// A refusal regardless of the caller's roles.
pub(super) fn forbidden(request: &ResourceRequest<'_>, why: &str) -> Refusal {
    Status::forbidden_because(request.group_resource(), request.path_name().unwrap_or_default(), why).into()
}

/// The response of an API server if the namespace, or the object in it, does not exist.
pub(super) fn no_such(request: &ResourceRequest<'_>, namespace: &str) -> Status {
    match (request.verb(), request.path_name()) {
        (Verb::Create, _) | (_, None) => Status::not_found(NAMESPACES, namespace),
        (_, Some(name)) => Status::not_found(request.group_resource(), name),
    }
}

//! Custom resources whose definition only other virtual clusters have are not served in this one.

use kube_wire::name::SegmentName;
use kube_wire::{ResourceRequest, Status, Target};
use rewrite::schema;

use crate::exchange::classes::shared::requests::read_shared_object;
use crate::exchange::rights::allowed;
use crate::exchange::synced::known_definitions;
use crate::exchange::undecided::Undecided;
use crate::refusal::Refusal;
use virtual_cluster::shared::{DEFINITIONS, HostObject};

/// Refuses a resource that is not served in this cluster, like an API server that does not serve it.
pub(crate) async fn defined(call: &Undecided<'_>) -> Result<(), Refusal> {
    let Target::Resource(request) = call.api.info.target() else { return Ok(()) };
    let resource = request.group_resource();
    if resource.group.is_empty() || schema::kind_of(resource.group, resource.resource).is_some() {
        return Ok(());
    }
    Box::pin(is_defined(call, request)).await
}

async fn is_defined(call: &Undecided<'_>, request: &ResourceRequest<'_>) -> Result<(), Refusal> {
    let resource = request.group_resource();
    known_definitions(call).await?;
    if !call.services.definitions.hide(resource, call.api.cluster.name.as_str()) {
        return Ok(());
    }
    // The cluster may have created the definition a moment ago, through another agent. The right to read in a
    // namespace has not been checked yet.
    allowed(call, request).await?;
    let definition = definition(call, &format!("{}.{}", resource.resource, resource.group)).await?;
    let is_seen = definition.is_some_and(|definition| definition.is_seen_by(call.api.cluster.name.as_str()));
    if is_seen { Ok(()) } else { Err(Status::path_not_found().into()) }
}

/// The definition of this name on the host.
pub(crate) async fn definition(call: &Undecided<'_>, name: &str) -> Result<Option<HostObject>, Refusal> {
    let Some(request) = call.api.info.resource() else { return Ok(None) };
    let Ok(name) = SegmentName::new(name.to_owned()) else { return Ok(None) };
    read_shared_object(call, request, &format!("{DEFINITIONS}/{name}")).await
}

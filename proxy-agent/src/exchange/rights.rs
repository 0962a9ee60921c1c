//! Rights that only the body, or the objects of the host, make necessary: the phase `decide` checks them.

use kube_wire::{ResourceRequest, Verb};
use rewrite::HostNamespace;

use crate::exchange::api_request::NamespaceLocation;
use crate::exchange::call::Call;
use crate::exchange::kinds::RBAC;
use crate::exchange::refusals::forbidden;
use crate::refusal::Refusal;
use caller::reviews::Attributes;
use virtual_cluster::provisioner::Growth;

/// Whether the caller may make the request, even if the host would decide this later.
pub(crate) async fn allowed(call: &Call<'_>, request: &ResourceRequest<'_>) -> Result<(), Refusal> {
    match request.namespace().map(|name| call.api.locate(name)) {
        Some(NamespaceLocation::Member(host)) => allowed_in(call, request, &host).await,
        _ => allowed_everywhere(call, request).await,
    }
}

/// The same, from a single review: the host decides if it says no.
pub(crate) async fn is_allowed_now(call: &Call<'_>, request: &ResourceRequest<'_>) -> bool {
    let host = match request.namespace().map(|name| call.api.locate(name)) {
        Some(NamespaceLocation::Member(host)) => Some(host),
        _ => None,
    };
    let attributes = match &host {
        Some(host) => call.api.attributes_in(request, host),
        None => call.api.attributes(request),
    };
    let decision = call.outside(call.services.authz.check(&call.api.caller.host, &attributes)).await;
    decision.is_ok_and(|decision| decision.allowed)
}

/// Whether the caller may do this in a namespace, for writes that the agent sends itself.
pub(crate) async fn allowed_in(
    call: &Call<'_>,
    request: &ResourceRequest<'_>,
    namespace: &HostNamespace,
) -> Result<(), Refusal> {
    let attributes = call.api.attributes_in(request, namespace);
    Ok(call.outside(call.services.authz.demand(&call.api.mapping, &call.api.caller, &attributes)).await?)
}

/// Whether the caller may do this in the whole cluster: RBAC of the root namespace decides.
pub(crate) async fn allowed_everywhere(call: &Call<'_>, request: &ResourceRequest<'_>) -> Result<(), Refusal> {
    let role = (request.group(), request.resource()) == (RBAC, "clusterroles");
    let role = request.name().filter(|_| role).map(|name| call.api.host_role(name));
    let attributes = call.api.attributes(request);
    let attributes = Attributes { name: role.as_deref().unwrap_or(attributes.name), ..attributes };
    Ok(call.outside(call.services.authz.demand(&call.api.mapping, &call.api.caller, &attributes)).await?)
}

/// Whether the caller may also create the object that an apply would create. An API server checks this once it
/// knows that the object does not exist (`withAuthorization` in apiserver's `handlers/update.go`).
pub(crate) async fn may_create(call: &Call<'_>, request: &ResourceRequest<'_>) -> Result<(), Refusal> {
    let attributes = Attributes { verb: Verb::Create.as_str(), ..call.api.attributes(request) };
    Ok(call.outside(call.services.authz.demand(&call.api.mapping, &call.api.caller, &attributes)).await?)
}

/// Whether the virtual cluster may store another object of this resource, whose JSON has this length.
pub(crate) fn may_store(call: &Call<'_>, request: &ResourceRequest<'_>, length: usize) -> Result<(), Refusal> {
    let length = u64::try_from(length).unwrap_or(u64::MAX);
    let room = call.services.usage.room(&call.api.cluster.name, request.group_resource(), length);
    room.map_err(|full| forbidden(request, &full.to_string()))
}

/// Whether the quota has room for more mirrors.
pub(crate) fn has_room(call: &Call<'_>, request: &ResourceRequest<'_>, growth: Growth<'_>) -> Result<(), Refusal> {
    let room = call.services.provisioner.has_room(&call.api.cluster.name, growth);
    room.map_err(|full| forbidden(request, &full.to_string()))
}

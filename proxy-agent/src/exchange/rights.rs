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

/// The same, from a single review. Use it if the host decides anyway after a refusal.
pub(crate) async fn is_allowed_now(call: &Call<'_>, request: &ResourceRequest<'_>) -> bool {
    let check = async |attributes: Attributes<'_>| {
        let decision = call.outside(call.services.authz.check(&call.api.caller.host, &attributes)).await;
        decision.is_ok_and(|decision| decision.allowed)
    };
    if let Some(NamespaceLocation::Member(host)) = request.namespace().map(|name| call.api.locate(name)) {
        return check(call.api.attributes_in(request, &host)).await;
    }
    let role = host_role(call, request);
    check(everywhere(call, request, role.as_deref())).await
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
    let role = host_role(call, request);
    let attributes = everywhere(call, request, role.as_deref());
    Ok(call.outside(call.services.authz.demand(&call.api.mapping, &call.api.caller, &attributes)).await?)
}

/// The host's name of the ClusterRole that the request names, because the rules of a virtual cluster are stored with host names.
fn host_role(call: &Call<'_>, request: &ResourceRequest<'_>) -> Option<String> {
    let is_role = (request.group(), request.resource()) == (RBAC, "clusterroles");
    request.name().filter(|_| is_role).map(|name| call.api.host_role(name))
}

/// What [`allowed`] demands: passes the attributes of its review to `with`.
pub(super) fn with_attributes<T>(
    call: &Call<'_>,
    request: &ResourceRequest<'_>,
    with: impl FnOnce(Attributes<'_>) -> T,
) -> T {
    if let Some(NamespaceLocation::Member(host)) = request.namespace().map(|name| call.api.locate(name)) {
        return with(call.api.attributes_in(request, &host));
    }
    let role = host_role(call, request);
    with(everywhere(call, request, role.as_deref()))
}

/// The attributes of a review in the whole cluster.
fn everywhere<'a>(call: &'a Call<'_>, request: &'a ResourceRequest<'_>, role: Option<&'a str>) -> Attributes<'a> {
    let attributes = call.api.attributes(request);
    Attributes { name: role.unwrap_or(attributes.name), ..attributes }
}

/// Whether the caller may also create the object that an apply would create. An API server checks this once it
/// knows that the object does not exist (`withAuthorization` in apiserver's `handlers/update.go`).
pub(crate) async fn may_create(call: &Call<'_>, request: &ResourceRequest<'_>) -> Result<(), Refusal> {
    let attributes = Attributes { verb: Verb::Create.as_str(), ..call.api.attributes(request) };
    Ok(call.outside(call.services.authz.demand(&call.api.mapping, &call.api.caller, &attributes)).await?)
}

/// Whether the caller may begin a watch that the agent sends with its own identity. Nobody checks the right again while the watch is
/// open, so it must have been reviewed recently.
pub(crate) async fn may_watch_at_host(call: &Call<'_>, request: &ResourceRequest<'_>) -> Result<(), Refusal> {
    let demand = async |attributes: Attributes<'_>| {
        let demanded = call.services.authz.demand_recent(&call.api.mapping, &call.api.caller, &attributes);
        Ok(call.outside(demanded).await?)
    };
    // Projected objects are in a namespace of the cluster. The agent also reads in namespaces that are being deleted, for callers
    // with the right in all namespaces.
    if let Some(NamespaceLocation::Member(host)) = request.namespace().map(|name| call.api.locate(name)) {
        let there = demand(call.api.attributes_in(request, &host)).await;
        if there.is_ok() || !call.services.provisioner.is_ending(&host) {
            return there;
        }
    }
    let role = host_role(call, request);
    demand(everywhere(call, request, role.as_deref())).await
}

/// Whether the virtual cluster may store another object of this resource, whose JSON has this length.
pub(crate) fn may_store(call: &Call<'_>, request: &ResourceRequest<'_>, length: usize) -> Result<(), Refusal> {
    let length = u64::try_from(length).unwrap_or(u64::MAX);
    let room = call.services.usage.room(&call.api.cluster.name, request.group_resource(), length);
    room.map_err(|full| forbidden(request, &full.to_string()))
}

/// Whether the virtual cluster may change a cluster-scoped object. The host's admission policies decide about those in namespaces.
pub(crate) fn may_grow(call: &Call<'_>, request: &ResourceRequest<'_>, length: usize) -> Result<(), Refusal> {
    let length = u64::try_from(length).unwrap_or(u64::MAX);
    let room = call.services.usage.room_to_grow(&call.api.cluster.name, length);
    room.map_err(|full| forbidden(request, &full.to_string()))
}

/// Whether the quota has room for more mirrors.
pub(crate) fn has_room(call: &Call<'_>, request: &ResourceRequest<'_>, growth: Growth<'_>) -> Result<(), Refusal> {
    let room = call.services.provisioner.has_room(&call.api.cluster.name, growth);
    room.map_err(|full| forbidden(request, &full.to_string()))
}

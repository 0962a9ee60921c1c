//! Requests in one namespace: the agent sends them as the caller, so the host's RBAC decides.

use http::{Method, Request};
use kube_wire::media::BodyType;
use kube_wire::name::SegmentName;
use kube_wire::{ResourceRequest, Status, Verb};
use rewrite::view::Filter;
use rewrite::{HostNamespace, VirtualNamespace};

use crate::exchange::api_request::As;
use crate::exchange::body::Body;
use crate::exchange::classes::mirrors;
use crate::exchange::classes::projected::{self, projected_fallback};
use crate::exchange::classes::reviews::{self, Kind};
use crate::exchange::host::error::{Destination, prefer_host_error};
use crate::exchange::kinds::{is_opaque, program, segment};
use crate::exchange::plan::{After, NotFound, Plan, Replan};
use crate::exchange::query::{list_query, list_transform};
use crate::exchange::refusals::{NAMESPACES, forbidden, no_such};
use crate::exchange::rights::may_store;
use crate::exchange::undecided::Undecided;
use crate::exchange::upstream;
use crate::exchange::write::mapped::mapped_body;
use crate::exchange::write::node_ports::{self, learn_node_ports};
use crate::exchange::write::object::received;
use crate::exchange::write::patch::mapped_patch;
use crate::refusal::Refusal;
use crate::translate::{Proxied, ResponseTransform};
use host_client::{RequestBody, empty};
use virtual_cluster::namespaces::NOBODYS;
use virtual_cluster::policy;

pub(crate) async fn decide(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    body: &Body,
) -> Result<Box<Plan>, Refusal> {
    if !request.verb().is_read() && call.services.discovery.is_reserved(request.group_resource()) {
        return Err(forbidden(request, policy::HIDDEN));
    }
    let name = request.namespace().unwrap_or_default();
    let Ok(namespace) = VirtualNamespace::new(name) else { return nowhere(call, request, name) };
    // The host name belongs to another owner, so the virtual cluster has no such namespace.
    let Ok(host) = call.api.mapping.host(&namespace) else { return nowhere(call, request, name) };
    if call.api.mapping.member(host.as_ref()).is_some() {
        if let Some(kind) = Kind::of(request) {
            return Box::pin(reviews::decide(call, request, kind, Some((&namespace, &host)), body)).await;
        }
        if let Some(plan) = projected::decide(call, request, &host, body).await? {
            return Ok(plan);
        }
        if request.verb() == Verb::Create && request.subresource().is_none() {
            may_store(call, request, body.len())?;
        }
        let identity = if may_read_to_the_end(call, request, &host).await { As::Agent } else { As::Caller };
        return present(call, request, &namespace, &host, identity, body).await;
    }
    if is_of_list(request) {
        // The response is an empty list or a watch without events, in the form of the host's version. No user can
        // have rights there, so the agent sends the request with its own identity. It filters all objects, unless
        // the namespace becomes one of this virtual cluster.
        return present(call, request, &namespace, &host, As::Agent, body).await;
    }
    if call.api.has_patch(BodyType::ApplyYaml) && request.verb() == Verb::Patch {
        // It would create the object.
        return Err(Status::not_found(NAMESPACES, name).into());
    }
    Err(no_such(request, name).into())
}

/// Whether this is a read in a namespace that is being deleted, by a caller with the right to read in all
/// namespaces. Such a right is a binding in the namespace, which is deleted a moment before the namespace itself.
async fn may_read_to_the_end(call: &Undecided<'_>, request: &ResourceRequest<'_>, host: &HostNamespace) -> bool {
    if !request.verb().is_read() || request.subresource().is_some() || !call.services.provisioner.is_ending(host) {
        return false;
    }
    let decision = call.outside(call.services.authz.check(&call.api.caller.host, &call.api.attributes(request))).await;
    decision.is_ok_and(|decision| decision.allowed)
}

/// A request in a namespace that the virtual cluster cannot have, and whose name must not go upstream. The caller
/// has the right in all namespaces. An API server does not check that a namespace exists before it lists its
/// objects.
fn nowhere(call: &Undecided<'_>, request: &ResourceRequest<'_>, namespace: &str) -> Result<Box<Plan>, Refusal> {
    // There are no objects to delete. The response to a deletecollection is an empty list, too.
    if !is_of_list(request) {
        return Err(no_such(request, namespace).into());
    }
    let segment = SegmentName::new(NOBODYS).expect("a constant segment");
    let query = list_query(call, request, None)?;
    let target = upstream::target(&request.path_with(Some(&segment), None), &query);
    let mut upstream = upstream::request(&call.api, Method::GET, &target, As::Agent, empty())?;
    upstream::readable(&call.api, &mut upstream)?;
    let transform = list_transform(call, request, program(request), Filter::ByNamespace)?;
    Ok(Plan::with_not_found(&call.api, upstream, transform, NotFound::InNamespace))
}

/// The path on the host.
fn host_path(
    request: &ResourceRequest<'_>,
    namespace: &VirtualNamespace,
    host: &HostNamespace,
) -> Result<String, Refusal> {
    let segment = segment(host);
    let name = request.path_name().map(|name| SegmentName::new(name.to_owned()));
    let name = name.transpose().map_err(|_| Refusal::from(no_such(request, namespace.as_str())))?;
    Ok(request.path_with(Some(&segment), name.as_ref()))
}

/// A request in an existing namespace, or a request that an API server serves even if the namespace does not exist.
async fn present(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    namespace: &VirtualNamespace,
    host: &HostNamespace,
    identity: As,
    body: &Body,
) -> Result<Box<Plan>, Refusal> {
    let path = host_path(request, namespace, host)?;
    let mapping = call.api.mapping.clone().with_requested_namespace(namespace.clone());
    let mut plan = match planned_at(call, request, Namespace { name: namespace, host }, &path, identity, body).await {
        Ok(plan) => plan,
        Err(refusal) => {
            let upstream = Destination { path: &path, identity, namespace: Some(host), mapping: &mapping };
            return Err(Box::pin(prefer_host_error(call, request, &upstream, &body.bytes(), refusal)).await);
        }
    };
    plan.mapping = mapping;
    Ok(plan)
}

/// A namespace, under both of its names.
#[derive(Clone, Copy)]
struct Namespace<'n> {
    name: &'n VirtualNamespace,
    host: &'n HostNamespace,
}

async fn planned_at(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    namespace: Namespace<'_>,
    path: &str,
    identity: As,
    body: &Body,
) -> Result<Box<Plan>, Refusal> {
    let hidden = mirrors::hidden(request);
    mirrors::check(request, || received(call, &body.bytes())?.name())?;
    let query = if is_of_list(request) {
        list_query(call, request, hidden.as_ref())?
    } else {
        call.api.info.query().borrowed().into_owned()
    };
    let target = upstream::target(path, &query);
    let has_node_ports = node_ports::concerns(request);
    if has_node_ports {
        Box::pin(learn_node_ports(call, request, path)).await?;
    }
    let mut replan = Replan::Never;
    let mut upstream = if request.verb() == Verb::Patch && !is_opaque(request) {
        let patched = Box::pin(mapped_patch(call, request, Some(namespace.name), path, &body.bytes())).await?;
        replan = patched.replan;
        patched.request
    } else if request.verb() == Verb::DeleteCollection && identity == As::Agent {
        // There are no objects to delete, and the response is an empty list.
        upstream::request(&call.api, Method::GET, &target, identity, empty())?
    } else {
        let body = if is_opaque(request) {
            // Unchanged, with any method.
            body.take()
        } else if request.verb().is_read() {
            empty()
        } else {
            Box::pin(mapped_body(call, request, Some(namespace.name), &body.bytes())).await?
        };
        upstream::request(&call.api, call.api.info.method().clone(), &target, identity, body)?
    };
    let transform = transform(call, request, namespace, &mut upstream)?;
    let mut plan = Plan::with_not_found(&call.api, upstream, transform, NotFound::InNamespace);
    plan.otherwise = projected_fallback(call, request).await?;
    plan.replan = replan;
    if has_node_ports {
        plan.after = After::NodePorts;
    }
    Ok(plan)
}

/// Whether the response is a list or a watch.
fn is_of_list(request: &ResourceRequest<'_>) -> bool {
    matches!(request.verb(), Verb::List | Verb::Watch | Verb::DeleteCollection)
}

/// How the response is transformed. Changes the request so that the agent can read the response.
fn transform(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    namespace: Namespace<'_>,
    upstream: &mut Request<RequestBody>,
) -> Result<ResponseTransform, Refusal> {
    if request.is_proxy() {
        return Ok(ResponseTransform::Proxied(Proxied::new(namespace.host.as_str(), namespace.name.as_str())));
    }
    if is_opaque(request) {
        return Ok(ResponseTransform::Verbatim);
    }
    upstream::readable(&call.api, upstream)?;
    if is_of_list(request) {
        return list_transform(call, request, program(request), Filter::ByNamespace);
    }
    Ok(ResponseTransform::Object { program: program(request), filter: Filter::Everything, only: None })
}

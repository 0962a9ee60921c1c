//! Namespaces of the virtual cluster.

pub(crate) mod apply;
pub(crate) mod created;
pub(crate) mod secured;

use bytes::Bytes;
use kube_wire::media::BodyType;
use kube_wire::name::SegmentName;
use kube_wire::{ResourceRequest, Status, Verb};
use rewrite::view::Filter;
use rewrite::{HostNamespace, VirtualNamespace};

use crate::exchange::api_request::As;
use crate::exchange::body::Body;
use crate::exchange::classes::namespaces::apply::apply_namespace;
use crate::exchange::classes::pass::pass;
use crate::exchange::host::error::{Destination, prefer_host_error};
use crate::exchange::kinds::program;
use crate::exchange::plan::{After, Plan, Replan};
use crate::exchange::query::{list_query, list_transform};
use crate::exchange::refusals::forbidden;
use crate::exchange::rights::{has_room, may_grow, may_store};
use crate::exchange::undecided::Undecided;
use crate::exchange::upstream;
use crate::exchange::write::deletion::is_dry_run;
use crate::exchange::write::mapped::{mapped_body, namespace_body};
use crate::exchange::write::patch::mapped_patch;
use crate::refusal::Refusal;
use crate::translate::ResponseTransform;
use host_client::empty;
use virtual_cluster::namespaces;
use virtual_cluster::namespaces::NOBODYS;
use virtual_cluster::provisioner::Growth;

/// Namespaces that no API server deletes (`immortalNamespaces` of the admission plugin `NamespaceLifecycle`).
const UNDELETABLE: [&str; 3] = ["default", "kube-system", "kube-public"];

/// Handles a request for Namespaces.
pub(crate) async fn decide(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    body: &Body,
) -> Result<Box<Plan>, Refusal> {
    let Some(name) = request.path_name() else {
        return namespace_collection(call, request, body).await;
    };
    let missing = || Refusal::from(Status::not_found(request.group_resource(), name));
    let namespace = VirtualNamespace::new(name).map_err(|_| missing())?;
    let host = call.api.mapping.host(&namespace).ok().filter(|host| call.api.mapping.member(host.as_ref()).is_some());
    let Some(host) = host else {
        let is_apply = call.api.has_patch(BodyType::ApplyYaml);
        if request.verb() != Verb::Patch || !is_apply || request.subresource().is_some() {
            return Err(missing());
        }
        return match apply_namespace(call, request, &namespace, &body.bytes()).await {
            Ok(plan) => Ok(plan),
            Err(refusal) => {
                let (identity, mapping) = (As::Agent, &call.api.mapping);
                // A path without an owner, for errors that depend only on the request.
                let nobody = SegmentName::new(NOBODYS).expect("a constant segment");
                let path = request.path_with(None, Some(&nobody));
                let upstream = Destination { path: &path, identity, namespace: None, mapping };
                Err(prefer_host_error(call, request, &upstream, &body.bytes(), refusal).await)
            }
        };
    };
    let segment = SegmentName::new(host.as_str()).expect("a DNS label is a path segment");
    let path = request.path_with(None, Some(&segment));
    if request.verb() == Verb::Watch {
        // The deprecated `/api/v1/watch/namespaces/NAME`.
        let query = list_query(call, request, None)?;
        let target = upstream::target(&path, &query);
        let mut upstream = upstream::request(&call.api, call.api.info.method().clone(), &target, As::Caller, empty())?;
        upstream::readable(&call.api, &mut upstream)?;
        return Ok(Plan::new(&call.api, upstream, list_transform(call, request, program(request), Filter::ByName)?));
    }
    if request.verb() == Verb::Delete && request.subresource().is_none() && UNDELETABLE.contains(&name) {
        return Err(forbidden(request, "this namespace may not be deleted"));
    }
    let planned = decide_one(call, request, &host, &path, &body.bytes()).await;
    match planned {
        Ok(plan) => Ok(plan),
        Err(refusal) => {
            let (identity, mapping) = (As::Caller, &call.api.mapping);
            let upstream = Destination { path: &path, identity, namespace: Some(&host), mapping };
            Err(prefer_host_error(call, request, &upstream, &body.bytes(), refusal).await)
        }
    }
}

/// A request about one Namespace, or a subresource of it.
async fn decide_one(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    host: &HostNamespace,
    path: &str,
    body: &Bytes,
) -> Result<Box<Plan>, Refusal> {
    if matches!(request.verb(), Verb::Update | Verb::Patch) && !call.services.provisioner.is_ending(host) {
        may_grow(call, request, body.len())?;
    }
    let mut replan = Replan::Never;
    let mut upstream = match request.verb() {
        Verb::Patch => {
            let patched = mapped_patch(call, request, None, path, body).await?;
            replan = patched.replan;
            patched.request
        }
        verb => {
            let body = if verb.is_read() { empty() } else { mapped_body(call, request, None, body).await? };
            let target = upstream::target(path, call.api.info.query());
            upstream::request(&call.api, call.api.info.method().clone(), &target, As::Caller, body)?
        }
    };
    upstream::readable(&call.api, &mut upstream)?;
    let transform = ResponseTransform::Object { program: program(request), filter: Filter::ByName, only: None };
    let mut plan = Plan::new(&call.api, upstream, transform);
    plan.replan = replan;
    let is_write = matches!(request.verb(), Verb::Update | Verb::Patch);
    if is_write && call.api.cluster.pod_security.is_some() && request.subresource() != Some("finalize") {
        plan.after = After::Labelled(format!("{}/{host}", namespaces::PATH));
    }
    Ok(plan)
}

async fn namespace_collection(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    body: &Body,
) -> Result<Box<Plan>, Refusal> {
    match request.verb() {
        Verb::List | Verb::Watch => pass(call, request, Filter::ByName, Some(&call.api.own_label())).await,
        Verb::Create => {
            let (path, is_dry) = (request.path().build(), is_dry_run(call, &body.bytes())?);
            let length = body.len();
            let (body, name) = match namespace_body(call, request, &body.bytes()).await {
                Ok(mapped) => mapped,
                Err(refusal) => {
                    let (identity, mapping) = (As::Agent, &call.api.mapping);
                    let upstream = Destination { path: &path, identity, namespace: None, mapping };
                    return Err(prefer_host_error(call, request, &upstream, &body.bytes(), refusal).await);
                }
            };
            let target = upstream::target(&path, call.api.info.query());
            let mut upstream = upstream::request(&call.api, call.api.info.method().clone(), &target, As::Agent, body)?;
            upstream::readable(&call.api, &mut upstream)?;
            let transform =
                ResponseTransform::Object { program: program(request), filter: Filter::Everything, only: None };
            let mut plan = Plan::new(&call.api, upstream, transform);
            plan.mapping = call.api.mapping.clone().with_requested_namespace(name);
            has_room(call, request, Growth::Namespace)?;
            may_store(call, request, length)?;
            if !is_dry {
                plan.after = After::PostCreate;
            }
            Ok(plan)
        }
        _ => Err(Status::method_not_allowed_here().into()),
    }
}

//! Cluster-scoped custom objects: each virtual cluster has its own, with another name on the host.
//!
//! The caller needs the right in the root namespace. The agent then sends the request with its own identity. An object
//! belongs to the virtual cluster if its label and its name say so. Before the agent writes an object by its name, it
//! checks the owner of the host's object.

use bytes::Bytes;
use http::Method;
use kube_wire::media::BodyType;
use kube_wire::name::SegmentName;
use kube_wire::status::FieldError;
use kube_wire::{ResourceRequest, Status, Verb};
use rewrite::name::CLUSTER_LABEL;
use rewrite::view::Filter;
use serde_json::{Map, Value, json};
use tracing::warn;

use crate::exchange::api_request::As;
use crate::exchange::body::Body;
use crate::exchange::cost::admit_sent;
use crate::exchange::host::error::{Destination, prefer_host_error};
use crate::exchange::host::read::object_at;
use crate::exchange::kinds::group_kind;
use crate::exchange::plan::{Plan, Replan};
use crate::exchange::query::{list_query, list_transform};
use crate::exchange::refusals::forbidden;
use crate::exchange::rights::{may_create, may_grow, may_store};
use crate::exchange::undecided::Undecided;
use crate::exchange::upstream;
use crate::exchange::write::generate;
use crate::exchange::write::mapped::{mapped_body, same_name};
use crate::exchange::write::object::received;
use crate::exchange::write::patch::mapped_patch;
use crate::exchange::write::yaml::yaml_to_json;
use crate::refusal::{DryRunScope, Refusal, Unmapped};
use crate::translate::ResponseTransform;
use host_client::{empty, full};
use virtual_cluster::own_rights::MissingRight;
use virtual_cluster::policy;

/// The media type of metadata only, from which the agent determines the owner of an object.
const METADATA: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";

/// The owner of a name on the host.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Holder {
    Nobody,
    /// The virtual cluster.
    Own {
        uid: String,
        is_ending: bool,
    },
    /// Another owner, for example the operator of the host.
    Other,
}

/// A request for cluster-scoped custom objects. The caller is authorised.
pub(crate) async fn decide(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    body: &Body,
) -> Result<Box<Plan>, Refusal> {
    if !matches!(request.subresource(), None | Some("status" | "scale")) {
        return Err(Status::path_not_found().into());
    }
    if !request.verb().is_read() {
        may_write_itself(call, request).await?;
    }
    match (request.verb(), request.path_name()) {
        (Verb::List | Verb::Watch | Verb::DeleteCollection, None) => renamed_collection(call, request, &body.bytes()),
        (Verb::Create, None) => new_renamed(call, request, &body.bytes()).await,
        (Verb::Get | Verb::List | Verb::Watch, Some(name)) => read_renamed(call, request, name).await,
        (Verb::Update | Verb::Patch | Verb::Delete, Some(name)) => {
            write_renamed(call, request, name, &body.bytes()).await
        }
        _ => Err(Status::method_not_allowed_here().into()),
    }
}

/// Makes sure that the agent itself has the right to write.
pub(crate) async fn may_write_itself(call: &Undecided<'_>, request: &ResourceRequest<'_>) -> Result<(), Refusal> {
    let scans = &call.api.cluster.lasting.scans;
    match call.outside(call.services.own_rights.ensure_write(request.group_resource(), scans)).await {
        Ok(()) => Ok(()),
        Err(MissingRight::NotGranted) => Err(forbidden(request, policy::NOT_GRANTED)),
        Err(MissingRight::NotDue) => Err(forbidden(request, policy::HIDDEN)),
        Err(MissingRight::Host(error)) => {
            let error: &dyn std::error::Error = &error;
            warn!(error, resource = %request.group_resource(), "cannot check the right to write custom resources");
            let message = "the host cluster did not say whether the agent may write this; try again";
            Err(Status::service_unavailable(message).with_retry_after(1).into())
        }
    }
}

fn renamed_collection(call: &Undecided<'_>, request: &ResourceRequest<'_>, body: &Bytes) -> Result<Box<Plan>, Refusal> {
    let query = list_query(call, request, Some(&call.api.own_label()))?;
    let target = upstream::target(&request.path().build(), &query);
    let sent = if request.verb() == Verb::DeleteCollection { full(body.clone()) } else { empty() };
    let mut upstream = upstream::request(&call.api, call.api.info.method().clone(), &target, As::Agent, sent)?;
    upstream::readable(&call.api, &mut upstream)?;
    let transform = list_transform(call, request, call.api.program(request), Filter::ByRole)?;
    Ok(Plan::new(&call.api, upstream, transform))
}

async fn new_renamed(call: &Undecided<'_>, request: &ResourceRequest<'_>, body: &Bytes) -> Result<Box<Plan>, Refusal> {
    may_store(call, request, body.len())?;
    let path = request.path().build();
    let mapped = async {
        let (name, body) = with_name(call, body)?;
        if !name.is_empty() && holder(call, request, &renamed_path(call, request, &name)?).await? == Holder::Other {
            let why = "the name is taken on the host by something else";
            return Err(Status::conflict(request.group_resource(), &name, why).into());
        }
        Ok((mapped_body(call, request, None, &body).await?, name))
    };
    let (body, name) = match mapped.await {
        Ok(mapped) => mapped,
        Err(refusal) => return Err(renamed_refused(call, request, &path, body, refusal).await),
    };
    let target = upstream::target(&path, call.api.info.query());
    let mut upstream = upstream::request(&call.api, Method::POST, &target, As::Agent, body)?;
    upstream::readable(&call.api, &mut upstream)?;
    let transform =
        ResponseTransform::Object { program: call.api.program(request), filter: Filter::ByRole, only: None };
    let mut plan = Plan::new(&call.api, upstream, transform);
    plan.mapping = call.api.mapping.clone().with_requested_object(&name);
    Ok(plan)
}

/// The name of a new object, and its body with that name. The host cannot generate a name, because it would append
/// the suffix after the name of the virtual cluster.
fn with_name(call: &Undecided<'_>, body: &Bytes) -> Result<(String, Bytes), Refusal> {
    let own = received(call, body)?.name()?;
    if !own.name.is_empty() || own.generate_name.is_empty() {
        return Ok((own.name, body.clone()));
    }
    let name = generate::with_suffix(&own.generate_name);
    let bad = |error: serde_json::Error| Refusal::from(Status::bad_request(error.to_string()));
    let json = received(call, body)?
        .into_json()
        .ok_or_else(|| Refusal::from(Status::bad_request("objects of this kind must be in JSON or YAML")))?;
    let mut object: Value = serde_json::from_slice(&json).map_err(bad)?;
    object["metadata"]["name"] = name.clone().into();
    Ok((name, serde_json::to_vec(&object).map_err(bad)?.into()))
}

async fn read_renamed(call: &Undecided<'_>, request: &ResourceRequest<'_>, name: &str) -> Result<Box<Plan>, Refusal> {
    let path = renamed_path(call, request, name)?;
    let listed = request.verb() != Verb::Get;
    if request.subresource() == Some("scale") && !matches!(holder(call, request, &path).await?, Holder::Own { .. }) {
        return Err(Status::not_found(request.group_resource(), name).into());
    }
    let query = if listed { list_query(call, request, None)? } else { call.api.info.query().borrowed().into_owned() };
    let mut upstream = upstream::request(&call.api, Method::GET, &upstream::target(&path, &query), As::Agent, empty())?;
    upstream::readable(&call.api, &mut upstream)?;
    let transform = if listed {
        list_transform(call, request, call.api.program(request), Filter::ByRole)?
    } else {
        ResponseTransform::Object { program: call.api.program(request), filter: filter(request), only: None }
    };
    let mut plan = Plan::new(&call.api, upstream, transform);
    plan.mapping = call.api.mapping.clone().with_requested_object(name);
    Ok(plan)
}

async fn write_renamed(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    name: &str,
    body: &Bytes,
) -> Result<Box<Plan>, Refusal> {
    let path = renamed_path(call, request, name)?;
    let holder = holder(call, request, &path).await?;
    if holder == Holder::Other {
        return Err(if request.verb() == Verb::Patch {
            // An apply would otherwise create the object.
            let why = "the name is taken on the host by something else";
            Status::conflict(request.group_resource(), name, why).into()
        } else {
            Status::not_found(request.group_resource(), name).into()
        });
    }
    // An object that is being deleted may lose its finalizers.
    if matches!(holder, Holder::Own { is_ending: false, .. }) && request.verb() != Verb::Delete {
        may_grow(call, request, body.len())?;
    }
    let planned = async {
        let body = &applied(call, request, holder, body).await?;
        if request.verb() == Verb::Patch {
            let patched = mapped_patch(call, request, None, &path, body).await?;
            return Ok((patched.request, patched.replan));
        }
        if request.verb() == Verb::Update {
            same_name(request, &received(call, body)?.name()?.name)?;
        }
        let sent = mapped_body(call, request, None, body).await?;
        let target = upstream::target(&path, call.api.info.query());
        Ok((upstream::request(&call.api, call.api.info.method().clone(), &target, As::Agent, sent)?, Replan::Never))
    };
    let (mut upstream, replan) = match planned.await {
        Ok(planned) => planned,
        Err(refusal) => return Err(renamed_refused(call, request, &path, body, refusal).await),
    };
    upstream::readable(&call.api, &mut upstream)?;
    let transform =
        ResponseTransform::Object { program: call.api.program(request), filter: filter(request), only: None };
    let mut plan = Plan::new(&call.api, upstream, transform);
    plan.mapping = call.api.mapping.clone().with_requested_object(name);
    plan.replan = replan;
    Ok(plan)
}

/// The body of a write. An apply may create the object only if the caller may create it. Otherwise, it gets the uid
/// of the existing object, so that it can only change that one.
async fn applied(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    holder: Holder,
    body: &Bytes,
) -> Result<Bytes, Refusal> {
    let kind = BodyType::of_patch(call.api.content_type());
    if request.verb() != Verb::Patch || request.subresource().is_some() || kind != Ok(BodyType::ApplyYaml) {
        return Ok(body.clone());
    }
    let may_create = may_create(call, request).await;
    let Holder::Own { uid, .. } = holder else {
        may_create?;
        may_store(call, request, body.len())?;
        return Ok(body.clone());
    };
    if may_create.is_ok() {
        return Ok(body.clone());
    }
    let json = yaml_to_json(body)?;
    admit_sent(call, &json)?;
    let mut object: Map<String, Value> =
        serde_json::from_slice(&json).map_err(|error| Status::bad_request(error.to_string()))?;
    if let Some(metadata) = object.entry("metadata").or_insert_with(|| json!({})).as_object_mut() {
        metadata.entry("uid").or_insert_with(|| uid.into());
    }
    Ok(Value::Object(object).to_string().into())
}

async fn renamed_refused(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    path: &str,
    body: &Bytes,
    refusal: Refusal,
) -> Refusal {
    let place = Destination { path, identity: As::Agent, namespace: None, mapping: &call.api.mapping };
    prefer_host_error(call, request, &place, body, refusal).await
}

/// A `Scale` has no labels of its object.
fn filter(request: &ResourceRequest<'_>) -> Filter {
    if request.subresource() == Some("scale") { Filter::Everything } else { Filter::ByRole }
}

/// The path on the host. If the host name is invalid, no such object exists.
fn renamed_path(call: &Undecided<'_>, request: &ResourceRequest<'_>, name: &str) -> Result<String, Refusal> {
    let missing = || Refusal::from(Status::not_found(request.group_resource(), name));
    let host = call.api.mapping.object(name).map_err(|error| {
        let error = FieldError::invalid("metadata.name", name, error.to_string());
        let refusal = Unmapped::refusal(Status::invalid(group_kind(request), name, &[error]), DryRunScope::Skip);
        if request.verb().is_read() || request.verb() == Verb::Delete { missing() } else { refusal }
    })?;
    let segment = SegmentName::new(host).map_err(|_| missing())?;
    let path = request.path_with(None, Some(&segment));
    Ok(if request.path_name().is_some() { path } else { format!("{}/{segment}", request.path().build()) })
}

/// The owner of the object at this path of the host.
async fn holder(call: &Undecided<'_>, request: &ResourceRequest<'_>, path: &str) -> Result<Holder, Refusal> {
    let path = match request.subresource() {
        Some(subresource) => path.strip_suffix(subresource).and_then(|path| path.strip_suffix('/')).unwrap_or(path),
        None => path,
    };
    let Some(body) = object_at(call, request, path, METADATA).await? else { return Ok(Holder::Nobody) };
    let object: Value = serde_json::from_slice(&body).map_err(|error| Refusal::Unreadable(error.to_string()))?;
    let label = object["metadata"]["labels"][CLUSTER_LABEL].as_str();
    if label != Some(call.api.cluster.name.as_str()) {
        return Ok(Holder::Other);
    }
    let uid = object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
    Ok(Holder::Own { uid, is_ending: !object["metadata"]["deletionTimestamp"].is_null() })
}

//! Server-side apply of a Namespace that does not exist, which creates it.
//!
//! An apply cannot require that the object does not exist, and must never take over a namespace of another owner. So
//! the agent first creates the namespace, with only the labels and annotations of the virtual cluster; the host refuses
//! this if the name is taken. Then it sends the apply, with the client's field manager. It sends the apply as a dry run
//! before, so that a refusal leaves nothing behind.

use bytes::Bytes;
use http::{HeaderValue, Method, Response, StatusCode, header};
use kube_wire::query::WriteOptions;
use kube_wire::{ResourceRequest, Status};
use rewrite::name::HIDDEN_PREFIX;
use rewrite::pod_security::is_enforced;
use rewrite::view::Filter;
use rewrite::{HostNamespace, VirtualNamespace};
use serde_json::{Map, Value, json};
use tracing::warn;

use crate::exchange::api_request::As;
use crate::exchange::call::Call;
use crate::exchange::classes::namespaces::created::post_create;
use crate::exchange::host::read::{collected, refused};
use crate::exchange::host::sample::{send, send_to_decide};
use crate::exchange::kinds::program;
use crate::exchange::plan::{After, FirstApply, Plan};
use crate::exchange::rights::{has_room, may_store};
use crate::exchange::undecided::Undecided;
use crate::exchange::upstream;
use crate::exchange::write::mapped::map_checked;
use crate::exchange::write::mapper::mapper;
use crate::exchange::write::object::Object;
use crate::exchange::write::patch::apply::named;
use crate::exchange::write::yaml::read_yaml;
use crate::refusal::Refusal;
use crate::translate::{ResponseTransform, Upstream};
use caller::reviews::Attributes;
use host_client::{HostBody, full};
use virtual_cluster::namespaces::{self, Annotations};
use virtual_cluster::provisioner::Growth;

/// An apply of a Namespace that the virtual cluster does not have. The caller is authorised to patch it.
pub(crate) async fn apply_namespace(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    name: &VirtualNamespace,
    body: &Bytes,
) -> Result<Box<Plan>, Refusal> {
    // As `createAuthorizerAttributes` in apiserver's `handlers/patch.go`.
    let create = Attributes { verb: "create", ..call.api.attributes(request) };
    call.outside(call.services.authz.demand(&call.api.mapping, &call.api.caller, &create)).await?;
    let options = WriteOptions::parse(call.api.info.query())?;
    let json = named(call, request, read_yaml(call, body)?)?;
    let own = Object::Json(json.clone()).name()?.name;
    if own != name.as_str() {
        // `checkName` in apiserver's `handlers/rest.go`.
        let message = format!("the name of the object ({own}) does not match the name on the URL ({name})");
        return Err(Status::bad_request(message).into());
    }
    has_room(call, request, Growth::Namespace)?;
    may_store(call, request, body.len())?;
    let program = program(request);
    let mapped = map_checked(call, request, &program, mapper(call, None), &json).await?;
    // The engine has already accepted the same name.
    let host = call
        .api
        .mapping
        .host(name)
        .map_err(|taken| Status::conflict(request.group_resource(), name.as_str(), &taken.to_string()))?;

    let transform = ResponseTransform::Object { program, filter: Filter::Everything, only: None };
    let target = |dry: bool| {
        let mut query = call.api.info.query().borrowed();
        if dry {
            query.set("dryRun", "All");
        }
        upstream::target(&format!("{}/{host}", namespaces::PATH), &query)
    };
    let mut tried = upstream::request(&call.api, Method::PATCH, &target(true), As::Agent, full(mapped.clone()))?;
    upstream::readable(&call.api, &mut tried)?;
    if options.dry_run {
        let mut plan = Plan::new(&call.api, tried, transform);
        plan.mapping = call.api.mapping.clone().with_requested_namespace(name.clone());
        plan.after = After::DryRunApply;
        return Ok(plan);
    }
    let tried = send_to_decide(call, tried).await?;
    if !tried.status().is_success() {
        return Err(refused(call, request, tried).await);
    }
    if tried.status() != StatusCode::CREATED {
        return Err(taken(request, name.as_str()).into());
    }

    let body = full(bare(&host, &mapped, &call.api.cluster.annotations)?.to_string());
    let mut first = upstream::request(&call.api, Method::POST, namespaces::PATH, As::Agent, body)?;
    for key in [header::ACCEPT, header::CONTENT_TYPE] {
        first.headers_mut().insert(key, HeaderValue::from_static("application/json"));
    }
    let mut plan = Plan::new(&call.api, first, transform);
    plan.mapping = call.api.mapping.clone().with_requested_namespace(name.clone());
    plan.after = After::FirstApply(FirstApply { name: name.to_string(), target: target(false), body: mapped });
    Ok(plan)
}

/// Applies what the client has sent to the namespace that was just created.
pub(crate) async fn first_apply(
    call: &Call<'_>,
    apply: &FirstApply,
    response: Response<HostBody>,
) -> Result<Response<Upstream>, Refusal> {
    let Some(request) = call.api.info.resource() else { return Ok(response.map(Upstream::Stream)) };
    if response.status() == StatusCode::CONFLICT {
        return Err(taken(request, &apply.name).into());
    }
    if response.status() != StatusCode::CREATED {
        return Ok(response.map(Upstream::Stream));
    }
    let created = collected(call, response).await?;
    let created: Value = serde_json::from_slice(&created).map_err(|error| Refusal::Unreadable(error.to_string()))?;
    let mut patch = upstream::request(&call.api, Method::PATCH, &apply.target, As::Agent, full(apply.body.clone()))?;
    upstream::readable(&call.api, &mut patch)?;
    let mut applied = send(call, patch).await?;
    if applied.status() != StatusCode::OK {
        take_back(call, &created).await;
        return Ok(applied.map(Upstream::Stream));
    }
    *applied.status_mut() = StatusCode::CREATED;
    post_create(call, applied).await
}

/// The response to a dry run of such an apply.
pub(crate) fn dry_run_applied(call: &Call<'_>, response: Response<HostBody>) -> Result<Response<Upstream>, Refusal> {
    if let Some(request) = call.api.info.resource()
        && response.status() == StatusCode::OK
        && let Some(name) = request.path_name()
    {
        return Err(taken(request, name).into());
    }
    Ok(response.map(Upstream::Stream))
}

/// Deletes the namespace of a failed apply. No user has had a right in it yet.
async fn take_back(call: &Call<'_>, created: &Value) {
    let name = created["metadata"]["name"].as_str().unwrap_or_default();
    let options = json!({"preconditions": {"uid": created["metadata"]["uid"]}});
    let path = format!("{}/{name}", namespaces::PATH);
    let Ok(mut delete) = upstream::request(&call.api, Method::DELETE, &path, As::Agent, full(options.to_string()))
    else {
        return;
    };
    delete.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    match send(call, delete).await {
        Ok(answer) if answer.status().is_success() => {}
        Ok(answer) => {
            warn!(namespace = name, status = %answer.status(), "cannot delete the namespace of a failed apply");
        }
        Err(error) => {
            let error: &dyn std::error::Error = &error;
            warn!(error, namespace = name, "cannot delete the namespace of a failed apply");
        }
    }
}

fn taken(request: &ResourceRequest<'_>, name: &str) -> Status {
    Status::conflict(request.group_resource(), name, "its name on the host cluster is taken by another namespace")
}

/// The Namespace with only Atoll's labels and annotations. The apply contains the labels too, with the same values. It
/// does not contain the annotations: its manager would own them, and its next apply would remove them.
fn bare(host: &HostNamespace, mapped: &Bytes, annotations: &Annotations) -> Result<Value, Refusal> {
    let mapped: Value = serde_json::from_slice(mapped).map_err(|error| Refusal::Unreadable(error.to_string()))?;
    let mut labels = mapped["metadata"]["labels"].clone();
    if let Some(labels) = labels.as_object_mut() {
        let is_enforcing = labels.contains_key(rewrite::pod_security::MARK);
        labels.retain(|key, _| key.starts_with(HIDDEN_PREFIX) || is_enforcing && is_enforced(key));
    }
    let annotations: Map<_, _> = annotations.entries().map(|(key, value)| (key.to_owned(), value.into())).collect();
    Ok(json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": host.as_str(), "labels": labels, "annotations": annotations},
    }))
}

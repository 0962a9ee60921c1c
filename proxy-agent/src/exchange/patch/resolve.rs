//! Patches that are applied before they are mapped.

use bytes::Bytes;
use http::{Method, Request, StatusCode, header};
use kube_wire::query::{Query, WriteOptions};
use kube_wire::{ResourceRequest, Status};
use rewrite::VirtualNamespace;
use rewrite::json::{MAX_WEIGHT, weight};
use rewrite::json_patch::JsonPatch;
use rewrite::view::Filter;
use serde_json::Value;

use super::super::Asked;
use super::super::node_ports::Form;
use super::super::own_words::Upstream;
use super::pod_spec;
use crate::host::{RequestBody, empty, full};
use crate::refusal::Refusal;
use crate::translate::MAX_OBJECT;

/// The limit for the tree of an object of the host's. What is created in JSON has a tree of up to twice as much.
const MAX_LIVE: usize = MAX_WEIGHT / 2;

/// Where managed fields stand, as a JSON pointer.
const MANAGED: &str = "/metadata/managedFields";

/// Applies a JSON patch to the object as the client sees it.
pub(super) async fn by_json_patch(
    asked: &Asked<'_>,
    request: &ResourceRequest<'_>,
    namespace: Option<&VirtualNamespace>,
    path: &str,
    patch: &JsonPatch,
) -> Result<Bytes, Refusal> {
    if !are_plain(asked.info.query())? {
        // What follows is a PUT. What is wrong with the parameters of a patch the host says of one that changes nothing.
        let upstream = Upstream { path, identity: asked.acts_as(), namespace: None, mapping: &asked.mapping };
        if let Some(said) = asked.dry_run(request, &upstream, full(Bytes::from_static(b"[]"))).await? {
            return Err(said.into());
        }
    }
    let live = read(asked, request, asked.upstream(Method::GET, path, asked.acts_as(), empty())?).await?;
    let does_not_apply = |_| Refusal::from(Status::patch_does_not_apply());
    let mut object = patch.apply(shown_text(asked, request, &live)?).map_err(does_not_apply)?;
    if !patch.pointers().any(|pointer| MANAGED.starts_with(pointer) || pointer.starts_with(MANAGED)) {
        // A PUT without them keeps those of the host, which know of fields that are hidden (`fieldManager.Update` in
        // apimachinery's `pkg/util/managedfields/internal/fieldmanager.go`).
        object = without(object, MANAGED);
    }
    mapped(asked, request, namespace, object).await
}

/// Whether the parameters of a patch are such as no API server objects to.
fn are_plain(query: &Query<'_>) -> Result<bool, Refusal> {
    let options = WriteOptions::parse(query)?;
    let manager =
        options.field_manager.len() <= 128 && options.field_manager.bytes().all(|byte| byte.is_ascii_graphic());
    let validation = ["", "Ignore", "Warn", "Strict"].contains(&&*options.field_validation);
    Ok(manager && validation && !options.dry_run && !query.contains("force"))
}

/// A strategic merge patch without a directive about the node selector, if there is none to the client's eyes: then it
/// has no meaning (`dropDirectives` in apimachinery's strategicpatch), but would be one about the guard.
pub(super) async fn without_moot_directive(
    asked: &Asked<'_>,
    request: &ResourceRequest<'_>,
    path: &str,
    patch: &Bytes,
) -> Result<Bytes, Refusal> {
    let pod = pod_spec(request.resource());
    let Ok(mut merged) = serde_json::from_slice::<Value>(patch) else { return Ok(patch.clone()) };
    let Some(Value::Object(spec)) = merged.pointer_mut(pod) else { return Ok(patch.clone()) };
    if spec.get("nodeSelector").is_none_or(|selector| selector.get("$patch").is_none()) {
        return Ok(patch.clone());
    }
    let live = read(asked, request, asked.upstream(Method::GET, path, asked.acts_as(), empty())?).await?;
    let live = tree(&shown_text(asked, request, &live)?)?;
    if live.pointer(pod).is_some_and(|spec| !spec["nodeSelector"].is_null()) {
        return Ok(patch.clone());
    }
    spec.remove("nodeSelector");
    serde_json::to_vec(&merged).map(Bytes::from).map_err(|error| Refusal::Unreadable(error.to_string()))
}

/// Lets the host apply a mapped patch without storing it, and takes its result.
pub(super) async fn by_dry_run(
    asked: &Asked<'_>,
    request: &ResourceRequest<'_>,
    namespace: Option<&VirtualNamespace>,
    path: &str,
    patch: Bytes,
) -> Result<Bytes, Refusal> {
    let mut query = asked.info.query().borrowed();
    query.set("dryRun", "All");
    let dry = asked.upstream(Method::PATCH, &Asked::target(path, &query), asked.acts_as(), full(patch))?;
    let result = read(asked, request, dry).await?;
    mapped(asked, request, namespace, shown_text(asked, request, &result)?).await
}

/// Lets the host try a mapped apply; what it has against it is the answer to the client.
pub(super) async fn try_apply(
    asked: &Asked<'_>,
    request: &ResourceRequest<'_>,
    path: &str,
    apply: Bytes,
) -> Result<(), Refusal> {
    let mut query = asked.info.query().borrowed();
    query.set("dryRun", "All");
    let dry = asked.upstream(Method::PATCH, &Asked::target(path, &query), asked.acts_as(), full(apply))?;
    read(asked, request, dry).await.map(drop)
}

/// An object of the host's; whatever else it answers is the answer to the client.
pub(super) async fn read(
    asked: &Asked<'_>,
    about: &ResourceRequest<'_>,
    mut request: Request<RequestBody>,
) -> Result<Bytes, Refusal> {
    request.headers_mut().insert(header::ACCEPT, http::HeaderValue::from_static("application/json"));
    let response = asked.parts.host.send(request).await?;
    if response.status() == StatusCode::OK {
        return asked.collector().collect(response.into_body(), MAX_OBJECT).await;
    }
    let said = asked.status(about, &asked.mapping, response).await;
    Err(said.unwrap_or_else(|| Status::internal_error("the host's response is not a Status")).into())
}

/// The text of the object as the client sees it.
pub(super) fn shown_text(asked: &Asked<'_>, request: &ResourceRequest<'_>, object: &Bytes) -> Result<Bytes, Refusal> {
    let view = asked.view(asked.mapping.clone());
    let mut pieces: Vec<Bytes> = Vec::new();
    view.object(&asked.program(request), Filter::Everything, object, &mut pieces)
        .map_err(|error| Refusal::Unreadable(error.to_string()))?;
    Ok(pieces.concat().into())
}

/// The tree of an object of the host's, whose size is not that of the request.
pub(in crate::exchange) fn tree(object: &[u8]) -> Result<Value, Refusal> {
    if weight(object) > MAX_LIVE {
        let message = "the object has too many parts to be changed in this way through a virtual cluster";
        return Err(Status::request_entity_too_large(message).into());
    }
    serde_json::from_slice(object).map_err(|error| Refusal::Unreadable(error.to_string()))
}

/// The object without the value at a pointer, if it exists.
fn without(object: Bytes, pointer: &str) -> Bytes {
    let patch = format!(r#"[{{"op":"remove","path":"{pointer}"}}]"#);
    let patch = JsonPatch::parse(&patch.into()).expect("a patch of one operation");
    patch.apply(object.clone()).unwrap_or(object)
}

/// The patched object as the host is to get it.
async fn mapped(
    asked: &Asked<'_>,
    request: &ResourceRequest<'_>,
    namespace: Option<&VirtualNamespace>,
    object: Bytes,
) -> Result<Bytes, Refusal> {
    let json = asked.with_node_ports(Form::Whole, &object);
    let mapper = asked.whole_mapper(request, namespace).await?;
    asked.map(request, &asked.program(request), mapper, &json).await
}

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

use super::super::ApiRequest;
use super::super::host_error::Upstream;
use super::super::node_ports::Form;
use super::pod_spec;
use crate::refusal::Refusal;
use host_client::{RequestBody, empty, full};
use virtual_cluster::share::large_objects::Size;

/// The limit for the parsed form of an object from the host, in bytes.
pub(in crate::exchange) const MAX_LIVE: usize = MAX_WEIGHT / 2;

/// The JSON pointer of the managed fields.
const MANAGED: &str = "/metadata/managedFields";

/// Applies a JSON patch to the virtual object.
pub(super) async fn by_json_patch(
    api_request: &ApiRequest<'_>,
    request: &ResourceRequest<'_>,
    namespace: Option<&VirtualNamespace>,
    path: &str,
    patch: &JsonPatch,
) -> Result<Bytes, Refusal> {
    if !are_plain(api_request.info.query())? {
        // The agent sends a PUT next. An empty patch gets the host's error for invalid parameters of a patch.
        let upstream =
            Upstream { path, identity: api_request.acts_as(), namespace: None, mapping: &api_request.mapping };
        if let Some(said) = api_request.dry_run(request, &upstream, full(Bytes::from_static(b"[]"))).await? {
            return Err(said.into());
        }
    }
    let live =
        read(api_request, request, api_request.upstream(Method::GET, path, api_request.acts_as(), empty())?).await?;
    let does_not_apply = |_| Refusal::from(Status::patch_does_not_apply());
    let mut object = patch.apply(shown_text(api_request, request, &live)?).map_err(does_not_apply)?;
    if !patch.pointers().any(is_of_managed) {
        // A PUT without managed fields keeps those of the host, which include hidden fields (`fieldManager.Update` in
        // apimachinery's `pkg/util/managedfields/internal/fieldmanager.go`).
        object = without(object, MANAGED);
    }
    mapped(api_request, request, namespace, object).await
}

/// Whether a JSON pointer is of managed fields, or of what contains them.
pub(super) fn is_of_managed(pointer: &str) -> bool {
    MANAGED.starts_with(pointer) || pointer.starts_with(MANAGED)
}

/// Whether every API server accepts the parameters of a patch.
fn are_plain(query: &Query<'_>) -> Result<bool, Refusal> {
    let options = WriteOptions::parse(query)?;
    // A longer name has been refused already.
    let manager = options.field_manager.bytes().all(|byte| byte.is_ascii_graphic());
    let validation = ["", "Ignore", "Warn", "Strict"].contains(&&*options.field_validation);
    Ok(manager && validation && !options.dry_run && !query.contains("force"))
}

/// Removes a directive for the node selector from a strategic merge patch if the client sees no node selector. The
/// directive has no effect then (`dropDirectives` in apimachinery's strategicpatch), but would affect the guard.
pub(super) async fn without_moot_directive(
    api_request: &ApiRequest<'_>,
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
    let live =
        read(api_request, request, api_request.upstream(Method::GET, path, api_request.acts_as(), empty())?).await?;
    let live = tree(&shown_text(api_request, request, &live)?)?;
    if live.pointer(pod).is_some_and(|spec| !spec["nodeSelector"].is_null()) {
        return Ok(patch.clone());
    }
    spec.remove("nodeSelector");
    serde_json::to_vec(&merged).map(Bytes::from).map_err(|error| Refusal::Unreadable(error.to_string()))
}

/// Lets the host apply a mapped patch in a dry run, and returns the result.
pub(super) async fn by_dry_run(
    api_request: &ApiRequest<'_>,
    request: &ResourceRequest<'_>,
    namespace: Option<&VirtualNamespace>,
    path: &str,
    patch: Bytes,
) -> Result<Bytes, Refusal> {
    let mut query = api_request.info.query().borrowed();
    query.set("dryRun", "All");
    let dry =
        api_request.upstream(Method::PATCH, &ApiRequest::target(path, &query), api_request.acts_as(), full(patch))?;
    let result = read(api_request, request, dry).await?;
    mapped(api_request, request, namespace, shown_text(api_request, request, &result)?).await
}

/// Lets the host try a mapped apply. Its refusal is the response for the client.
pub(super) async fn try_apply(
    api_request: &ApiRequest<'_>,
    request: &ResourceRequest<'_>,
    path: &str,
    apply: Bytes,
) -> Result<(), Refusal> {
    let mut query = api_request.info.query().borrowed();
    query.set("dryRun", "All");
    let dry =
        api_request.upstream(Method::PATCH, &ApiRequest::target(path, &query), api_request.acts_as(), full(apply))?;
    read(api_request, request, dry).await.map(drop)
}

/// Reads an object from the host. Any other response of the host is the response for the client.
pub(super) async fn read(
    api_request: &ApiRequest<'_>,
    about: &ResourceRequest<'_>,
    mut request: Request<RequestBody>,
) -> Result<Bytes, Refusal> {
    request.headers_mut().insert(header::ACCEPT, http::HeaderValue::from_static("application/json"));
    let response = api_request.send(request).await?;
    if response.status() == StatusCode::OK {
        let object = api_request.collected(response).await?;
        api_request.take_turn(Size::of(object.len(), weight(&object))).await?;
        return Ok(object);
    }
    Err(api_request.refused(about, response).await)
}

/// The object in virtual names.
pub(super) fn shown_text(
    api_request: &ApiRequest<'_>,
    request: &ResourceRequest<'_>,
    object: &Bytes,
) -> Result<Bytes, Refusal> {
    let view = api_request.view(api_request.mapping.clone());
    let mut pieces: Vec<Bytes> = Vec::new();
    view.object(&api_request.program(request), Filter::Everything, object, &mut pieces)
        .map_err(|error| Refusal::Unreadable(error.to_string()))?;
    Ok(pieces.concat().into())
}

/// Parses an object from the host. The limit of requests does not apply to its size.
pub(in crate::exchange) fn tree(object: &[u8]) -> Result<Value, Refusal> {
    if weight(object) > MAX_LIVE {
        return Err(too_many_parts());
    }
    serde_json::from_slice(object).map_err(|error| Refusal::Unreadable(error.to_string()))
}

/// The refusal to change an object of the host whose parsed form would need too much memory.
pub(in crate::exchange) fn too_many_parts() -> Refusal {
    let message = "the object has too many fields and elements to be changed in this way through a virtual cluster";
    Status::request_entity_too_large(message).into()
}

/// The object without the value at a pointer, if it exists.
fn without(object: Bytes, pointer: &str) -> Bytes {
    let patch = format!(r#"[{{"op":"remove","path":"{pointer}"}}]"#);
    let patch = JsonPatch::parse(&patch.into()).expect("a patch of one operation");
    patch.apply(object.clone()).unwrap_or(object)
}

/// The patched object in host names.
async fn mapped(
    api_request: &ApiRequest<'_>,
    request: &ResourceRequest<'_>,
    namespace: Option<&VirtualNamespace>,
    object: Bytes,
) -> Result<Bytes, Refusal> {
    let json = api_request.with_node_ports(Form::Whole, &object);
    let mapper = api_request.whole_mapper(request, namespace).await?;
    api_request.map(request, &api_request.program(request), mapper, &json).await
}

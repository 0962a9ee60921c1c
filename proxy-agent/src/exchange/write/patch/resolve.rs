//! Patches that are applied before they are mapped.

use bytes::Bytes;
use http::{Method, Request, StatusCode, header};
use kube_wire::query::{Query, WriteOptions};
use kube_wire::{ResourceRequest, Status};
use rewrite::VirtualNamespace;
use rewrite::json::weight;
use rewrite::json_patch::JsonPatch;
use rewrite::view::Filter;
use serde_json::Value;

use crate::exchange::host::error::{Destination, dry_run};
use crate::exchange::host::parsed::tree;
use crate::exchange::host::read::{collected, refused};
use crate::exchange::host::sample::send_to_decide;
use crate::exchange::ports::Form;
use crate::exchange::undecided::Undecided;
use crate::exchange::upstream;
use crate::exchange::write::mapped::map_checked;
use crate::exchange::write::namespace::whole_mapper;
use crate::exchange::write::node_ports::with_node_ports;
use crate::exchange::write::patch::patched::pod_spec;
use crate::refusal::Refusal;
use host_client::{RequestBody, empty, full};
use virtual_cluster::share::large_objects::Size;

/// The JSON pointer of the managed fields.
const MANAGED: &str = "/metadata/managedFields";

/// Applies a JSON patch to the virtual object.
pub(crate) async fn by_json_patch(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    namespace: Option<&VirtualNamespace>,
    path: &str,
    patch: &JsonPatch,
) -> Result<Bytes, Refusal> {
    if !are_plain(call.api.info.query())? {
        // The agent sends a PUT next. An empty patch gets the host's error for invalid parameters of a patch.
        let upstream = Destination { path, identity: call.api.acts_as(), namespace: None, mapping: &call.api.mapping };
        if let Some(refusal) = dry_run(call, request, &upstream, full(Bytes::from_static(b"[]"))).await? {
            return Err(refusal.into());
        }
    }
    let live =
        read(call, request, upstream::request(&call.api, Method::GET, path, call.api.acts_as(), empty())?).await?;
    let does_not_apply = |_| Refusal::from(Status::patch_does_not_apply());
    let mut object = patch.apply(shown_text(call, request, &live)?).map_err(does_not_apply)?;
    if !patch.pointers().any(is_of_managed) {
        // A PUT without managed fields keeps those of the host, which include hidden fields (`fieldManager.Update` in
        // apimachinery's `pkg/util/managedfields/internal/fieldmanager.go`).
        object = without(object, MANAGED);
    }
    mapped(call, request, namespace, object).await
}

/// Whether a JSON pointer is of managed fields, or of what contains them.
pub(crate) fn is_of_managed(pointer: &str) -> bool {
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
pub(crate) async fn without_moot_directive(
    call: &Undecided<'_>,
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
        read(call, request, upstream::request(&call.api, Method::GET, path, call.api.acts_as(), empty())?).await?;
    let live = tree(&shown_text(call, request, &live)?)?;
    if live.pointer(pod).is_some_and(|spec| !spec["nodeSelector"].is_null()) {
        return Ok(patch.clone());
    }
    spec.remove("nodeSelector");
    serde_json::to_vec(&merged).map(Bytes::from).map_err(|error| Refusal::Unreadable(error.to_string()))
}

/// Lets the host apply a mapped patch in a dry run, and returns the result.
pub(crate) async fn by_dry_run(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    namespace: Option<&VirtualNamespace>,
    path: &str,
    patch: Bytes,
) -> Result<Bytes, Refusal> {
    let mut query = call.api.info.query().borrowed();
    query.set("dryRun", "All");
    let dry =
        upstream::request(&call.api, Method::PATCH, &upstream::target(path, &query), call.api.acts_as(), full(patch))?;
    let result = read(call, request, dry).await?;
    mapped(call, request, namespace, shown_text(call, request, &result)?).await
}

/// Lets the host try a mapped apply. Its refusal is the response for the client.
pub(crate) async fn try_apply(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    path: &str,
    apply: Bytes,
) -> Result<(), Refusal> {
    let mut query = call.api.info.query().borrowed();
    query.set("dryRun", "All");
    let dry =
        upstream::request(&call.api, Method::PATCH, &upstream::target(path, &query), call.api.acts_as(), full(apply))?;
    read(call, request, dry).await.map(drop)
}

/// Reads an object from the host. Any other response of the host is the response for the client.
pub(crate) async fn read(
    call: &Undecided<'_>,
    about: &ResourceRequest<'_>,
    mut request: Request<RequestBody>,
) -> Result<Bytes, Refusal> {
    request.headers_mut().insert(header::ACCEPT, http::HeaderValue::from_static("application/json"));
    let response = send_to_decide(call, request).await?;
    if response.status() == StatusCode::OK {
        let object = collected(call, response).await?;
        call.take_turn(Size::of(object.len(), weight(&object))).await?;
        return Ok(object);
    }
    Err(refused(call, about, response).await)
}

/// The object in virtual names.
pub(crate) fn shown_text(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    object: &Bytes,
) -> Result<Bytes, Refusal> {
    let view = call.view(call.api.mapping.clone());
    let mut pieces: Vec<Bytes> = Vec::new();
    view.object(&call.api.program(request), Filter::Everything, object, &mut pieces)
        .map_err(|error| Refusal::Unreadable(error.to_string()))?;
    Ok(pieces.concat().into())
}

/// The object without the value at a pointer, if it exists.
fn without(object: Bytes, pointer: &str) -> Bytes {
    let patch = format!(r#"[{{"op":"remove","path":"{pointer}"}}]"#);
    let patch = JsonPatch::parse(&patch.into()).expect("a patch of one operation");
    patch.apply(object.clone()).unwrap_or(object)
}

/// The patched object in host names.
async fn mapped(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    namespace: Option<&VirtualNamespace>,
    object: Bytes,
) -> Result<Bytes, Refusal> {
    let json = with_node_ports(call, Form::Whole, &object);
    let mapper = whole_mapper(call, request, namespace).await?;
    map_checked(call, request, &call.api.program(request), mapper, &json).await
}

//! The shared object that a client wants: from a body, or from a patch of the object that it sees.

use bytes::Bytes;
use http::{HeaderValue, Method, header};
use kube_wire::envelope::Envelope;
use kube_wire::media::BodyType;
use kube_wire::proto::Writer;
use kube_wire::status::FieldError;
use kube_wire::{ResourceRequest, Status};
use rewrite::json::weight;
use rewrite::json_patch::JsonPatch;
use rewrite::name::is_own_key;
use rewrite::protobuf::ObjectMetadata;
use rewrite::view::{Filter, Verdict};
use serde_json::{Map, Value, json};

use crate::exchange::api_request::As;
use crate::exchange::classes::shared::requests::{answered_object, dry_query, put_upstream};
use crate::exchange::host::parsed::{MAX_LIVE, tree};
use crate::exchange::kinds::group_kind;
use crate::exchange::undecided::Undecided;
use crate::exchange::upstream;
use crate::exchange::write::mapped::same_name;
use crate::exchange::write::mapper::mapper;
use crate::exchange::write::object::{Object, map_json, received};
use crate::refusal::{DryRunScope, Refusal, Unmapped};
use host_client::full;
use virtual_cluster::shared::{HostObject, merge};

/// The result of a write, as the host completes it.
pub(crate) struct Wanted {
    /// The whole object, with the host's defaults.
    pub(crate) result: Value,
    /// `metadata` as the client sends it, or sees it after a patch.
    pub(crate) metadata: Value,
    /// For an apply, the managed fields. Its metadata is then merged into the overlay, and otherwise replaces it.
    pub(crate) applied: Option<Value>,
}

/// The prefix of directives in strategic merge patches.
const DIRECTIVE: &str = "$";

/// The result of a create or an update.
pub(crate) async fn wanted(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    path: &str,
    live: Option<&HostObject>,
    body: &Bytes,
) -> Result<Wanted, Refusal> {
    let object = received(call, body)?;
    let own = object.name()?;
    if request.path_name().is_some() {
        same_name(request, &own.name)?;
    }
    let (mapped, report) = object.map(request, &own.name, &call.api.program(request), &mapper(call, None))?;
    call.note(&report);
    match object {
        Object::Json(_) => completed(call, request, path, live, &mapped).await,
        Object::Protobuf(_) => completed_protobuf(call, request, path, live, &mapped).await,
    }
}

/// The result of a patch that is not an apply.
pub(crate) async fn wanted_by_patch(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    path: &str,
    live: &HostObject,
    kind: BodyType,
    body: &Bytes,
) -> Result<Wanted, Refusal> {
    let mut object = seen(call, request, live)?;
    let unreadable = |what: &str| {
        Unmapped::refusal(Status::bad_request(format!("the body is not {what}")), DryRunScope::KubeApiserver)
    };
    match kind {
        BodyType::JsonPatch => {
            let patch = JsonPatch::parse(body).map_err(|_| unreadable("a JSON patch"))?;
            let does_not_apply = || Refusal::from(Status::patch_does_not_apply());
            let patched = patch.apply(object.to_string().into()).map_err(|_| does_not_apply())?;
            object = Some(&patched)
                .filter(|patched| weight(patched) <= MAX_LIVE)
                .and_then(|patched| serde_json::from_slice(patched).ok())
                .ok_or_else(does_not_apply)?;
        }
        BodyType::MergePatch | BodyType::StrategicMergePatch => {
            let patch: Map<String, Value> = serde_json::from_slice(body).map_err(|_| unreadable("a merge patch"))?;
            if kind == BodyType::StrategicMergePatch {
                merge_strategically(call, request, path, &mut object, patch).await?;
            } else {
                merge(&mut object, &Value::Object(patch));
            }
        }
        _ => {
            let message = "this virtual cluster takes patches in JSON and YAML";
            let status = Status::failure(415, kube_wire::status::Reason::UnsupportedMediaType, message);
            return Err(Unmapped::refusal(status, DryRunScope::WithoutBody));
        }
    }
    same_name(request, object["metadata"]["name"].as_str().unwrap_or_default())?;
    let json = Bytes::from(object.to_string());
    let name = request.path_name().unwrap_or_default();
    // The parsed object is not needed while the host works.
    drop(object);
    let (mapped, report) = map_json(request, name, &call.api.program(request), &mapper(call, None), &json)?;
    call.note(&report);
    completed(call, request, path, Some(live), &mapped).await
}

/// The object as the client sees it.
fn seen(call: &Undecided<'_>, request: &ResourceRequest<'_>, object: &HostObject) -> Result<Value, Refusal> {
    let mut pieces: Vec<Bytes> = Vec::new();
    let body = Bytes::from(object.value().to_string());
    let view = call.view(call.api.mapping.clone());
    let verdict = view.object(&call.api.program(request), Filter::Shared, &body, &mut pieces);
    match verdict.map_err(|error| Refusal::Unreadable(error.to_string()))? {
        Verdict::Shown => {
            serde_json::from_slice(&pieces.concat()).map_err(|error| Refusal::Unreadable(error.to_string()))
        }
        _ => Err(Status::not_found(request.group_resource(), request.path_name().unwrap_or_default()).into()),
    }
}

/// Applies a strategic merge patch. For labels and annotations, it is the same as a merge patch. Only the host
/// knows how to merge the rest.
async fn merge_strategically(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    path: &str,
    object: &mut Value,
    mut patch: Map<String, Value>,
) -> Result<(), Refusal> {
    let metadata = patch.remove("metadata").unwrap_or_default();
    if has_directive(&metadata) {
        let message = "directives in the metadata of a strategic merge patch are not supported on this resource";
        return Err(Status::bad_request(message).into());
    }
    let ignored = if request.subresource().is_some() { "spec" } else { "status" };
    if patch.keys().any(|key| !matches!(&**key, "apiVersion" | "kind") && key != ignored) {
        let patch = Bytes::from(Value::Object(patch).to_string());
        let name = request.path_name().unwrap_or_default();
        let mapper = mapper(call, None).partial();
        let (mapped, _) = map_json(request, name, &call.api.program(request), &mapper, &patch)?;
        let target = upstream::target(path, &dry_query(call)?);
        let merged = answered_object(
            call,
            request,
            upstream::request(&call.api, Method::PATCH, &target, As::Agent, full(mapped))?,
        )
        .await?;
        let merged = seen(call, request, &HostObject::new(merged))?;
        let kept = object["metadata"].take();
        *object = merged;
        object["metadata"] = kept;
    }
    if !metadata.is_null() {
        merge(&mut object["metadata"], &metadata);
    }
    Ok(())
}

/// Lets the host complete an object in host names. Its labels and annotations are those of the client, so that the
/// host validates them, too.
async fn completed(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    path: &str,
    live: Option<&HostObject>,
    mapped: &Bytes,
) -> Result<Wanted, Refusal> {
    let mut object = tree(mapped)?;
    let metadata = object["metadata"].clone();
    check_metadata(request, &metadata, live)?;
    let mut tried = json!({});
    for key in ["name", "generateName", "labels", "annotations"] {
        if !metadata[key].is_null() {
            tried[key] = metadata[key].clone();
        }
    }
    for key in ["uid", "resourceVersion", "finalizers", "ownerReferences"] {
        if let Some(value) = live.map(|live| &live.metadata()[key]).filter(|value| !value.is_null()) {
            tried[key] = value.clone();
        }
    }
    object["metadata"] = tried;
    let method = if live.is_some() { Method::PUT } else { Method::POST };
    let dry = put_upstream(call, method, path, &dry_query(call)?, &object)?;
    drop(object);
    Ok(Wanted { result: answered_object(call, request, dry).await?, metadata, applied: None })
}

/// The same for protobuf, which only the host can convert to JSON.
async fn completed_protobuf(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    path: &str,
    live: Option<&HostObject>,
    mapped: &Bytes,
) -> Result<Wanted, Refusal> {
    let unreadable = |error: kube_wire::envelope::EnvelopeError| Refusal::Unreadable(error.to_string());
    let own = ObjectMetadata::of(mapped).map_err(unreadable)?;
    let mut body = mapped.clone();
    if let Some(live) = live {
        let envelope = Envelope::decode(mapped).map_err(unreadable)?;
        body = Envelope { raw: &identified(envelope.raw, live), ..envelope }.encode().into();
    }
    let method = if live.is_some() { Method::PUT } else { Method::POST };
    let dry = upstream::request(&call.api, method, &upstream::target(path, &dry_query(call)?), As::Agent, full(body))?;
    let result = answered_object(call, request, dry).await?;
    let mut metadata = result["metadata"].clone();
    metadata["uid"] = own.uid.into();
    metadata["resourceVersion"] = own.resource_version.into();
    // The host may add a finalizer that the client did not request (`storageobjectinuseprotection` in
    // `plugin/pkg/admission`).
    metadata["finalizers"] = own.finalizers.into();
    check_metadata(request, &metadata, live)?;
    Ok(Wanted { result, metadata, applied: None })
}

/// Refuses metadata that an overlay cannot hold.
pub(crate) fn check_metadata(
    request: &ResourceRequest<'_>,
    metadata: &Value,
    live: Option<&HostObject>,
) -> Result<(), Refusal> {
    let mut errors = Vec::new();
    for key in ["labels", "annotations"] {
        let mut keys = metadata[key].as_object().into_iter().flatten();
        if keys.any(|(key, _)| is_own_key(key)) {
            let detail = "keys of atoll.dev are managed by the operator of the host cluster";
            errors.push(FieldError::forbidden(format!("metadata.{key}"), detail));
        }
    }
    for key in ["finalizers", "ownerReferences"] {
        let is_empty = metadata[key].as_array().is_none_or(Vec::is_empty);
        let is_kept = live.is_some_and(|live| live.metadata()[key] == metadata[key]);
        if !is_empty && !is_kept {
            let detail = "the object is shared by virtual clusters, and would be kept or deleted for all of them";
            errors.push(FieldError::forbidden(format!("metadata.{key}"), detail));
        }
    }
    if errors.is_empty() {
        return Ok(());
    }
    let name = metadata["name"].as_str().unwrap_or_default();
    Err(Status::invalid(group_kind(request), name, &errors).into())
}

/// The same message with the uid and the resourceVersion of the live object. If a message occurs twice, Go's decoder
/// merges both, and the last value of a scalar counts.
fn identified(raw: &[u8], live: &HostObject) -> Vec<u8> {
    // `metadata` of every kind, and `uid` and `resourceVersion` of `ObjectMeta`.
    let mut metadata = Writer::new();
    metadata.bytes(5, live.text("uid").as_bytes());
    metadata.bytes(6, live.text("resourceVersion").as_bytes());
    let mut object = Writer::after(raw.to_vec());
    object.bytes(1, &metadata.into_bytes());
    object.into_bytes()
}

fn has_directive(patch: &Value) -> bool {
    match patch {
        Value::Object(members) => members.iter().any(|(key, value)| key.starts_with(DIRECTIVE) || has_directive(value)),
        Value::Array(elements) => elements.iter().any(has_directive),
        _ => false,
    }
}

/// The content type of an apply, whose body may be JSON.
pub(crate) const APPLY: HeaderValue = HeaderValue::from_static("application/apply-patch+yaml");

/// The header of the body's type.
pub(crate) const CONTENT_TYPE: header::HeaderName = header::CONTENT_TYPE;

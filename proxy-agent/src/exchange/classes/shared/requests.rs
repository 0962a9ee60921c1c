//! Requests for shared objects, as the agent, and their responses.

use std::sync::atomic::Ordering;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, StatusCode, header};
use kube_wire::ResourceRequest;
use kube_wire::media::BodyType;
use kube_wire::query::{Query, WriteOptions};
use rewrite::field_manager;
use rewrite::name::MANAGER_PREFIX;
use serde_json::{Map, Value};

use crate::exchange::api_request::As;
use crate::exchange::classes::shared::stored::load_overlay;
use crate::exchange::cost::{admit_sent, weight};
use crate::exchange::host::parsed::{MAX_LIVE, too_many_parts};
use crate::exchange::host::read::refused;
use crate::exchange::host::sample::send_to_decide;
use crate::exchange::refusals::forbidden;
use crate::exchange::undecided::Undecided;
use crate::exchange::upstream;
use crate::refusal::Refusal;
use host_client::collect::MAX_OBJECT;
use host_client::{HostBody, RequestBody, empty, full};
use virtual_cluster::policy;
use virtual_cluster::share::large_objects::Size;
use virtual_cluster::shared::{HostObject, Kind};

/// The field manager of an unknown client (`buildmanagerinfo.go` in apimachinery's `util/managedfields`).
const UNKNOWN_MANAGER: &str = "unknown";

/// The kind of object that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// An object of a built-in kind.
    Kind(Kind),
    /// A custom object.
    Custom,
}

/// Whether the object is being deleted.
pub(crate) fn is_ending(object: &HostObject) -> bool {
    !object.text("deletionTimestamp").is_empty()
}

/// The object at `path`, even if this cluster does not see it.
pub(crate) async fn read_shared_object(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    path: &str,
) -> Result<Option<HostObject>, Refusal> {
    let read = upstream::request(&call.api, Method::GET, path, As::Agent, empty())?;
    match answered_object(call, request, read).await {
        Ok(object) => Ok(Some(load_overlay(call, HostObject::new(object)).await?)),
        Err(refusal) => match refusal {
            Refusal::Status(status) if status.code == 404 => Ok(None),
            other => Err(other),
        },
    }
}

/// The object in the host's response. A refusal of the host becomes the response to the client.
pub(crate) async fn answered_object(
    call: &Undecided<'_>,
    about: &ResourceRequest<'_>,
    request: Request<RequestBody>,
) -> Result<Value, Refusal> {
    let unreadable = |error: String| Refusal::Unreadable(error);
    let body = accepted_body(call, about, request).await?;
    let body = call.outside(call.answer_collector().collect(body, MAX_OBJECT)).await?;
    parse_in_turn(call, &body).await?;
    let object: Map<String, Value> = serde_json::from_slice(&body).map_err(|error| unreadable(error.to_string()))?;
    if object.get("metadata").is_some_and(|metadata| !metadata.is_object()) {
        return Err(unreadable("its metadata is no object".to_owned()));
    }
    Ok(Value::Object(object))
}

/// The body of a successful response of the host. A refusal of the host becomes the response to the client.
pub(crate) async fn accepted_body(
    call: &Undecided<'_>,
    about: &ResourceRequest<'_>,
    mut request: Request<RequestBody>,
) -> Result<HostBody, Refusal> {
    request.headers_mut().insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    let response = send_to_decide(call, request).await?;
    match response.status() {
        status if status.is_success() => Ok(response.into_body()),
        // It would name the agent's account on the host, which lacks the required rights.
        StatusCode::FORBIDDEN => Err(forbidden(about, policy::NOT_GRANTED)),
        _ => Err(refused(call, about, response).await),
    }
}

/// Waits until an object of the host may be parsed. At most two parsed objects are in memory at once: this one, and
/// the one that is derived from it.
async fn parse_in_turn(call: &Undecided<'_>, object: &[u8]) -> Result<(), Refusal> {
    let memory = weight(object);
    if memory > MAX_LIVE {
        return Err(too_many_parts());
    }
    call.read_weight.fetch_max(memory, Ordering::Relaxed);
    match Size::of(object.len(), memory) {
        Size::Large => call.take_turn(Size::Large).await,
        size => {
            call.hold(2 * memory)?;
            call.take_turn(size).await
        }
    }
}

/// A write of a JSON object on the host.
pub(crate) fn put_upstream(
    call: &Undecided<'_>,
    method: Method,
    path: &str,
    query: &Query<'_>,
    object: &Value,
) -> Result<Request<RequestBody>, Refusal> {
    let body = Bytes::from(object.to_string());
    admit_sent(call, &body)?;
    let mut request = upstream::request(&call.api, method, &upstream::target(path, query), As::Agent, full(body))?;
    request.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(request)
}

/// The query of a write, with a field manager of this cluster.
pub(crate) fn write_query(call: &Undecided<'_>) -> Result<Query<'static>, Refusal> {
    let mut query = call.api.info.query().borrowed().into_owned();
    query.remove("force");
    if let Some(manager) = manager(call)? {
        query.set("fieldManager", &manager);
    }
    Ok(query)
}

/// The same query for a dry run.
pub(crate) fn dry_query(call: &Undecided<'_>) -> Result<Query<'static>, Refusal> {
    let mut query = write_query(call)?;
    if !query.contains("dryRun") {
        query.append("dryRun", "All");
    }
    Ok(query)
}

/// The field manager on the host. `None` if the name is invalid or missing, so that the host refuses it. Managers
/// of virtual clusters always have the prefix. A manager without it belongs to the operator.
pub(crate) fn manager(call: &Undecided<'_>) -> Result<Option<String>, Refusal> {
    let options = WriteOptions::parse(call.api.info.query())?;
    let mut named = &*options.field_manager;
    // `ValidateFieldManager` in apimachinery's `meta/v1/validation`.
    if named.len() > field_manager::MAX_LENGTH || named.chars().any(char::is_control) {
        return Ok(None);
    }
    if named.is_empty() {
        if call.api.has_patch(BodyType::ApplyYaml) {
            return Ok(None);
        }
        // `prefixFromUserAgent` in apiserver's `handlers/create.go`.
        let agent = call.api.headers.get(header::USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
        named = agent.split('/').next().filter(|name| !name.is_empty()).unwrap_or(UNKNOWN_MANAGER);
    }
    let mut manager = format!("{MANAGER_PREFIX}{}:", call.api.cluster.name);
    manager.extend(named.chars().filter(char::is_ascii_graphic));
    manager.truncate(field_manager::MAX_LENGTH);
    Ok(Some(manager))
}

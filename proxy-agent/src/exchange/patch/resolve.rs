//! Patches that are applied before they are mapped.

use bytes::Bytes;
use http::{Method, Request, StatusCode, header};
use kube_wire::{ResourceRequest, Status};
use rewrite::VirtualNamespace;
use rewrite::view::Filter;
use serde_json::Value;

use super::super::Asked;
use super::super::plan::{As, program};
use crate::host::{RequestBody, empty, full};
use crate::refusal::Refusal;
use crate::translate::{MAX_OBJECT, collect};

/// Applies a JSON patch (RFC 6902) to the object as the client sees it.
pub(super) async fn by_json_patch(
    asked: &Asked<'_>,
    request: &ResourceRequest<'_>,
    namespace: Option<&VirtualNamespace>,
    path: &str,
    patch: &Bytes,
) -> Result<Bytes, Refusal> {
    let patch: json_patch::Patch =
        serde_json::from_slice(patch).map_err(|error| Refusal::from(Status::bad_request(error.to_string())))?;
    let live = read(asked, asked.upstream(Method::GET, path, As::Caller, empty())?).await?;
    let mut object = shown(asked, request, &live)?;
    json_patch::patch(&mut object, &patch).map_err(|error| {
        // As `handlers/patch.go` answers a patch that does not apply.
        let message = format!("the server rejected our request due to an error in our request: {error}");
        Refusal::from(Status::failure(422, kube_wire::status::Reason::Invalid, message))
    })?;
    mapped(asked, request, namespace, &object).await
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
    let dry = asked.upstream(Method::PATCH, &Asked::target(path, &query), As::Caller, full(patch))?;
    let result = read(asked, dry).await?;
    let object = shown(asked, request, &result)?;
    mapped(asked, request, namespace, &object).await
}

/// Lets the host try a mapped apply; what it has against it is the answer to the client.
pub(super) async fn try_apply(asked: &Asked<'_>, path: &str, apply: Bytes) -> Result<(), Refusal> {
    let mut query = asked.info.query().borrowed();
    query.set("dryRun", "All");
    read(asked, asked.upstream(Method::PATCH, &Asked::target(path, &query), As::Caller, full(apply))?).await.map(drop)
}

/// An object of the host's; whatever else it answers is the answer to the client.
async fn read(asked: &Asked<'_>, mut request: Request<RequestBody>) -> Result<Bytes, Refusal> {
    request.headers_mut().insert(header::ACCEPT, http::HeaderValue::from_static("application/json"));
    let response = asked.parts.host.send(request).await?;
    let status = response.status();
    let body = collect(response.into_body(), MAX_OBJECT).await;
    let body = body.map_err(|error| Refusal::Unreadable(error.to_string()))?;
    if status == StatusCode::OK {
        return Ok(body);
    }
    let view = asked.view(asked.mapping.clone());
    let mut pieces: Vec<Bytes> = Vec::new();
    let shown = view.object(&rewrite::Program::default(), Filter::Everything, &body, &mut pieces);
    let status = shown.ok().and_then(|_| Status::from_json(&pieces.concat()).ok());
    Err(status.unwrap_or_else(|| Status::internal_error("the host's answer is no Status")).into())
}

/// The object as the client sees it.
fn shown(asked: &Asked<'_>, request: &ResourceRequest<'_>, object: &Bytes) -> Result<Value, Refusal> {
    let view = asked.view(asked.mapping.clone());
    let mut pieces: Vec<Bytes> = Vec::new();
    view.object(&program(request), Filter::Everything, object, &mut pieces)
        .map_err(|error| Refusal::Unreadable(error.to_string()))?;
    serde_json::from_slice(&pieces.concat()).map_err(|error| Refusal::Unreadable(error.to_string()))
}

/// The patched object as the host is to get it.
async fn mapped(
    asked: &Asked<'_>,
    request: &ResourceRequest<'_>,
    namespace: Option<&VirtualNamespace>,
    object: &Value,
) -> Result<Bytes, Refusal> {
    let json = serde_json::to_vec(object).map_err(|error| Refusal::Unreadable(error.to_string()))?;
    asked.map(request, &program(request), asked.mapper(namespace), &json.into()).await
}

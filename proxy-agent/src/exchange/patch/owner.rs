//! Whether an apply has to hold the guard.

use http::{Method, StatusCode};
use kube_wire::query::WriteOptions;
use kube_wire::{ResourceRequest, Status};
use serde::Deserialize;
use serde_json::Value;

use super::super::Asked;
use super::super::plan::As;
use crate::host::empty;
use crate::refusal::Refusal;
use crate::translate::{MAX_OBJECT, collect};

#[derive(Deserialize)]
struct Managed {
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    #[serde(default)]
    managed_fields: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    #[serde(default)]
    manager: String,
    #[serde(default)]
    operation: String,
    #[serde(default)]
    fields_v1: Value,
}

/// It does if the object is new, or if this manager owns `nodeSelector`: leaving the field out would then remove it, and
/// the pods would be free. Putting it in otherwise would make this manager a co-owner of a field that it never named,
/// and the next manager's apply a conflict.
pub(super) async fn puts_the_guard(
    asked: &Asked<'_>,
    request: &ResourceRequest<'_>,
    path: &str,
) -> Result<bool, Refusal> {
    if request.subresource().is_some() || !super::GUARDED.contains(&(request.group(), request.resource())) {
        return Ok(true);
    }
    let options = WriteOptions::parse(asked.info.query())?;
    // In the agent's name: who may apply need not be allowed to read, and nothing of it is shown.
    let live = asked.parts.host.send(asked.upstream(Method::GET, path, As::Agent, empty())?).await?;
    if live.status() != StatusCode::OK {
        return Ok(true);
    }
    let body = collect(live.into_body(), MAX_OBJECT).await;
    let body = body.map_err(|error| Refusal::Unreadable(error.to_string()))?;
    let live: Managed =
        serde_json::from_slice(&body).map_err(|error| Refusal::from(Status::internal_error(&error.to_string())))?;
    let mut entries = live.metadata.managed_fields.iter();
    Ok(entries
        .any(|entry| entry.operation == "Apply" && entry.manager == options.field_manager && owns(&entry.fields_v1)))
}

/// Whether an apply says something of its own about the field. The field is atomic, so what is stored is this and the
/// guard: without it, two managers that apply the same template would each ask for another value.
pub(super) fn names_the_field(request: &ResourceRequest<'_>, body: &[u8]) -> bool {
    let pod = match request.resource() {
        "pods" => "/spec",
        "podtemplates" => "/template/spec",
        "cronjobs" => "/spec/jobTemplate/spec/template/spec",
        _ => "/spec/template/spec",
    };
    let named = |body: Value| body.pointer(pod).is_some_and(|pod| !pod["nodeSelector"].is_null());
    request.subresource().is_none() && serde_json::from_slice(body).is_ok_and(named)
}

/// Whether `f:nodeSelector` is anywhere in the fields of a pod-bearing kind: it has one such place.
fn owns(fields: &Value) -> bool {
    match fields {
        Value::Object(members) => members.iter().any(|(key, value)| key == "f:nodeSelector" || owns(value)),
        _ => false,
    }
}

//! Deleting an object or a collection.

use std::sync::Arc;

use http::{Response, StatusCode, header};
use kube_wire::Status;
use kube_wire::query::DeleteOptions;
use serde_json::{Value, json};

use super::read::find;
use super::request::ApiRequest;
use super::selection::Selection;
use super::shape::{ListMeta, respond, respond_list};
use crate::body::{RequestBody, parse_json};
use crate::kinds::Kind;
use crate::object;
use crate::protobuf;
use crate::response::{self, Body};
use crate::write::{self, Deleted, Deletion};

pub(super) async fn delete(request: &ApiRequest<'_>, body: RequestBody) -> Result<Response<Body>, Status> {
    let deletion = deletion(request, body).await?;
    let kind = request.kind;
    let deleted = request.api.store.write(|state| {
        let found = Arc::clone(find(state, request)?);
        write::delete(state, kind, &found, &deletion)
    })?;
    match deleted {
        Deleted::Going(object) => respond(request, StatusCode::OK, &object),
        Deleted::Gone(object) if kind.is_pod() => respond(request, StatusCode::OK, &object),
        Deleted::Gone(object) => Ok(response::json(StatusCode::OK, &success(kind, &object))),
    }
}

pub(super) async fn delete_collection(request: &ApiRequest<'_>, body: RequestBody) -> Result<Response<Body>, Status> {
    let deletion = deletion(request, body).await?;
    let kind = request.kind;
    let selection = Selection::parse(kind, &request.list_options()?)?;
    let (revision, items) = request.api.store.write(|state| {
        let all = state.list(kind, request.namespace());
        let found: Vec<_> = all.filter(|object| selection.selects(object)).cloned().collect();
        for object in &found {
            write::delete(state, kind, object, &deletion)?;
        }
        Ok::<_, Status>((state.revision(), found))
    })?;
    respond_list(request, &ListMeta { resource_version: revision, ..ListMeta::default() }, &items)
}

/// The options: those in the body if it is not empty, else those in the query.
async fn deletion(request: &ApiRequest<'_>, body: RequestBody) -> Result<Deletion, Status> {
    let query = DeleteOptions::parse(request.query).map_err(|error| Status::bad_request(error.to_string()))?;
    let content_type = request.header(header::CONTENT_TYPE).unwrap_or_default();
    let bytes = body.bytes().await?;
    if bytes.is_empty() {
        let options = json!({
            "dryRun": query.dry_run.then_some(["All"]),
            "propagationPolicy": query.propagation_policy,
            "gracePeriodSeconds": query.grace_period_seconds,
            "orphanDependents": query.orphan_dependents,
        });
        return Deletion::parse(&options);
    }
    let is_protobuf = content_type.contains("protobuf");
    let options = if is_protobuf { protobuf::object(&bytes)? } else { parse_json(&bytes)? };
    Deletion::parse(&options)
}

/// The `Status` for an object that no longer exists.
fn success(kind: &Kind, object: &Value) -> Value {
    let mut details = json!({"name": object::name(object), "kind": kind.resource, "uid": object::uid(object)});
    if !kind.group.is_empty() {
        details["group"] = kind.group.into();
    }
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}

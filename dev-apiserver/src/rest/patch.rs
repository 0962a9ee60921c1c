//! PATCH. The object is read and written under one lock, so a concurrent write never causes a conflict.

use std::sync::Arc;

use http::{Response, StatusCode, header};
use kube_wire::Status;
use kube_wire::gvr::GroupKind;
use kube_wire::media::BodyType;
use kube_wire::status::FieldError;
use serde_json::Value;

use super::decode::conform;
use super::read::find;
use super::request::ApiRequest;
use super::shape::respond;
use crate::body::{RequestBody, json_only, parse_json, parse_yaml};
use crate::object;
use crate::patch::{self, ApplyOptions, first_apply, patched};
use crate::response::Body;
use crate::store::State;
use crate::write::{self, Part, Writer, check_name, check_namespace};

pub(super) async fn patch(request: &ApiRequest<'_>, part: Part, body: RequestBody) -> Result<Response<Body>, Status> {
    let patch_type = patch_type(request)?;
    let bytes = body.bytes().await?;
    if patch_type == BodyType::ApplyYaml {
        return apply(request, part, parse_yaml(&bytes)?);
    }
    let patch = parse_json(&bytes)?;
    let options = request.write_options()?;
    let manager = request.manager()?;
    let written = request.api.store.write(|state| {
        let found = Arc::clone(find(state, request)?);
        let mut object = patched(patch_type, &found, &patch)?;
        check_name(&object, object::name(&found))?;
        check_namespace(&object, object::namespace(&found))?;
        check_uid(request, &object, &found)?;
        conform(request, &mut object)?;
        write::update(state, request.kind, request.writer(&manager), &found, object, part, options.dry_run)
    })?;
    respond(request, StatusCode::OK, &written)
}

/// The type of the patch. CBOR is refused.
pub(super) fn patch_type(request: &ApiRequest<'_>) -> Result<BodyType, Status> {
    let content_type = request.header(header::CONTENT_TYPE);
    match BodyType::of_patch(content_type).map_err(Status::unsupported_media_type)? {
        BodyType::ApplyCbor => Err(json_only()),
        known => Ok(known),
    }
}

fn apply(request: &ApiRequest<'_>, part: Part, mut config: Value) -> Result<Response<Body>, Status> {
    let options = request.write_options()?;
    if options.field_manager.is_empty() {
        let kind = GroupKind { group: "meta.k8s.io", kind: "PatchOptions" };
        let missing = FieldError::required("fieldManager", "is required for apply patch");
        return Err(Status::invalid(kind, "", &[missing]));
    }
    let (kind, name) = (request.kind, request.name());
    conform(request, &mut config)?;
    check_config(&config, name)?;
    object::metadata(&mut config).insert("name".to_owned(), name.into());
    object::drop_nulls(&mut config);
    let subresource = if part == Part::Status { "status" } else { "" };
    let applied = ApplyOptions { manager: &options.field_manager, force: options.force, subresource };
    let namespace = request.namespace().unwrap_or_default();
    let by = Writer { user: Some(request.user), manager: None };
    let write = |state: &mut State| {
        let Some(found) = state.get(kind, namespace, name).map(Arc::clone) else {
            if part == Part::Status {
                return Err(Status::not_found(kind.group_resource(), name));
            }
            let object = first_apply(kind, applied, &config);
            let created = write::create(state, kind, namespace, object, by, options.dry_run)?;
            return Ok((StatusCode::CREATED, created));
        };
        let object = patch::apply(kind, applied, &found, &config)?;
        let written = write::update(state, kind, by, &found, object, part, options.dry_run)?;
        Ok((StatusCode::OK, written))
    };
    let (code, object) = request.api.store.write(write)?;
    respond(request, code, &object)
}

/// A patch cannot change the uid (`ValidateObjectMetaUpdate` in apimachinery).
fn check_uid(request: &ApiRequest<'_>, object: &Value, found: &Value) -> Result<(), Status> {
    let uid = object::uid(object);
    if uid.is_empty() || uid == object::uid(found) {
        return Ok(());
    }
    let error = FieldError::invalid("metadata.uid", uid, "field is immutable");
    Err(Status::invalid(request.kind.group_kind(), request.name(), &[error]))
}

fn check_config(config: &Value, name: &str) -> Result<(), Status> {
    if config["apiVersion"].is_null() || config["kind"].is_null() {
        return Err(Status::bad_request("invalid object type: apiVersion and kind are required in an apply patch"));
    }
    if config["metadata"].get("managedFields").is_some_and(|fields| !fields.is_null()) {
        return Err(Status::bad_request("metadata.managedFields must be nil"));
    }
    if object::name(config).is_empty() { Ok(()) } else { check_name(config, name) }
}

//! Replacing stored objects.

use std::sync::Arc;

use kube_wire::Status;
use serde_json::Value;

use super::metadata::tidy;
use super::validate;
use super::writer::Writer;
use crate::auth::rbac::check_grant;
use crate::kinds::Kind;
use crate::object;
use crate::patch::record;
use crate::store::State;

/// The part of an object that a write replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// All except the status, if the kind has the subresource `status`.
    Main,
    /// Only the status.
    Status,
}

/// The fields of `metadata` that only the server sets.
const SERVER_FIELDS: [&str; 6] =
    ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "resourceVersion"];

/// Replaces `found`, which is stored under the same name. If nothing changes, the resource version stays. If the last
/// finalizer of a terminating object goes, the object is removed.
pub(crate) fn update(
    state: &mut State,
    kind: &'static Kind,
    by: Writer<'_>,
    found: &Arc<Value>,
    mut object: Value,
    part: Part,
    dry_run: bool,
) -> Result<Arc<Value>, Status> {
    check_preconditions(kind, found, &object)?;
    if part == Part::Status {
        let status = object["status"].take();
        object = Value::clone(found);
        set(&mut object, "status", status);
    } else if kind.has_status() {
        set(&mut object, "status", found["status"].clone());
    }
    keep_server_fields(found, &mut object);
    object["apiVersion"] = kind.api_version().into();
    object["kind"] = kind.kind.into();
    if part == Part::Main {
        crate::defaults::apply(kind, &mut object);
        crate::defaults::on_update(kind, found, &mut object);
        validate::object(kind, &object)?;
        validate::change(kind, found, &object)?;
        if let Some(user) =
            by.user.filter(|_| object["rules"] != found["rules"] || object["subjects"] != found["subjects"])
        {
            check_grant(state, user, kind, &object)?;
        }
        if kind.has_status() && object["spec"] != found["spec"] {
            let generation = found["metadata"]["generation"].as_i64().unwrap_or(0) + 1;
            object::metadata(&mut object).insert("generation".to_owned(), generation.into());
        }
    }
    if by.manager.is_some() && object::items(&object["metadata"]["managedFields"]).is_empty() {
        set(object::metadata_value(&mut object), "managedFields", found["metadata"]["managedFields"].clone());
    }
    if object == **found {
        return Ok(Arc::clone(found));
    }
    if let Some(manager) = by.manager {
        let subresource = if part == Part::Status { "status" } else { "" };
        record(kind, manager, subresource, Some(found), &mut object);
    }
    if dry_run {
        return Ok(Arc::new(object));
    }
    let written = state.put(kind, object);
    let is_held = object::has_finalizers(&written)
        || written["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or(0) > 0
        || kind.is_namespace() && !object::items(&written["spec"]["finalizers"]).is_empty();
    let is_released = object::is_deleted(&written) && !is_held;
    if is_released {
        state.remove(kind, object::namespace(&written), object::name(&written));
    }
    Ok(written)
}

/// Checks the uid and the resource version in the new object against the stored one.
fn check_preconditions(kind: &Kind, found: &Value, object: &Value) -> Result<(), Status> {
    let name = object::name(found);
    let (requested, live) = (&object["metadata"], &found["metadata"]);
    if let Some(uid) = requested["uid"].as_str().filter(|uid| !uid.is_empty() && live["uid"] != *uid) {
        let why =
            format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {}", object::uid(found));
        return Err(Status::conflict(kind.group_resource(), name, &why));
    }
    let version = requested["resourceVersion"].as_str().filter(|version| !version.is_empty());
    if version.is_some_and(|version| live["resourceVersion"] != *version) {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        return Err(Status::conflict(kind.group_resource(), name, why));
    }
    Ok(())
}

fn keep_server_fields(found: &Value, object: &mut Value) {
    let metadata = object::metadata(object);
    for field in SERVER_FIELDS {
        match found["metadata"].get(field) {
            Some(value) => metadata.insert(field.to_owned(), value.clone()),
            None => metadata.remove(field),
        };
    }
    metadata.insert("name".to_owned(), found["metadata"]["name"].clone());
    if let Some(namespace) = found["metadata"].get("namespace") {
        metadata.insert("namespace".to_owned(), namespace.clone());
    }
    tidy(metadata);
}

/// Sets a field, or removes it if the value is null.
fn set(object: &mut Value, field: &str, value: Value) {
    if let Some(fields) = object.as_object_mut() {
        if value.is_null() {
            fields.remove(field)
        } else {
            fields.insert(field.to_owned(), value)
        };
    }
}

//! New objects.

use std::borrow::Cow;
use std::sync::Arc;

use kube_wire::Status;
use kube_wire::status::{Cause, TryAgain};
use serde_json::Value;

use super::identity::check_namespace;
use super::metadata::tidy;
use super::validate;
use super::writer::Writer;
use crate::auth::rbac::check_grant;
use crate::kinds::{self, Kind};
use crate::object;
use crate::patch::record;
use crate::store::State;

/// The length of the suffix that apiserver appends to `generateName`.
const SUFFIX_LENGTH: usize = 5;
/// The number of suffixes that it tries (`maxNameGenerationCreateAttempts` in apiserver's registry).
const ATTEMPTS: usize = 8;

/// Stores a new object.
pub(crate) fn create(
    state: &mut State,
    kind: &'static Kind,
    namespace: &str,
    mut object: Value,
    by: Writer<'_>,
    dry_run: bool,
) -> Result<Arc<Value>, Status> {
    name(state, kind, namespace, &mut object)?;
    let name = object::name(&object).to_owned();
    validate::name(kind, &name)?;
    if kind.namespaced {
        check_lifecycle(state, kind, namespace, &name)?;
    }
    if let Some(found) = state.get(kind, namespace, &name) {
        let mut status = Status::already_exists(kind.group_resource(), &name);
        if object::is_deleted(found) {
            status.message = format!("object is being deleted: {}", status.message);
        }
        return Err(status);
    }
    if object["metadata"]["resourceVersion"].as_str().is_some_and(|version| !version.is_empty()) {
        return Err(Status::bad_request("resourceVersion should not be set on objects to be created"));
    }
    fill(kind, namespace, &mut object);
    crate::defaults::apply(kind, &mut object);
    if let Some(manager) = by.manager {
        object::metadata(&mut object).remove("managedFields");
        record(kind, manager, "", None, &mut object);
    }
    crate::defaults::on_create(state, kind, &mut object)?;
    validate::object(kind, &object)?;
    if let Some(user) = by.user {
        check_grant(state, user, kind, &object)?;
    }
    Ok(if dry_run { Arc::new(object) } else { state.put(kind, object) })
}

fn name(state: &State, kind: &'static Kind, namespace: &str, object: &mut Value) -> Result<(), Status> {
    check_namespace(object, namespace)?;
    if !object::name(object).is_empty() {
        return Ok(());
    }
    let Some(prefix) = object["metadata"]["generateName"].as_str().filter(|prefix| !prefix.is_empty()) else {
        return Ok(());
    };
    let unused = (0..ATTEMPTS)
        .map(|_| format!("{prefix}{}", object::suffix(SUFFIX_LENGTH)))
        .find(|name| state.get(kind, namespace, name).is_none());
    let exhausted = TryAgain::ServerTimeout { resource: kind.group_resource(), operation: "POST" };
    let name = unused.ok_or_else(|| exhausted.after(1))?;
    object::metadata(object).insert("name".to_owned(), name.into());
    Ok(())
}

/// Refuses objects in a namespace that does not exist or is terminating (the admission plugin `NamespaceLifecycle`).
fn check_lifecycle(state: &State, kind: &Kind, namespace: &str, name: &str) -> Result<(), Status> {
    let namespaces = kinds::of("", "namespaces");
    let found = state.get(namespaces, "", namespace);
    let found = found.ok_or_else(|| Status::not_found(namespaces.group_resource(), namespace))?;
    if !object::is_deleted(found) {
        return Ok(());
    }
    let sentence = format!("unable to create new content in namespace {namespace} because it is being terminated");
    let mut status = Status::forbidden_because(kind.group_resource(), name, &sentence);
    status.details.get_or_insert_default().causes.push(Cause {
        cause_type: Cow::Borrowed("NamespaceTerminating"),
        message: format!("namespace {namespace} is being terminated"),
        field: "metadata.namespace".to_owned(),
    });
    Err(status)
}

/// Sets the fields of a new object that the server owns.
fn fill(kind: &Kind, namespace: &str, object: &mut Value) {
    object["apiVersion"] = kind.api_version().into();
    object["kind"] = kind.kind.into();
    if kind.has_status()
        && let Some(fields) = object.as_object_mut()
    {
        fields.remove("status");
    }
    let metadata = object::metadata(object);
    for field in ["deletionTimestamp", "deletionGracePeriodSeconds", "generation", "resourceVersion"] {
        metadata.remove(field);
    }
    if kind.namespaced {
        metadata.insert("namespace".to_owned(), namespace.into());
    } else {
        metadata.remove("namespace");
    }
    metadata.insert("uid".to_owned(), object::new_uid().into());
    metadata.insert("creationTimestamp".to_owned(), object::now().into());
    let has_generation = kind.resource == "networkpolicies"
        || kind.has_status()
            && !matches!(
                kind.resource,
                "namespaces" | "nodes" | "persistentvolumeclaims" | "persistentvolumes" | "resourcequotas" | "services"
            );
    if has_generation {
        metadata.insert("generation".to_owned(), 1.into());
    }
    tidy(metadata);
}

//! New objects.

use std::borrow::Cow;
use std::sync::Arc;

use http::{HeaderValue, Response, StatusCode, header};
use kube_wire::query::WriteOptions;
use kube_wire::status::{Cause, TryAgain};
use kube_wire::{ResourceRequest, Status};
use serde_json::Value;

use super::commit::{Writer, tidy};
use super::{scope, validate};
use crate::access::rbac::check_grant;
use crate::answer::Body;
use crate::kinds::{self, Kind};
use crate::object;
use crate::patch::note;
use crate::protobuf;
use crate::serve::{Call, Sent};
use crate::store::State;

/// What apiserver appends to `generateName`, and how often it tries.
const SUFFIX: usize = 5;
const ATTEMPTS: usize = 8;

/// What is said of a namespace that is not that of the path.
pub(crate) const ELSEWHERE: &str =
    "the namespace of the provided object does not match the namespace sent on the request";

// === impl Call ===

impl Call<'_> {
    pub(super) async fn create(
        &self,
        kind: &'static Kind,
        request: &ResourceRequest<'_>,
        sent: Sent,
    ) -> Result<Response<Body>, Status> {
        let options = self.write_options()?;
        let manager = self.manager()?;
        let mut object = sent.object(self.header(header::CONTENT_TYPE)).await?;
        check_type(kind, &object)?;
        self.conform(kind, &mut object)?;
        let namespace = scope(kind, request).unwrap_or_default();
        let write = |state: &mut State| create(state, kind, namespace, object, self.writer(&manager), options.dry_run);
        let created = self.api.store.write(write)?;
        let mut response = self.show(StatusCode::CREATED, kind, &created)?;
        if let Some(warning) = idle(kind) {
            response.headers_mut().insert(header::WARNING, warning);
        }
        Ok(response)
    }

    /// Drops fields that the kind does not have, or refuses them if the client is strict.
    pub(super) fn conform(&self, kind: &Kind, object: &mut Value) -> Result<(), Status> {
        let unknown = protobuf::conform(&kind.api_version(), kind.kind, object)?;
        if unknown.is_empty() || self.write_options()?.field_validation != "Strict" {
            return Ok(());
        }
        let unknown: Vec<_> = unknown.iter().map(|field| format!("unknown field {field:?}")).collect();
        let message = format!(
            "{} in version {:?} cannot be handled as a {}: strict decoding error: {}",
            kind.kind,
            kind.version,
            kind.kind,
            unknown.join(", ")
        );
        Err(Status::bad_request(message))
    }

    /// As whom a plain write is remembered: what the client says, or the program that it is.
    pub(super) fn manager(&self) -> Result<String, Status> {
        let stated = self.write_options()?.field_manager;
        let agent = self.header(header::USER_AGENT).unwrap_or_default();
        let stated = if stated.is_empty() { agent.split('/').next().unwrap_or_default() } else { &stated };
        Ok(stated.to_owned())
    }

    /// The caller, whose fields are remembered as the manager's.
    pub(super) fn writer<'w>(&'w self, manager: &'w str) -> Writer<'w> {
        Writer { user: Some(&self.user), manager: Some(manager) }
    }

    pub(super) fn write_options(&self) -> Result<WriteOptions<'_>, Status> {
        WriteOptions::parse(self.info.query()).map_err(|error| Status::bad_request(error.to_string()))
    }
}

/// Stores a new object.
pub(crate) fn create(
    state: &mut State,
    kind: &'static Kind,
    namespace: &str,
    mut object: Value,
    by: Writer<'_>,
    dry_run: bool,
) -> Result<Arc<Value>, Status> {
    validate::types(&object)?;
    name(state, kind, namespace, &mut object)?;
    let name = object::name(&object).to_owned();
    validate::name(kind, &name)?;
    if kind.namespaced {
        check_namespace(state, kind, namespace, &name)?;
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
        note(kind, manager, "", None, &mut object);
    }
    crate::defaults::born(state, kind, &mut object)?;
    validate::object(kind, &object)?;
    if let Some(user) = by.user {
        check_grant(state, user, kind, &object)?;
    }
    Ok(if dry_run { Arc::new(object) } else { state.put(kind, object) })
}

/// A warning (RFC 7234 section 5.5, which Kubernetes keeps up) for kinds that are stored and that nothing acts upon.
fn idle(kind: &Kind) -> Option<HeaderValue> {
    let is_idle = matches!(
        kind.resource,
        "cronjobs"
            | "horizontalpodautoscalers"
            | "ingresses"
            | "limitranges"
            | "networkpolicies"
            | "persistentvolumeclaims"
            | "persistentvolumes"
            | "resourcequotas"
    );
    let text = format!("299 - \"dev-apiserver stores a {} and does nothing with it\"", kind.kind);
    is_idle.then(|| HeaderValue::from_str(&text).ok()).flatten()
}

/// The kind in the body is that of the path.
pub(super) fn check_type(kind: &Kind, object: &Value) -> Result<(), Status> {
    let (version, name) = (object["apiVersion"].as_str(), object["kind"].as_str());
    let is_right =
        version.is_none_or(|version| version == kind.api_version()) && name.is_none_or(|name| name == kind.kind);
    if is_right {
        return Ok(());
    }
    Err(Status::bad_request(format!(
        "the object provided is unrecognized (must be of type {}): {} {}",
        kind.kind,
        version.unwrap_or_default(),
        name.unwrap_or_default(),
    )))
}

fn name(state: &State, kind: &'static Kind, namespace: &str, object: &mut Value) -> Result<(), Status> {
    let stated = object["metadata"]["namespace"].as_str().unwrap_or_default();
    if !stated.is_empty() && stated != namespace {
        return Err(Status::bad_request(ELSEWHERE));
    }
    if !object::name(object).is_empty() {
        return Ok(());
    }
    let Some(prefix) = object["metadata"]["generateName"].as_str().filter(|prefix| !prefix.is_empty()) else {
        return Ok(());
    };
    let free = (0..ATTEMPTS)
        .map(|_| format!("{prefix}{}", object::suffix(SUFFIX)))
        .find(|name| state.get(kind, namespace, name).is_none());
    let busy = TryAgain::ServerTimeout { resource: kind.group_resource(), operation: "POST" };
    let name = free.ok_or_else(|| busy.after(1))?;
    object::metadata(object).insert("name".to_owned(), name.into());
    Ok(())
}

/// Nothing is born in a namespace that is not there or is being deleted (the `NamespaceLifecycle` admission).
fn check_namespace(state: &State, kind: &Kind, namespace: &str, name: &str) -> Result<(), Status> {
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

/// What the server says of a new object.
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

//! Whether the object of a request is the one that the path of the request names.

use kube_wire::Status;
use serde_json::Value;

use crate::object;

/// Checks that `apiVersion` and `kind`, if the object has them, are these.
pub(crate) fn check_type(api_version: &str, kind: &str, object: &Value) -> Result<(), Status> {
    let (stated_version, stated_kind) = (object["apiVersion"].as_str(), object["kind"].as_str());
    if stated_version.is_none_or(|stated| stated == api_version) && stated_kind.is_none_or(|stated| stated == kind) {
        return Ok(());
    }
    Err(Status::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind}): {} {}",
        stated_version.unwrap_or_default(),
        stated_kind.unwrap_or_default(),
    )))
}

/// Checks that the object has the name in the path.
pub(crate) fn check_name(object: &Value, name: &str) -> Result<(), Status> {
    let stated = object::name(object);
    if stated == name {
        return Ok(());
    }
    Err(Status::bad_request(format!("the name of the object ({stated}) does not match the name on the URL ({name})")))
}

/// Checks that the namespace of the object, if it has one, is that of the path
/// (`EnsureObjectNamespaceMatchesRequestNamespace` in apiserver's `registry/rest/meta.go`).
pub(crate) fn check_namespace(object: &Value, namespace: &str) -> Result<(), Status> {
    let stated = object::namespace(object);
    if stated.is_empty() || stated == namespace {
        return Ok(());
    }
    let message = "the namespace of the provided object does not match the namespace sent on the request";
    Err(Status::bad_request(message))
}

//! Whether the object of a request is the one that the path of the request names.

use kube_wire::Status;
use serde_json::Value;

use crate::kinds;
use crate::object;

/// Checks that `apiVersion` and `kind`, if the object has them, are these (`transformDecodeError` in apiserver's
/// `handlers/rest.go`).
pub(crate) fn check_type(group: &str, version: &str, kind: &str, object: &Value) -> Result<(), Status> {
    let api_version = kinds::api_version(group, version);
    let stated_version = object["apiVersion"].as_str().unwrap_or(&api_version);
    let stated_kind = object["kind"].as_str().unwrap_or(kind);
    if (stated_version, stated_kind) == (api_version.as_str(), kind) {
        return Ok(());
    }
    let is_known = kinds::all().iter().any(|one| one.api_version() == stated_version && one.kind == stated_kind);
    let short = stated_version.rsplit('/').next().unwrap_or_default();
    let cause = if is_known {
        let internal = if group.is_empty() { "core" } else { group.split('.').next().unwrap_or_default() };
        format!("converting ({short}.{stated_kind}) to ({internal}.{kind}): unknown conversion")
    } else {
        format!("no kind {stated_kind:?} is registered for version {stated_version:?}")
    };
    let message = format!("{stated_kind} in version {short:?} cannot be handled as a {kind}: {cause}");
    Err(Status::bad_request(message))
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn another_kind_is_refused() {
        let message = |object: &Value| check_type("", "v1", "ConfigMap", object).map_err(|status| status.message);
        assert_eq!(message(&json!({"kind": "ConfigMap"})), Ok(()));
        let refused = "Secret in version \"v1\" cannot be handled as a ConfigMap: converting (v1.Secret) to \
                       (core.ConfigMap): unknown conversion";
        assert_eq!(message(&json!({"apiVersion": "v1", "kind": "Secret"})), Err(refused.to_owned()));
        let unknown = message(&json!({"apiVersion": "a.b/v1", "kind": "ConfigMap"})).unwrap_err();
        assert!(unknown.ends_with("no kind \"ConfigMap\" is registered for version \"a.b/v1\""), "{unknown}");
    }
}

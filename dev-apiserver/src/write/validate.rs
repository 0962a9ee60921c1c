//! Validation of objects: names, labels, and the fields that the controllers of this server need. kube-apiserver validates
//! much more.

mod rbac;

use kube_wire::Status;
use kube_wire::name::{dns_label, dns_subdomain, path_segment};
use kube_wire::status::FieldError;
use serde_json::Value;

use crate::kinds::Kind;
use crate::object;

/// Checks the name of an object of this kind.
pub(super) fn name(kind: &Kind, name: &str) -> Result<(), Status> {
    if name.is_empty() {
        let errors = [FieldError::required("metadata.name", "name or generateName is required")];
        return Err(Status::invalid(kind.group_kind(), name, &errors));
    }
    let checked = match (kind.group, kind.resource) {
        ("rbac.authorization.k8s.io", _) => path_segment(name),
        ("", "namespaces" | "services") => dns_label(name),
        _ => dns_subdomain(name),
    };
    checked.map_err(|why| {
        let errors = [FieldError::invalid("metadata.name", name, why.to_string())];
        Status::invalid(kind.group_kind(), name, &errors)
    })
}

/// Checks an object.
pub(super) fn object(kind: &Kind, object: &Value) -> Result<(), Status> {
    let mut errors = Vec::new();
    metadata(&object["metadata"], &mut errors);
    match (kind.group, kind.resource) {
        ("", "pods") => pod_spec(&object["spec"], "spec", &mut errors),
        ("apps", "deployments" | "replicasets" | "daemonsets" | "statefulsets") => {
            workload(&object["spec"], &mut errors);
        }
        ("", "events") => event(object, &mut errors),
        ("batch", "jobs") => pod_spec(&object["spec"]["template"]["spec"], "spec.template.spec", &mut errors),
        ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings") => {
            rbac::binding(kind, object, &mut errors);
        }
        ("rbac.authorization.k8s.io", "roles" | "clusterroles") => {
            rbac::role(kind, object, &mut errors);
        }
        _ => {}
    }
    refuse(kind, object, &errors)
}

/// The text of `ValidatePodUpdate`, without the difference that follows it there.
const POD_FIELDS: &str = "pod updates may not change fields other than `spec.containers[*].image`,\
                          `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only \
                          additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set \
                          to 1 if it was previously negative)";

/// Checks that no immutable field changes.
pub(super) fn change(kind: &Kind, found: &Value, object: &Value) -> Result<(), Status> {
    let mut errors = Vec::new();
    let fields: &[&str] = match (kind.group, kind.resource) {
        ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings") => &["/roleRef"],
        ("apps", "deployments" | "replicasets" | "daemonsets" | "statefulsets") => &["/spec/selector"],
        ("batch", "jobs") => &["/spec/template", "/spec/selector"],
        ("", "services") if found["spec"]["clusterIP"].is_string() => &["/spec/clusterIP"],
        ("", "secrets") => &["/type"],
        _ => &[],
    };
    if kind.is_pod() && immutable(&found["spec"]) != immutable(&object["spec"]) {
        errors.push(FieldError::forbidden("spec", POD_FIELDS));
    }
    for field in fields {
        let (before, after) = (found.pointer(field), object.pointer(field));
        if before != after {
            let path = field.trim_start_matches('/').replace('/', ".");
            let shown = after.map(Value::to_string).unwrap_or_default();
            errors.push(FieldError::invalid(path, shown, "field is immutable"));
        }
    }
    if found["immutable"] == true && (found["data"] != object["data"] || object["immutable"] != true) {
        errors.push(FieldError::forbidden("data", "field is immutable when `immutable` is set"));
    }
    refuse(kind, object, &errors)
}

/// The immutable part of a pod's spec (`ValidatePodUpdate`).
fn immutable(spec: &Value) -> Value {
    let mut spec = spec.clone();
    for field in ["activeDeadlineSeconds", "terminationGracePeriodSeconds", "tolerations", "schedulingGates"] {
        object::map_of(&mut spec).remove(field);
    }
    for field in ["containers", "initContainers"] {
        for container in spec[field].as_array_mut().into_iter().flatten() {
            object::map_of(container).remove("image");
        }
    }
    object::drop_nulls(&mut spec);
    spec
}

/// Checks that an event is in the namespace of its object (`legacyValidateEvent`).
fn event(object: &Value, errors: &mut Vec<FieldError>) {
    let about = object["involvedObject"]["namespace"].as_str().unwrap_or_default();
    let expected = if about.is_empty() { "default" } else { about };
    if object::namespace(object) != expected && !(about.is_empty() && object::namespace(object) == "kube-system") {
        errors.push(FieldError::invalid("involvedObject.namespace", about, "does not match event.namespace"));
    }
}

fn refuse(kind: &Kind, object: &Value, errors: &[FieldError]) -> Result<(), Status> {
    if errors.is_empty() {
        return Ok(());
    }
    Err(Status::invalid(kind.group_kind(), object::name(object), errors))
}

fn metadata(metadata: &Value, errors: &mut Vec<FieldError>) {
    for (key, value) in metadata["labels"].as_object().into_iter().flatten() {
        if let Err(why) = kube_wire::name::label_key(key) {
            errors.push(FieldError::invalid("metadata.labels", key, why.to_string()));
        }
        let value = value.as_str().unwrap_or_default();
        if let Err(why) = kube_wire::name::label_value(value) {
            errors.push(FieldError::invalid("metadata.labels", value, why.to_string()));
        }
    }
}

fn pod_spec(spec: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let containers = object::items(&spec["containers"]);
    if containers.is_empty() {
        errors.push(FieldError::required(format!("{at}.containers"), ""));
    }
    for (index, container) in containers.iter().enumerate() {
        for field in ["name", "image"] {
            if container[field].as_str().is_none_or(str::is_empty) {
                errors.push(FieldError::required(format!("{at}.containers[{index}].{field}"), ""));
            }
        }
    }
}

fn workload(spec: &Value, errors: &mut Vec<FieldError>) {
    pod_spec(&spec["template"]["spec"], "spec.template.spec", errors);
    let Some(selector) = object::label_selector(&spec["selector"]) else {
        errors.push(FieldError::required("spec.selector", ""));
        return;
    };
    if selector.is_empty() {
        errors.push(FieldError::invalid("spec.selector", "{}", "empty selector is invalid for deployment"));
    }
    if !object::is_selected(&selector, &spec["template"]) {
        let labels = spec["template"]["metadata"]["labels"].to_string();
        let detail = "`selector` does not match template `labels`";
        errors.push(FieldError::invalid("spec.template.metadata.labels", labels, detail));
    }
}

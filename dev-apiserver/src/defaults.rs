//! Default values, and fields that the server sets.
//!
//! Clients compare the stored object with what they sent, and controllers rely on defaults. Only the kinds that this
//! server acts on have defaults.

mod pod;
mod service;
mod workload;

use kube_wire::Status;
use serde_json::{Value, json};

use crate::kinds::Kind;
use crate::object;
use crate::store::State;

/// Sets defaults, on every write.
pub(crate) fn apply(kind: &Kind, object: &mut Value) {
    match (kind.group, kind.resource) {
        ("", "pods") => {
            pod::spec(&mut object["spec"]);
            // Not set in pod templates.
            object::default(&mut object["spec"], "enableServiceLinks", true);
        }
        ("", "services") => service::apply(&mut object["spec"]),
        ("", "secrets") => secret(object),
        ("", "namespaces") => namespace(object),
        ("", "persistentvolumeclaims") => object::default(&mut object["spec"], "volumeMode", "Filesystem"),
        ("networking.k8s.io", "networkpolicies") => network_policy(&mut object["spec"]),
        ("apps", _) => workload::apply(kind.resource, &mut object["spec"]),
        ("batch", "jobs") => workload::job(&mut object["spec"]),
        ("batch", "cronjobs") => workload::cron_job(&mut object["spec"]),
        ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings") => binding(object),
        _ => {}
    }
    object::drop_nulls(object);
}

/// Sets the fields of a new object that depend on other objects, and its initial status.
pub(crate) fn on_create(state: &State, kind: &Kind, object: &mut Value) -> Result<(), Status> {
    match (kind.group, kind.resource) {
        ("", "pods") => pod::on_create(state, object)?,
        ("", "services") => service::on_create(state, object)?,
        ("", "namespaces") => {
            object["status"] = json!({"phase": "Active"});
            object::map(object, "spec").entry("finalizers").or_insert_with(|| json!(["kubernetes"]));
        }
        ("", "persistentvolumeclaims") => object["status"] = json!({"phase": "Pending"}),
        ("networking.k8s.io", "ingresses") => object["status"] = json!({"loadBalancer": {}}),
        ("batch", "jobs") => workload::job_on_create(object),
        ("apps", "deployments" | "statefulsets" | "daemonsets" | "replicasets") | ("batch", "cronjobs") => {
            object["status"] = json!({});
        }
        _ => {}
    }
    object::drop_nulls(object);
    Ok(())
}

/// Keeps fields that the server has allocated and that an update leaves out.
pub(crate) fn on_update(kind: &Kind, found: &Value, object: &mut Value) {
    let fields: &[&str] = match (kind.group, kind.resource) {
        ("", "pods") => &["nodeName", "serviceAccountName", "serviceAccount"],
        ("", "services") => {
            if object["spec"]["type"] == found["spec"]["type"] {
                service::keep_node_ports(found, object);
            }
            &["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"]
        }
        ("batch", "jobs") => &["selector"],
        ("", "namespaces") => &["finalizers"],
        _ => &[],
    };
    for field in fields {
        let value = &found["spec"][*field];
        let spec = &mut object["spec"];
        if spec.is_object() && spec[*field].is_null() && !value.is_null() {
            spec[*field] = value.clone();
        }
    }
}

fn secret(object: &mut Value) {
    object::default(object, "type", "Opaque");
    let texts = object.as_object_mut().and_then(|fields| fields.remove("stringData"));
    let Some(Value::Object(texts)) = texts else { return };
    let data = object::map(object, "data");
    for (key, value) in texts {
        use base64::Engine as _;
        let encoded = base64::engine::general_purpose::STANDARD.encode(value.as_str().unwrap_or_default());
        data.insert(key, encoded.into());
    }
}

fn namespace(object: &mut Value) {
    let name = object::name(object).to_owned();
    let labels = object::metadata(object).entry("labels").or_insert_with(|| json!({}));
    if let Some(labels) = labels.as_object_mut() {
        labels.insert("kubernetes.io/metadata.name".to_owned(), name.into());
    }
}

fn network_policy(spec: &mut Value) {
    let types = if spec["egress"].is_array() { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
    object::default(spec, "policyTypes", types);
}

fn binding(object: &mut Value) {
    const GROUP: &str = "rbac.authorization.k8s.io";
    object::default(&mut object["roleRef"], "apiGroup", GROUP);
    for subject in object["subjects"].as_array_mut().into_iter().flatten() {
        if subject["kind"] != "ServiceAccount" {
            object::default(subject, "apiGroup", GROUP);
        }
    }
}

//! Objects where objects are due, and lists where lists are: after this, defaults and controllers may reach into what a
//! client sent. Built-in kinds use these field names in one sense only; maps with keys of a client's choice are passed
//! over.

use kube_wire::Status;
use serde_json::Value;

/// Maps whose keys are the client's.
const FREE: [&str; 12] = [
    "annotations",
    "binaryData",
    "data",
    "extra",
    "fieldsV1",
    "labels",
    "limits",
    "matchLabels",
    "nodeSelector",
    "parameters",
    "requests",
    "stringData",
];

const OBJECTS: [&str; 33] = [
    "annotations",
    "configMap",
    "data",
    "emptyDir",
    "fieldsV1",
    "httpGet",
    "jobTemplate",
    "labels",
    "livenessProbe",
    "matchLabels",
    "metadata",
    "nodeSelector",
    "persistentVolumeClaim",
    "podSelector",
    "preconditions",
    "projected",
    "readinessProbe",
    "roleRef",
    "rollingUpdate",
    "scaleTargetRef",
    "secret",
    "securityContext",
    "serviceAccountToken",
    "spec",
    "startupProbe",
    "strategy",
    "stringData",
    "target",
    "template",
    "valueFrom",
    "updateStrategy",
    "binaryData",
    "downwardAPI",
];

const LISTS: [&str; 16] = [
    "containerStatuses",
    "containers",
    "endpoints",
    "env",
    "ephemeralContainers",
    "imagePullSecrets",
    "initContainers",
    "managedFields",
    "matchExpressions",
    "ownerReferences",
    "ports",
    "subjects",
    "tolerations",
    "volumeMounts",
    "volumes",
    "subsets",
];

/// Refuses what would be a decoding error to kube-apiserver (400).
pub(crate) fn check(object: &Value) -> Result<(), Status> {
    if !object.is_object() {
        return Err(wrong("the body", "an object"));
    }
    // A condition's status is a text; an object's is not.
    if !matches!(object["status"], Value::Null | Value::Object(_)) {
        return Err(wrong("status", "an object"));
    }
    walk(object)
}

fn walk(value: &Value) -> Result<(), Status> {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
                let name = name.as_str();
                if OBJECTS.contains(&name) && !value.is_object() {
                    return Err(wrong(name, "an object"));
                }
                if LISTS.contains(&name) && !value.as_array().is_some_and(|items| items.iter().all(Value::is_object)) {
                    return Err(wrong(name, "a list of objects"));
                }
                if name == "finalizers" && !value.is_array() {
                    return Err(wrong(name, "a list"));
                }
                if !FREE.contains(&name) {
                    walk(value)?;
                }
            }
            Ok(())
        }
        Value::Array(items) => items.iter().try_for_each(walk),
        _ => Ok(()),
    }
}

fn wrong(field: &str, due: &str) -> Status {
    Status::bad_request(format!("the object cannot be read: {field} must be {due}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_text_is_no_object() {
        for wrong in [
            json!("x"),
            json!({"spec": "x"}),
            json!({"metadata": []}),
            json!({"spec": {"template": {"spec": {"containers": ["x"]}}}}),
            json!({"spec": {"strategy": {"rollingUpdate": 1}}}),
        ] {
            assert_eq!(check(&wrong).unwrap_err().code, 400, "{wrong}");
        }
    }

    #[test]
    fn keys_of_a_client_s_choice_are_free() {
        check(&json!({"data": {"spec": "x", "ports": "y"}, "metadata": {"labels": {"status": "z"}}})).unwrap();
        check(&json!({"spec": null, "metadata": {"creationTimestamp": null}})).unwrap();
    }
}

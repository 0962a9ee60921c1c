//! Pods and pod templates.

use kube_wire::Status;
use serde_json::{Value, json};

use crate::kinds;
use crate::object::{self, default};
use crate::store::State;

/// The time that a pod stays on a failed node, in seconds (the admission plugin `DefaultTolerationSeconds`).
const DEFAULT_TOLERATION_SECONDS: u32 = 300;

/// Sets the defaults of a pod's spec, or of that of a template.
pub(super) fn spec(spec: &mut Value) {
    if !spec.is_object() {
        return;
    }
    default(spec, "restartPolicy", "Always");
    default(spec, "dnsPolicy", "ClusterFirst");
    default(spec, "schedulerName", "default-scheduler");
    default(spec, "terminationGracePeriodSeconds", 30);
    default(spec, "securityContext", json!({}));
    if spec["serviceAccountName"].is_string() {
        let name = spec["serviceAccountName"].clone();
        default(spec, "serviceAccount", name);
    }
    for field in ["initContainers", "containers"] {
        for container in spec[field].as_array_mut().into_iter().flatten() {
            self::container(container);
        }
    }
    for volume in spec["volumes"].as_array_mut().into_iter().flatten() {
        for (source, field) in [("secret", "defaultMode"), ("configMap", "defaultMode"), ("projected", "defaultMode")] {
            if volume[source].is_object() {
                default(&mut volume[source], field, 420);
            }
        }
    }
}

fn container(container: &mut Value) {
    let image = container["image"].as_str().unwrap_or_default();
    let tag = image.rsplit('/').next().and_then(|last| last.split_once(':')).map(|(_, tag)| tag);
    let is_latest = !image.contains('@') && tag.is_none_or(|tag| tag == "latest");
    default(container, "imagePullPolicy", if is_latest { "Always" } else { "IfNotPresent" });
    default(container, "resources", json!({}));
    default(container, "terminationMessagePath", "/dev/termination-log");
    default(container, "terminationMessagePolicy", "File");
    for port in container["ports"].as_array_mut().into_iter().flatten() {
        default(port, "protocol", "TCP");
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if container[probe].is_object() {
            for (field, value) in
                [("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)]
            {
                default(&mut container[probe], field, value);
            }
            if container[probe]["httpGet"].is_object() {
                default(&mut container[probe]["httpGet"], "scheme", "HTTP");
                default(&mut container[probe]["httpGet"], "path", "/");
            }
        }
    }
}

/// Sets what admission plugins and the registry set in a new pod.
pub(super) fn on_create(state: &State, pod: &mut Value) -> Result<(), Status> {
    let namespace = object::namespace(pod).to_owned();
    let name = object::name(pod).to_owned();
    let is_owned = object::controller(pod).is_some();
    let spec = &mut pod["spec"];
    default(spec, "serviceAccountName", "default");
    let account = spec["serviceAccountName"].as_str().unwrap_or_default().to_owned();
    default(spec, "serviceAccount", account.as_str());
    let accounts = kinds::of("", "serviceaccounts");
    if state.get(accounts, &namespace, &account).is_none() && !is_owned {
        let sentence =
            format!("error looking up service account {namespace}/{account}: serviceaccount {account:?} not found");
        return Err(Status::forbidden_because(kinds::of("", "pods").group_resource(), &name, &sentence));
    }
    default(spec, "priority", 0);
    default(spec, "preemptionPolicy", "PreemptLowerPriority");
    if !spec["tolerations"].is_array() {
        spec["tolerations"] = json!([]);
    }
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let tolerations = spec["tolerations"].as_array_mut().into_iter().flatten();
        let mut known = tolerations.filter(|toleration| toleration["key"] == key || toleration["key"].is_null());
        if known.next().is_none()
            && let Some(tolerations) = spec["tolerations"].as_array_mut()
        {
            tolerations.push(json!({
                "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": DEFAULT_TOLERATION_SECONDS,
            }));
        }
    }
    if spec["automountServiceAccountToken"] != false {
        mount_token(spec);
    }
    pod["status"] = json!({"phase": "Pending", "qosClass": "BestEffort"});
    Ok(())
}

/// Adds the volume of the admission plugin `ServiceAccount`.
fn mount_token(spec: &mut Value) {
    const AT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
    let name = format!("kube-api-access-{}", object::suffix(5));
    let items = |name: &str| json!([{"key": name, "path": name}]);
    let volume = json!({"name": name, "projected": {"defaultMode": 420, "sources": [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": items("ca.crt")}},
        {"downwardAPI": {"items": [{"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}, "path": "namespace"}]}},
    ]}});
    let mut is_used = false;
    for field in ["initContainers", "containers"] {
        for container in spec[field].as_array_mut().into_iter().flatten() {
            if !container["volumeMounts"].is_array() {
                container["volumeMounts"] = json!([]);
            }
            let Some(mounts) = container["volumeMounts"].as_array_mut() else { continue };
            if mounts.iter().all(|mount| mount["mountPath"] != AT) {
                mounts.push(json!({"name": name, "mountPath": AT, "readOnly": true}));
                is_used = true;
            }
        }
    }
    if !is_used {
        return;
    }
    if !spec["volumes"].is_array() {
        spec["volumes"] = json!([]);
    }
    if let Some(volumes) = spec["volumes"].as_array_mut() {
        volumes.push(volume);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_idempotent() {
        let mut first = json!({"containers": [{"name": "c", "image": "nginx:1.27", "ports": [{"containerPort": 80}]}]});
        spec(&mut first);
        object::drop_nulls(&mut first);
        assert_eq!(first["containers"][0]["imagePullPolicy"], "IfNotPresent");
        assert_eq!(first["containers"][0]["ports"][0]["protocol"], "TCP");
        assert!(first.get("initContainers").is_none() && first.get("volumes").is_none());
        let mut second = first.clone();
        spec(&mut second);
        object::drop_nulls(&mut second);
        assert_eq!(first, second);
    }
}

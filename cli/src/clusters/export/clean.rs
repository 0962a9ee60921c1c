//! The part of an object that another host needs.

use rewrite::name::{LEFT_PREFIX, OVERLAY_PREFIX};
use serde_json::{Map, Value};
use virtual_cluster::namespaces::{FULL, IDENTITY};
use virtual_cluster::provisioner::{INTERNAL_LABEL, MIRROR_LABEL, PROTECTED_LABEL};

/// The type of a Secret with the token of a service account.
const TOKEN_SECRET: &str = "kubernetes.io/service-account-token";
/// The ConfigMap that the host creates in every namespace (`rootcacertpublisher` in kube-controller-manager).
const ROOT_CA: &str = "kube-root-ca.crt";
/// The volume of the token that the host adds to every pod (`serviceaccount` in plugin/pkg/admission).
const TOKEN_VOLUME: &str = "kube-api-access-";
/// The controllers of the host that write EndpointSlices.
const SLICE_MANAGER: &str = "endpointslice.kubernetes.io/managed-by";
/// The annotation of Endpoints that the host writes.
const ENDPOINTS_TRIGGER: &str = "endpoints.kubernetes.io/last-change-trigger-time";

/// Fields of `metadata` that only one host gives an object.
const OF_HOST: [&str; 10] = [
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
    "selfLink",
    // Their uids mean nothing on another host, whose garbage collector would delete the object.
    "ownerReferences",
    // Controllers add theirs again.
    "finalizers",
];

/// Annotations that bind an object to other objects of one host.
const BOUND: [&str; 7] = [
    "kubernetes.io/service-account.uid",
    "pv.kubernetes.io/bind-completed",
    "pv.kubernetes.io/bound-by-controller",
    "volume.beta.kubernetes.io/storage-provisioner",
    "volume.kubernetes.io/storage-provisioner",
    "volume.kubernetes.io/selected-node",
    "deployment.kubernetes.io/revision",
];

/// Why an object is not exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Skip {
    /// The host or the agent makes it again from other objects.
    Derived,
    /// It is being deleted, or it has finished.
    Ended,
    /// It is a Secret.
    Secret,
}

/// The object for an export. `with_secrets`: Secrets are exported.
pub(super) fn cleaned(mut object: Value, with_secrets: bool) -> Result<Value, Skip> {
    if let Some(skip) = skip(&object, with_secrets) {
        return Err(skip);
    }
    let kind = object["kind"].as_str().unwrap_or_default().to_owned();
    let in_group = |group: &str, object: &Value| {
        object["apiVersion"].as_str().is_some_and(|version| version.split('/').next() == Some(group))
    };
    let is_core = object["apiVersion"] == "v1";
    let is_batch = in_group("batch", &object);
    strip(&mut object);
    match kind.as_str() {
        "Pod" if is_core => object.pointer_mut("/spec").into_iter().for_each(pod),
        "Service" if is_core => object.pointer_mut("/spec").into_iter().for_each(service),
        "PersistentVolumeClaim" if is_core => remove_in(&mut object, "/spec", "volumeName"),
        "ServiceAccount" if is_core => remove(&mut object, "secrets"),
        // The host writes a new token.
        "Secret" if is_core && object["type"] == TOKEN_SECRET => remove(&mut object, "data"),
        "Job" if is_batch => job(&mut object),
        _ => {}
    }
    Ok(object)
}

/// A Namespace of the virtual cluster. `identity` is for its root namespace.
pub(super) fn namespace(mut object: Value, identity: Option<&str>) -> Value {
    strip(&mut object);
    remove(&mut object, "spec");
    remove_in(&mut object, "/metadata/annotations", FULL);
    if let Some(identity) = identity {
        object["metadata"]["annotations"][IDENTITY] = identity.into();
    }
    object
}

/// A shared object, with the overlay of this virtual cluster alone.
pub(super) fn shared(mut object: Value, cluster: &str) -> Value {
    strip(&mut object);
    let own = format!("{OVERLAY_PREFIX}{cluster}");
    if let Some(annotations) = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.retain(|key, _| *key == own || !(key.starts_with(OVERLAY_PREFIX) || key.starts_with(LEFT_PREFIX)));
    }
    object
}

fn skip(object: &Value, with_secrets: bool) -> Option<Skip> {
    let metadata = &object["metadata"];
    let (labels, annotations) = (&metadata["labels"], &metadata["annotations"]);
    let owners = metadata["ownerReferences"].as_array().into_iter().flatten();
    let is_controlled = owners.into_iter().any(|owner| owner["controller"] == true);
    let is_ours = [INTERNAL_LABEL, MIRROR_LABEL, PROTECTED_LABEL].iter().any(|label| !labels[*label].is_null());
    let kind = object["kind"].as_str().unwrap_or_default();
    let is_written = match kind {
        "ConfigMap" => metadata["name"] == ROOT_CA,
        "EndpointSlice" => labels[SLICE_MANAGER].as_str().is_some_and(|manager| manager.ends_with(".k8s.io")),
        "Endpoints" => !annotations[ENDPOINTS_TRIGGER].is_null(),
        _ => false,
    };
    let is_over = match kind {
        "Pod" => matches!(object["status"]["phase"].as_str(), Some("Succeeded" | "Failed")),
        "Job" => has_finished(object),
        _ => false,
    };
    if is_controlled || is_ours || is_written {
        Some(Skip::Derived)
    } else if !metadata["deletionTimestamp"].is_null() || is_over {
        Some(Skip::Ended)
    } else if kind == "Secret" && object["apiVersion"] == "v1" && !with_secrets && object["type"] != TOKEN_SECRET {
        Some(Skip::Secret)
    } else {
        None
    }
}

fn has_finished(job: &Value) -> bool {
    let mut conditions = job["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|it| it["status"] == "True" && (it["type"] == "Complete" || it["type"] == "Failed"))
}

fn strip(object: &mut Value) {
    remove(object, "status");
    let metadata = &mut object["metadata"];
    for key in OF_HOST {
        remove(metadata, key);
    }
    for key in BOUND {
        remove_in(metadata, "/annotations", key);
    }
    for key in ["annotations", "labels"] {
        if metadata[key].as_object().is_none_or(Map::is_empty) {
            remove(metadata, key);
        }
    }
}

fn remove(object: &mut Value, key: &str) {
    if let Some(members) = object.as_object_mut() {
        members.remove(key);
    }
}

/// Removes a key of the object at a JSON pointer, if there is one.
fn remove_in(object: &mut Value, pointer: &str, key: &str) {
    if let Some(inner) = object.pointer_mut(pointer) {
        remove(inner, key);
    }
}

/// A pod without a controller. The host assigns it to a node again, and gives it a new token.
fn pod(spec: &mut Value) {
    remove(spec, "nodeName");
    let is_token = |item: &Value| item["name"].as_str().is_some_and(|name| name.starts_with(TOKEN_VOLUME));
    if let Some(volumes) = spec.get_mut("volumes").and_then(Value::as_array_mut) {
        volumes.retain(|volume| !is_token(volume));
    }
    for containers in ["containers", "initContainers"] {
        for container in spec.get_mut(containers).and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(mounts) = container.get_mut("volumeMounts").and_then(Value::as_array_mut) {
                mounts.retain(|mount| !is_token(mount));
            }
        }
    }
    remove(spec, "ephemeralContainers");
}

/// Addresses are those of one host. `None` means a headless Service everywhere.
fn service(spec: &mut Value) {
    if spec["clusterIP"] != "None" {
        for key in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            remove(spec, key);
        }
    }
    remove(spec, "healthCheckNodePort");
}

/// The host generates the selector of a Job from its uid.
fn job(job: &mut Value) {
    if job["spec"]["manualSelector"] != true {
        remove_in(job, "/spec", "selector");
        for key in ["controller-uid", "batch.kubernetes.io/controller-uid"] {
            remove_in(job, "/spec/template/metadata/labels", key);
            remove_in(job, "/metadata/labels", key);
        }
    }
}

#[cfg(test)]
mod tests;

//! Pods of workloads: finding, creating and removing them.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::kinds::{self, Kind};
use crate::object;
use crate::store::State;
use crate::write::{Deletion, Writer, create, delete};

/// The objects of a kind whose controller is `owner`.
pub(super) fn owned(state: &State, kind: &'static Kind, owner: &Value) -> Vec<Arc<Value>> {
    let uid = object::uid(owner);
    let all = state.list(kind, Some(object::namespace(owner)));
    all.filter(|object| object::controller(object) == Some(uid)).cloned().collect()
}

/// The pods of `owner` that are neither finished nor terminating.
pub(super) fn active(state: &State, owner: &Value) -> Vec<Arc<Value>> {
    let mut pods = owned(state, kinds::of("", "pods"), owner);
    pods.retain(|pod| is_active(pod));
    pods
}

pub(super) fn is_active(pod: &Value) -> bool {
    !object::is_deleted(pod) && !matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"))
}

/// Whether its condition `Ready` is true.
pub(super) fn is_ready(pod: &Value) -> bool {
    let conditions = object::items(&pod["status"]["conditions"]);
    conditions.iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

/// The owner reference of an object whose controller is `owner`.
pub(super) fn owner_reference(owner: &Value) -> Value {
    json!({
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
    })
}

/// Creates a pod from the owner's template, after `edit` has changed it.
pub(super) fn create_pod(state: &mut State, owner: &Value, edit: impl FnOnce(&mut Value)) {
    let template = &owner["spec"]["template"];
    let mut pod = json!({
        "metadata": {
            "generateName": format!("{}-", object::name(owner)),
            "labels": template["metadata"]["labels"],
            "annotations": template["metadata"]["annotations"],
            "ownerReferences": [owner_reference(owner)],
        },
        "spec": template["spec"],
    });
    edit(&mut pod);
    object::drop_nulls(&mut pod);
    // The template was validated with its owner, so this fails only if the namespace is terminating.
    if let Err(status) = create(state, kinds::of("", "pods"), object::namespace(owner), pod, Writer::CONTROLLER, false)
    {
        tracing::debug!(owner = object::name(owner), %status, "cannot create a pod");
    }
}

/// Deletes pods.
pub(super) fn remove<'p>(state: &mut State, pods: impl IntoIterator<Item = &'p Arc<Value>>) {
    for pod in pods {
        // This cannot fail: the pod was read under the same lock.
        let _ = delete(state, kinds::of("", "pods"), pod, &Deletion::default());
    }
}

/// The value of an `IntOrString`: a number, or a percentage of `whole`.
pub(super) fn share(value: &Value, whole: u64, round_up: bool) -> u64 {
    let percent = value.as_str().and_then(|text| text.strip_suffix('%')).and_then(|text| text.parse::<u64>().ok());
    match percent {
        Some(percent) if round_up => (whole * percent.min(100)).div_ceil(100),
        Some(percent) => whole * percent.min(100) / 100,
        None => value.as_u64().unwrap_or(0),
    }
}

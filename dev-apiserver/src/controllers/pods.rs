//! Pods that belong to something: finding, making and removing them.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::kinds::{self, Kind};
use crate::object;
use crate::store::State;
use crate::write::{Deletion, Writer, create, delete};

/// What a controller owns of a kind.
pub(super) fn owned(state: &State, kind: &'static Kind, owner: &Value) -> Vec<Arc<Value>> {
    let uid = object::uid(owner);
    let all = state.list(kind, Some(object::namespace(owner)));
    all.filter(|object| object::controller(object) == Some(uid)).cloned().collect()
}

/// Its pods that have not ended and are not ending.
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

/// The reference that makes `owner` the controller of something.
pub(super) fn owner_reference(owner: &Value) -> Value {
    json!({
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
    })
}

/// A pod of the owner's template; `edit` gives it what is its own.
pub(super) fn make(state: &mut State, owner: &Value, edit: impl FnOnce(&mut Value)) {
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
    // What the template gets wrong is told where the template is written; a namespace that ends takes no new pods.
    if let Err(status) = create(state, kinds::of("", "pods"), object::namespace(owner), pod, Writer::CONTROLLER, false)
    {
        tracing::debug!(owner = object::name(owner), %status, "no pod");
    }
}

/// Removes pods.
pub(super) fn remove<'p>(state: &mut State, pods: impl IntoIterator<Item = &'p Arc<Value>>) {
    for pod in pods {
        // Nothing can have changed since it was read.
        let _ = delete(state, kinds::of("", "pods"), pod, &Deletion::default());
    }
}

/// `n`, or `n%` of a whole; percentages are rounded up for a surge and down otherwise.
pub(super) fn share(value: &Value, whole: u64, round_up: bool) -> u64 {
    let percent = value.as_str().and_then(|text| text.strip_suffix('%')).and_then(|text| text.parse::<u64>().ok());
    match percent {
        Some(percent) if round_up => (whole * percent.min(100)).div_ceil(100),
        Some(percent) => whole * percent.min(100) / 100,
        None => value.as_u64().unwrap_or(0),
    }
}

//! Namespaces that are terminating: deletes their content, and then removes them.

use serde_json::{Value, json};

use super::status::{condition, put_if_changed, put_status};
use crate::kinds::{self, Handling};
use crate::object;
use crate::store::State;
use crate::write::{Deletion, delete};

/// Deletes the content of a terminating namespace, and removes the namespace once it is empty.
pub(super) fn delete_content(state: &mut State, namespace: &Value) {
    let name = object::name(namespace).to_owned();
    let mut remaining = Vec::new();
    let mut finalizers = Vec::new();
    for kind in kinds::all().iter().filter(|kind| kind.namespaced && kind.handling == Handling::Stored) {
        let found: Vec<_> = state.list(kind, Some(&name)).cloned().collect();
        for object in found.iter().filter(|object| !object::is_deleted(object)) {
            // Objects that cannot be deleted are counted below.
            let _ = delete(state, kind, object, &Deletion::default());
        }
        let left: Vec<_> = state.list(kind, Some(&name)).cloned().collect();
        if !left.is_empty() {
            // Kubernetes writes the dot also for the core group (`namespaced_resources_deleter.go`).
            remaining.push(format!("{}.{} has {} resource instances", kind.resource, kind.group, left.len()));
            finalizers.extend(left.iter().flat_map(|object| object::text_list(&object["metadata"]["finalizers"])));
        }
    }
    if !remaining.is_empty() {
        let counted: std::collections::BTreeSet<_> = finalizers.iter().cloned().collect();
        let count = |one: &String| finalizers.iter().filter(|finalizer| *finalizer == one).count();
        let finalizers: Vec<_> =
            counted.iter().map(|one| format!("{one} in {} resource instances", count(one))).collect();
        put_status(state, kinds::of("", "namespaces"), namespace, status(namespace, &remaining, &finalizers));
        return;
    }
    let mut ending = namespace.clone();
    object::map(&mut ending, "spec").remove("finalizers");
    if object::has_finalizers(&ending) {
        put_if_changed(state, kinds::of("", "namespaces"), namespace, ending);
    } else {
        state.remove(kinds::of("", "namespaces"), "", &name);
    }
}

fn status(namespace: &Value, remaining: &[String], finalizers: &[String]) -> Value {
    let content = format!("Some resources are remaining: {}", remaining.join(", "));
    let one = |kind: &str, status: bool, reason: &str, message: &str| {
        let mut one = condition(namespace, kind, status, reason, message);
        if let Some(fields) = one.as_object_mut() {
            fields.remove("lastUpdateTime");
        }
        one
    };
    let waiting = if finalizers.is_empty() {
        one(
            "NamespaceFinalizersRemaining",
            false,
            "ContentHasNoFinalizers",
            "All content-preserving finalizers finished",
        )
    } else {
        let message = format!("Some content in the namespace has finalizers remaining: {}", finalizers.join(", "));
        one("NamespaceFinalizersRemaining", true, "SomeFinalizersRemain", &message)
    };
    json!({
        "phase": "Terminating",
        "conditions": [
            one("NamespaceDeletionDiscoveryFailure", false, "ResourcesDiscovered", "All resources successfully discovered"),
            one("NamespaceDeletionGroupVersionParsingFailure", false, "ParsedGroupVersions", "All legacy kube types successfully parsed"),
            one("NamespaceDeletionContentFailure", false, "ContentDeleted", "All content successfully deleted, may be waiting on finalization"),
            one("NamespaceContentRemaining", true, "SomeResourcesRemain", &content),
            waiting,
        ],
    })
}

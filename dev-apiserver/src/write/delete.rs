//! Deleting objects: at once, when the last finalizer is removed, or, for a pod, when its node has stopped it.

use std::sync::Arc;

use kube_wire::Status;
use serde_json::{Value, json};

use super::deletion::Deletion;
use crate::kinds::Kind;
use crate::object;
use crate::store::State;

/// The result of a deletion.
#[derive(Debug)]
pub(crate) enum Deleted {
    /// The object was removed. This is its last state.
    Gone(Arc<Value>),
    /// The object is terminating.
    Going(Arc<Value>),
}

/// Deletes a stored object.
pub(crate) fn delete(
    state: &mut State,
    kind: &'static Kind,
    found: &Arc<Value>,
    deletion: &Deletion,
) -> Result<Deleted, Status> {
    let (namespace, name) = (object::namespace(found), object::name(found));
    deletion.check(kind, found)?;
    if kind.is_namespace() && matches!(name, "default" | "kube-system" | "kube-public") {
        return Err(Status::forbidden_because(kind.group_resource(), name, "this namespace may not be deleted"));
    }
    let grace = deletion.grace_of(kind, found);
    let mut going = Value::clone(found);
    if let Some(finalizer) = deletion.finalizer() {
        let metadata = object::metadata(&mut going);
        let finalizers = metadata.entry("finalizers").or_insert_with(|| json!([]));
        if let Some(finalizers) = finalizers.as_array_mut()
            && !finalizers.iter().any(|one| one == finalizer)
        {
            finalizers.push(finalizer.into());
        }
    }
    let is_terminating = object::has_finalizers(&going)
        || kind.is_namespace() && !object::items(&going["spec"]["finalizers"]).is_empty()
        || grace > 0;
    if !is_terminating {
        if deletion.dry_run {
            return Ok(Deleted::Gone(Arc::clone(found)));
        }
        let last = state.remove(kind, namespace, name).unwrap_or_else(|| Arc::clone(found));
        return Ok(Deleted::Gone(last));
    }
    let metadata = object::metadata(&mut going);
    if metadata.get("deletionTimestamp").is_none_or(Value::is_null) {
        metadata.insert("deletionTimestamp".to_owned(), object::now().into());
    }
    metadata.insert("deletionGracePeriodSeconds".to_owned(), grace.into());
    if kind.is_namespace() {
        object::map(&mut going, "status").insert("phase".to_owned(), "Terminating".into());
        object::metadata(&mut going).remove("deletionGracePeriodSeconds");
    }
    if going == **found || deletion.dry_run {
        return Ok(Deleted::Going(Arc::new(going)));
    }
    Ok(Deleted::Going(state.put(kind, going)))
}

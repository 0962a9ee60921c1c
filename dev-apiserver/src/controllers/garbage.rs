//! Garbage collection: deletes dependents without owners, and handles the finalizers `foregroundDeletion` and `orphan`.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::Value;

use super::status::put_if_changed;
use crate::kinds::{self, Handling, Kind};
use crate::object;
use crate::store::State;
use crate::write::{Deletion, delete};

const FOREGROUND: &str = "foregroundDeletion";
const ORPHAN: &str = "orphan";

type Owned = Vec<(&'static Kind, Arc<Value>)>;

/// Collects garbage in a namespace.
pub(super) fn collect(state: &mut State, namespace: &str) {
    let inside = all(state, |kind| kind.namespaced, Some(namespace));
    let has_no_owners = inside.iter().all(|(_, object)| {
        object::items(&object["metadata"]["ownerReferences"]).is_empty() && !object::has_finalizers(object)
    });
    if has_no_owners {
        return;
    }
    let outside = all(state, |kind| !kind.namespaced, None);
    let alive: HashSet<String> =
        inside.iter().chain(&outside).map(|(_, object)| object::uid(object).to_owned()).collect();
    for (kind, object) in &inside {
        if has_finalizer(object, FOREGROUND) && object::is_deleted(object) {
            foreground(state, &inside, kind, object);
        } else if has_finalizer(object, ORPHAN) && object::is_deleted(object) {
            orphan(state, &inside, kind, object);
        } else if !object::is_deleted(object) && is_abandoned(object, &alive) {
            // This cannot fail: the object was read under the same lock.
            let _ = delete(state, kind, object, &Deletion::default());
        }
    }
}

fn all(state: &State, which: impl Fn(&Kind) -> bool, namespace: Option<&str>) -> Owned {
    let kinds = kinds::all().iter().filter(|kind| which(kind) && kind.handling != Handling::Review);
    kinds.flat_map(|kind| state.list(kind, namespace).map(move |object| (kind, Arc::clone(object)))).collect()
}

/// Whether all owners are gone. An owner of a kind that this server does not have counts as existing.
fn is_abandoned(object: &Value, alive: &HashSet<String>) -> bool {
    let owners = object::items(&object["metadata"]["ownerReferences"]);
    let is_known = |owner: &Value| {
        kinds::all().iter().any(|kind| owner["apiVersion"] == kind.api_version() && owner["kind"] == kind.kind)
    };
    let is_gone = |owner: &Value| is_known(owner) && !alive.contains(owner["uid"].as_str().unwrap_or_default());
    !owners.is_empty() && owners.iter().all(is_gone)
}

fn owned_by<'o>(inside: &'o Owned, owner: &'o Value) -> impl Iterator<Item = &'o (&'static Kind, Arc<Value>)> {
    let uid = object::uid(owner);
    inside.iter().filter(move |(_, object)| {
        object::items(&object["metadata"]["ownerReferences"]).iter().any(|reference| reference["uid"] == uid)
    })
}

fn foreground(state: &mut State, inside: &Owned, kind: &'static Kind, owner: &Arc<Value>) {
    let mut is_blocked = false;
    for (kind, dependent) in owned_by(inside, owner) {
        is_blocked = true;
        if !object::is_deleted(dependent) {
            let _ = delete(state, kind, dependent, &Deletion::foreground());
        }
    }
    if !is_blocked {
        release(state, kind, owner, FOREGROUND);
    }
}

fn orphan(state: &mut State, inside: &Owned, kind: &'static Kind, owner: &Arc<Value>) {
    let uid = object::uid(owner);
    for (kind, dependent) in owned_by(inside, owner) {
        let mut free = Value::clone(dependent);
        if let Some(references) = free["metadata"]["ownerReferences"].as_array_mut() {
            references.retain(|reference| reference["uid"] != uid);
        }
        if object::items(&free["metadata"]["ownerReferences"]).is_empty() {
            object::metadata(&mut free).remove("ownerReferences");
        }
        put_if_changed(state, kind, dependent, free);
    }
    release(state, kind, owner, ORPHAN);
}

fn release(state: &mut State, kind: &'static Kind, found: &Arc<Value>, finalizer: &str) {
    let mut released = Value::clone(found);
    if let Some(finalizers) = released["metadata"]["finalizers"].as_array_mut() {
        finalizers.retain(|one| one != finalizer);
    }
    if object::has_finalizers(&released) {
        state.put(kind, released);
    } else {
        state.remove(kind, object::namespace(found), object::name(found));
    }
}

fn has_finalizer(object: &Value, finalizer: &str) -> bool {
    object::items(&object["metadata"]["finalizers"]).iter().any(|one| one == finalizer)
}

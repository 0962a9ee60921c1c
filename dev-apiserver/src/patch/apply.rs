//! Server-side apply (KEP-555), as far as one needs it: who applied which fields is remembered, fields that a manager no
//! longer applies go, and two managers that apply one field differently are in conflict.
//!
//! What plain writes own is noted in [`super::managed`].

use kube_wire::Status;
use kube_wire::status::{Cause, Details, Reason};
use serde_json::{Value, json};

use super::fields::{self, Path};
use super::keys::{ListType, is_same, list_type};
use crate::kinds::Kind;
use crate::object;

/// Who applies, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Applied<'a> {
    /// `fieldManager`
    pub(crate) manager: &'a str,
    /// Whether fields of others are taken over.
    pub(crate) force: bool,
    /// `status`, if only that is applied.
    pub(crate) subresource: &'a str,
}

/// The annotation of `kubectl apply`, as a JSON pointer.
const LAST_APPLIED: &str = "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration";

/// What the first apply makes.
pub(crate) fn first_apply(kind: &Kind, applied: Applied<'_>, config: &Value) -> Value {
    let mut object = config.clone();
    let entry = entry(kind, applied, &fields::of(config));
    object::metadata(&mut object).insert("managedFields".to_owned(), json!([entry]));
    object
}

/// What an apply makes of an object.
pub(crate) fn apply(kind: &Kind, applied: Applied<'_>, live: &Value, config: &Value) -> Result<Value, Status> {
    let wanted = fields::of(config);
    let paths = fields::paths(&wanted);
    let mut entries = live["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let is_own = |entry: &Value| {
        entry["manager"] == applied.manager
            && entry["operation"] == "Apply"
            && entry["subresource"].as_str().unwrap_or_default() == applied.subresource
    };
    let excused = excused(applied, live);
    let is_excused = |path: &Path| excused.contains(path);
    let mut conflicts = Vec::new();
    for entry in entries.iter_mut().filter(|entry| !is_own(entry)) {
        let theirs = fields::paths(&entry["fieldsV1"]);
        let contested: Vec<_> = paths
            .iter()
            .filter(|path| {
                !path.is_item() && theirs.contains(path) && fields::value(live, path) != fields::value(config, path)
            })
            .collect();
        for path in contested.iter().filter(|path| applied.force || is_excused(path)) {
            fields::forget(&mut entry["fieldsV1"], path);
        }
        let manager = entry["manager"].as_str().unwrap_or_default().to_owned();
        let disputed = contested.into_iter().filter(|path| !is_excused(path));
        conflicts.extend(disputed.map(|path| (manager.clone(), path.clone())));
    }
    if !conflicts.is_empty() && !applied.force {
        return Err(conflict(&conflicts));
    }
    let mut object = live.clone();
    let before = entries.iter().find(|entry| is_own(entry)).map(|entry| fields::paths(&entry["fieldsV1"]));
    for gone in before.into_iter().flatten().filter(|path| !paths.contains(path)) {
        let is_others = entries.iter().any(|entry| !is_own(entry) && fields::paths(&entry["fieldsV1"]).contains(&gone));
        if !is_others {
            fields::remove(&mut object, &gone);
        }
    }
    merge(&mut object, config);
    note_last_applied(applied, &mut object, config);
    let mut entry = entry(kind, applied, &wanted);
    match entries.iter().position(is_own) {
        // The time is that of the last change.
        Some(at) if entries[at]["fieldsV1"] == wanted && same_but_for_managers(&object, live) => {
            entry = entries[at].clone();
            entries[at] = entry;
        }
        Some(at) => entries[at] = entry,
        None => entries.push(entry),
    }
    super::managed::store(&mut object, entries);
    Ok(object)
}

/// What kubectl itself applied on the client, and nobody has changed since, is no conflict when it begins to apply on the
/// server (apiserver's `lastAppliedManager`).
fn excused(applied: Applied<'_>, live: &Value) -> Vec<Path> {
    let last = live.pointer(LAST_APPLIED).and_then(Value::as_str).and_then(|text| serde_json::from_str(text).ok());
    let Some(last) = last.filter(|_: &Value| applied.manager == "kubectl") else { return Vec::new() };
    let mut paths = fields::paths(&fields::of(&last));
    paths.retain(|path| fields::value(live, path) == fields::value(&last, path));
    paths
}

/// Who applied on the client before and goes back to it finds what was applied last (apiserver's `lastAppliedUpdater`).
fn note_last_applied(applied: Applied<'_>, object: &mut Value, config: &Value) {
    if let Some(text) = object.pointer_mut(LAST_APPLIED)
        && applied.manager == "kubectl"
    {
        *text = format!("{config}\n").into();
    }
}

fn same_but_for_managers(one: &Value, other: &Value) -> bool {
    let without = |object: &Value| {
        let mut object = object.clone();
        object::metadata(&mut object).remove("managedFields");
        object
    };
    without(one) == without(other)
}

fn entry(kind: &Kind, applied: Applied<'_>, wanted: &Value) -> Value {
    let mut entry = json!({
        "manager": applied.manager,
        "operation": "Apply",
        "apiVersion": kind.api_version(),
        "time": object::now(),
        "fieldsType": "FieldsV1",
        "fieldsV1": wanted,
    });
    if !applied.subresource.is_empty() {
        entry["subresource"] = applied.subresource.into();
    }
    entry
}

/// 409, one cause per field, as kubectl explains it.
fn conflict(conflicts: &[(String, Path)]) -> Status {
    let count = conflicts.len();
    let lines: Vec<_> =
        conflicts.iter().map(|(manager, path)| format!("conflict with {manager:?}: {}", path.dotted())).collect();
    let noun = if count == 1 { "conflict" } else { "conflicts" };
    let mut status =
        Status::failure(409, Reason::Conflict, format!("Apply failed with {count} {noun}: {}", lines.join("\n")));
    let causes = conflicts.iter().map(|(manager, path)| Cause {
        cause_type: "FieldManagerConflict".into(),
        message: format!("conflict with {manager:?}"),
        field: path.dotted(),
    });
    status.details = Some(Details { causes: causes.collect(), ..Details::default() });
    status
}

/// The applied configuration over the object: maps are joined, lists with keys by key, everything else is exchanged.
fn merge(live: &mut Value, config: &Value) {
    let Some(changes) = config.as_object() else {
        *live = config.clone();
        return;
    };
    if !live.is_object() {
        *live = json!({});
    }
    let Some(fields) = live.as_object_mut() else { return };
    for (name, change) in changes.iter().filter(|(_, change)| !change.is_null()) {
        let slot = fields.entry(name).or_insert(Value::Null);
        match change {
            Value::Object(_) if !super::keys::is_atomic_map(name) => merge(slot, change),
            Value::Array(items) => merge_list(name, slot, items),
            other => *slot = other.clone(),
        }
    }
}

fn merge_list(name: &str, live: &mut Value, items: &[Value]) {
    let Some(present) = live.as_array_mut() else {
        *live = items.into();
        return;
    };
    match list_type(name, items) {
        ListType::Map(keys) => {
            for item in items {
                match present.iter_mut().find(|one| is_same(keys, one, item)) {
                    Some(one) => merge(one, item),
                    None => present.push(item.clone()),
                }
            }
        }
        ListType::Set => {
            for item in items {
                if !present.contains(item) {
                    present.push(item.clone());
                }
            }
        }
        ListType::Atomic => *live = items.into(),
    }
}

#[cfg(test)]
mod tests;

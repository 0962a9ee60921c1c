//! Server-side apply (KEP-555). Each manager owns the fields that it applies. Fields that it no longer applies are removed,
//! and applying a different value to a field of another manager is a conflict.
//!
//! [`super::managed`] tracks the fields of other writes.

use kube_wire::Status;
use kube_wire::status::{Cause, Details, Reason};
use serde_json::{Value, json};

use super::fields::{self, Path};
use super::keys::{ListType, is_same, list_type};
use crate::kinds::Kind;
use crate::object;

/// The options of an apply.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ApplyOptions<'a> {
    /// `fieldManager`
    pub(crate) manager: &'a str,
    /// Whether it takes over fields of other managers.
    pub(crate) force: bool,
    /// `status` for the subresource, or empty.
    pub(crate) subresource: &'a str,
}

/// The annotation of `kubectl apply`, as a JSON pointer.
const LAST_APPLIED: &str = "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration";

/// The object that an apply creates.
pub(crate) fn first_apply(kind: &Kind, applied: ApplyOptions<'_>, config: &Value) -> Value {
    let mut object = config.clone();
    let entry = entry(kind, applied, &fields::of(config));
    object::metadata(&mut object).insert("managedFields".to_owned(), json!([entry]));
    object
}

/// The result of an apply to an existing object.
pub(crate) fn apply(kind: &Kind, applied: ApplyOptions<'_>, live: &Value, config: &Value) -> Result<Value, Status> {
    let wanted = fields::of(config);
    let paths = fields::paths(&wanted);
    let mut entries = live["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let is_own = |entry: &Value| {
        entry["manager"] == applied.manager
            && entry["operation"] == "Apply"
            && entry["subresource"].as_str().unwrap_or_default() == applied.subresource
    };
    let migrated = migrated(applied, live);
    let is_migrated = |path: &Path| migrated.contains(path);
    let mut conflicts = Vec::new();
    for entry in entries.iter_mut().filter(|entry| !is_own(entry)) {
        let owned = fields::paths(&entry["fieldsV1"]);
        let contested: Vec<_> = paths
            .iter()
            .filter(|path| {
                !path.is_item() && owned.contains(path) && fields::value(live, path) != fields::value(config, path)
            })
            .collect();
        for path in contested.iter().filter(|path| applied.force || is_migrated(path)) {
            fields::subtract(&mut entry["fieldsV1"], path);
        }
        let manager = entry["manager"].as_str().unwrap_or_default().to_owned();
        let disputed = contested.into_iter().filter(|path| !is_migrated(path));
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
    set_last_applied(applied, &mut object, config);
    let mut entry = entry(kind, applied, &wanted);
    match entries.iter().position(is_own) {
        // The time of an entry is that of its last change.
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

/// The fields that kubectl has applied on the client side, and that have not changed since. They cause no conflict when
/// kubectl switches to server-side apply (`lastAppliedManager` in apimachinery's `managedfields`).
fn migrated(applied: ApplyOptions<'_>, live: &Value) -> Vec<Path> {
    let last = live.pointer(LAST_APPLIED).and_then(Value::as_str).and_then(|text| serde_json::from_str(text).ok());
    let Some(last) = last.filter(|_: &Value| applied.manager == "kubectl") else { return Vec::new() };
    let mut paths = fields::paths(&fields::of(&last));
    paths.retain(|path| fields::value(live, path) == fields::value(&last, path));
    paths
}

/// Updates the annotation of client-side apply, so that kubectl can switch back (`lastAppliedUpdater` in apimachinery's
/// `managedfields`).
fn set_last_applied(applied: ApplyOptions<'_>, object: &mut Value, config: &Value) {
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

fn entry(kind: &Kind, applied: ApplyOptions<'_>, wanted: &Value) -> Value {
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

/// 409, with one cause for each field.
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

/// Merges the configuration into the object. Maps and lists with keys are merged, and everything else is replaced.
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

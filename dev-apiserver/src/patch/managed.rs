//! `metadata.managedFields` of all writes except server-side apply. The manager that changes a field becomes its only owner
//! (`Updater.Update` in structured-merge-diff).

use serde_json::{Map, Value, json};

use super::fields;
use super::keys::{ListType, field, is_atomic_map, is_same, list_type};
use crate::kinds::Kind;
use crate::object;

/// The fields of `metadata` that have no owner (`stripMeta` in apimachinery's `managedfields`).
const UNOWNED: [&str; 10] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "name",
    "namespace",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// The fields that Go always writes, because they are not pointers and have no `omitempty`. Nobody owns them while they
/// are empty.
const ALWAYS: [&str; 9] =
    ["containers", "loadBalancer", "metadata", "source", "spec", "status", "strategy", "template", "updateStrategy"];

/// Records in `object` that `manager` owns what differs from `live`, or everything if the object is new.
pub(crate) fn record(kind: &Kind, manager: &str, subresource: &str, live: Option<&Value>, object: &mut Value) {
    // Entries in the object replace those in the store: kubectl changes them when it switches to server-side apply.
    let mut entries = object::items(&object["metadata"]["managedFields"]).to_vec();
    if let (Some(live), true) = (live, entries.is_empty()) {
        entries = object::items(&live["metadata"]["managedFields"]).to_vec();
    }
    let before = entries.clone();
    let changed = top(live.unwrap_or(&Value::Null), object);
    let is_own = |entry: &Value| {
        entry["manager"] == manager
            && entry["operation"] == "Update"
            && entry["apiVersion"] == kind.api_version()
            && entry["subresource"].as_str().unwrap_or_default() == subresource
    };
    let paths = fields::paths(&changed);
    for entry in &mut entries {
        for gone in fields::paths(&entry["fieldsV1"]).iter().filter(|path| fields::value(object, path).is_none()) {
            fields::subtract(&mut entry["fieldsV1"], gone);
        }
        if !is_own(entry) {
            for path in paths.iter().filter(|path| !path.is_item()) {
                fields::subtract(&mut entry["fieldsV1"], path);
            }
        }
    }
    if !paths.is_empty() {
        let mut entry = match entries.iter().position(is_own) {
            Some(at) => entries.remove(at),
            None => json!({
                "manager": manager, "operation": "Update", "apiVersion": kind.api_version(),
                "fieldsType": "FieldsV1", "fieldsV1": {},
            }),
        };
        union(&mut entry["fieldsV1"], changed);
        if !subresource.is_empty() {
            entry["subresource"] = subresource.into();
        }
        if !before.contains(&entry) {
            entry["time"] = object::now().into();
        }
        entries.push(entry);
    }
    store(object, entries);
}

/// Stores the entries in an object, in order (apimachinery's `sortEncodedManagedFields`), without empty ones.
pub(crate) fn store(object: &mut Value, mut entries: Vec<Value>) {
    entries.retain(|entry| entry["fieldsV1"].as_object().is_some_and(|fields| !fields.is_empty()));
    let key = |entry: &Value| {
        ["operation", "time", "manager", "apiVersion"].map(|field| entry[field].as_str().unwrap_or_default().to_owned())
    };
    entries.sort_by_key(key);
    if entries.is_empty() {
        object::metadata(object).remove("managedFields");
    } else {
        object::metadata(object).insert("managedFields".to_owned(), entries.into());
    }
}

fn top(live: &Value, object: &Value) -> Value {
    let mut changed = Map::new();
    for (name, value) in object.as_object().into_iter().flatten() {
        let change = match name.as_str() {
            "apiVersion" | "kind" => None,
            "metadata" => {
                let mut owned = value.clone();
                object::map_of(&mut owned).retain(|name, _| !UNOWNED.contains(&name.as_str()));
                difference(name, Some(&live["metadata"]), &owned)
            }
            _ => difference(name, before(name, live), value),
        };
        changed.extend(change.map(|change| (format!("f:{name}"), change)));
    }
    Value::Object(changed)
}

/// The previous value of a field. `None` if the field is new.
fn before<'v>(name: &str, live: &'v Value) -> Option<&'v Value> {
    match live.get(name) {
        None if ALWAYS.contains(&name) => Some(&Value::Null),
        found => found,
    }
}

/// The set of fields that are new or have changed. It contains new maps and lists themselves, too.
fn difference(name: &str, live: Option<&Value>, value: &Value) -> Option<Value> {
    let is_new = live.is_none();
    let found = live.unwrap_or(&Value::Null);
    let mut set = Map::new();
    match value {
        Value::Object(all) if !is_atomic_map(name) => {
            for (name, value) in all {
                let was = if is_new { None } else { before(name, found) };
                set.extend(difference(name, was, value).map(|change| (format!("f:{name}"), change)));
            }
        }
        Value::Array(items) => match list_type(name, items) {
            ListType::Map(keys) => {
                for item in items {
                    let was = object::items(found).iter().find(|one| is_same(keys, one, item));
                    let key: Map<String, Value> =
                        keys.iter().map(|key| ((*key).to_owned(), field(item, key))).collect();
                    set.extend(difference("", was, item).map(|change| (format!("k:{}", Value::Object(key)), change)));
                }
            }
            ListType::Set => {
                let new = items.iter().filter(|item| !object::items(found).contains(item));
                set.extend(new.map(|item| (format!("v:{item}"), json!({}))));
            }
            ListType::Atomic => return (live != Some(value)).then(|| json!({})),
        },
        _ => return (live != Some(value)).then(|| json!({})),
    }
    if is_new && !set.is_empty() {
        set.insert(".".to_owned(), json!({}));
    }
    (is_new || !set.is_empty()).then_some(Value::Object(set))
}

/// Adds a set to another one.
fn union(set: &mut Value, more: Value) {
    let (Value::Object(set), Value::Object(more)) = (set, more) else { return };
    for (name, below) in more {
        match set.get_mut(&name) {
            Some(known) => union(known, below),
            None => {
                set.insert(name, below);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds;

    fn recorded(live: Option<&Value>, mut object: Value, manager: &str) -> Value {
        record(kinds::of("apps", "deployments"), manager, "", live, &mut object);
        object
    }

    fn owned(object: &Value) -> Vec<(String, Value)> {
        let entries = object::items(&object["metadata"]["managedFields"]).iter();
        entries.map(|entry| (entry["manager"].as_str().unwrap().to_owned(), entry["fieldsV1"].clone())).collect()
    }

    #[test]
    fn the_creator_owns_all_fields() {
        let object = json!({
            "metadata": {"name": "a", "labels": {"x": "y"}},
            "spec": {"replicas": 1, "strategy": {"rollingUpdate": {"maxSurge": 1}}, "template": {"spec": {"containers": [
                {"name": "c", "env": [{"name": "A"}]},
            ]}}},
        });
        let expect = json!({
            "f:metadata": {"f:labels": {".": {}, "f:x": {}}},
            "f:spec": {
                "f:replicas": {}, "f:strategy": {"f:rollingUpdate": {".": {}, "f:maxSurge": {}}},
                "f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"c\"}": {
                    ".": {}, "f:name": {}, "f:env": {".": {}, "k:{\"name\":\"A\"}": {".": {}, "f:name": {}}},
                }}}},
            },
        });
        assert_eq!(owned(&recorded(None, object, "one")), [("one".to_owned(), expect)]);
    }

    #[test]
    fn a_manager_that_changes_a_field_is_its_only_owner() {
        let first =
            recorded(None, json!({"metadata": {"labels": {"a": "1", "b": "1"}}, "spec": {"replicas": 1}}), "one");
        let mut object = first.clone();
        object["metadata"]["labels"] = json!({"a": "2"});
        let second = recorded(Some(&first), object, "two");
        let labels = |fields: Value| json!({"f:metadata": {"f:labels": fields}});
        let expect = [
            ("one".to_owned(), json!({"f:metadata": {"f:labels": {".": {}}}, "f:spec": {"f:replicas": {}}})),
            ("two".to_owned(), labels(json!({"f:a": {}}))),
        ];
        assert_eq!(owned(&second), expect);
        assert_eq!(owned(&recorded(Some(&second), second.clone(), "three")), expect, "nothing has changed");
    }
}

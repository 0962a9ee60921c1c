//! Sets of fields in the format `FieldsV1`, and paths in an object.

use serde_json::{Map, Value, json};

use super::keys::{ListType, field, is_atomic_map, list_type};

/// The path of a field, as the keys of `FieldsV1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Path(Vec<String>);

/// The set of the fields of an applied configuration.
pub(super) fn of(config: &Value) -> Value {
    let mut fields = Map::new();
    for (name, value) in config.as_object().into_iter().flatten() {
        match name.as_str() {
            "apiVersion" | "kind" => {}
            "metadata" => {
                let own = ["name", "namespace", "managedFields", "creationTimestamp", "uid", "resourceVersion"];
                let rest = value.as_object().into_iter().flatten().filter(|(name, _)| !own.contains(&name.as_str()));
                let rest: Map<String, Value> = rest.map(|(name, value)| (name.clone(), value.clone())).collect();
                if !rest.is_empty() {
                    fields.insert("f:metadata".to_owned(), of_value("metadata", &Value::Object(rest)));
                }
            }
            _ => {
                fields.insert(format!("f:{name}"), of_value(name, value));
            }
        }
    }
    Value::Object(fields)
}

fn of_value(name: &str, value: &Value) -> Value {
    match value {
        Value::Object(fields) if !is_atomic_map(name) => {
            fields.iter().map(|(name, value)| (format!("f:{name}"), of_value(name, value))).collect()
        }
        Value::Array(items) => match list_type(name, items) {
            ListType::Map(keys) => {
                let mut set = Map::new();
                for item in items {
                    let key: Map<String, Value> =
                        keys.iter().map(|key| ((*key).to_owned(), field(item, key))).collect();
                    let mut fields = of_value("", item);
                    fields["."] = json!({});
                    set.insert(format!("k:{}", Value::Object(key)), fields);
                }
                Value::Object(set)
            }
            ListType::Set => items.iter().map(|item| (format!("v:{item}"), json!({}))).collect(),
            ListType::Atomic => json!({}),
        },
        _ => json!({}),
    }
}

/// The leaves of a set.
pub(super) fn paths(set: &Value) -> Vec<Path> {
    let mut found = Vec::new();
    collect(set, &mut Vec::new(), &mut found);
    found
}

fn collect(set: &Value, way: &mut Vec<String>, found: &mut Vec<Path>) {
    let fields = set.as_object().into_iter().flatten();
    let mut is_leaf = true;
    for (name, below) in fields {
        is_leaf = false;
        way.push(name.clone());
        collect(below, way, found);
        way.pop();
    }
    if is_leaf && !way.is_empty() {
        found.push(Path(way.clone()));
    }
}

/// The value at a path.
pub(super) fn value<'v>(object: &'v Value, path: &Path) -> Option<&'v Value> {
    path.0.iter().try_fold(object, |value, step| match step.split_once(':') {
        Some(("f", name)) => value.get(name),
        Some(("k", key)) => value.as_array()?.iter().find(|item| is_item(item, key)),
        Some(("v", text)) => value.as_array()?.iter().find(|item| is_text(item, text)),
        _ => Some(value),
    })
}

/// Removes a field from an object, with maps and lists that become empty.
pub(super) fn remove(object: &mut Value, path: &Path) {
    remove_at(object, &path.0);
}

fn remove_at(value: &mut Value, way: &[String]) -> bool {
    let Some((step, rest)) = way.split_first() else { return true };
    match step.split_once(':') {
        Some(("f", name)) => {
            if let Some(fields) = value.as_object_mut() {
                if fields.get_mut(name).is_some_and(|below| remove_at(below, rest)) {
                    fields.remove(name);
                }
                return fields.is_empty();
            }
        }
        Some(("k", key)) => {
            if let Some(items) = value.as_array_mut() {
                // The path of the item itself ends with ".".
                if let Some(at) = items.iter().position(|item| is_item(item, key)) {
                    let is_whole = rest.first().is_some_and(|step| step == ".");
                    if is_whole || remove_at(&mut items[at], rest) {
                        items.remove(at);
                    }
                }
                return items.is_empty();
            }
        }
        Some(("v", text)) => {
            if let Some(items) = value.as_array_mut() {
                items.retain(|item| !is_text(item, text));
                return items.is_empty();
            }
        }
        _ => {}
    }
    false
}

/// Removes a path from a set.
pub(super) fn subtract(set: &mut Value, path: &Path) {
    subtract_at(set, &path.0);
}

fn subtract_at(set: &mut Value, way: &[String]) -> bool {
    let Some((step, rest)) = way.split_first() else { return true };
    let Some(fields) = set.as_object_mut() else { return true };
    if fields.get_mut(step).is_some_and(|below| subtract_at(below, rest)) {
        fields.remove(step);
    }
    fields.is_empty()
}

/// Whether a value has this JSON text.
fn is_text(value: &Value, text: &str) -> bool {
    serde_json::from_str::<Value>(text).is_ok_and(|read| read == *value)
}

fn is_item(item: &Value, key: &str) -> bool {
    let Ok(Value::Object(keys)) = serde_json::from_str(key) else { return false };
    keys.iter().all(|(name, value)| field(item, name) == *value)
}

// === impl Path ===

impl Path {
    /// Whether it is the path of an item itself. Such a path never causes a conflict.
    pub(super) fn is_item(&self) -> bool {
        self.0.last().is_some_and(|step| step == ".")
    }

    /// The form in conflicts, such as `.spec.replicas`.
    pub(super) fn dotted(&self) -> String {
        let mut text = String::new();
        for step in &self.0 {
            match step.split_once(':') {
                Some(("f", name)) => text.extend([".", name]),
                Some((_, key)) => text.extend(["[", key.trim_matches(['{', '}']).replace(':', "=").as_str(), "]"]),
                None => {}
            }
        }
        text
    }
}

//! Strategic merge patches (`strategicpatch` in apimachinery): merge patches with merge keys for lists, and directives.

use serde_json::{Map, Value};

use super::keys::{ListType, is_same, list_type};

const PATCH: &str = "$patch";
const RETAIN: &str = "$retainKeys";
const ORDER: &str = "$setElementOrder/";
const DELETE: &str = "$deleteFromPrimitiveList/";

/// Merges `patch`, an object, into `live`.
pub(super) fn merge(live: &mut Value, patch: &Value) {
    let Some(changes) = patch.as_object() else {
        *live = patch.clone();
        return;
    };
    match changes.get(PATCH).and_then(Value::as_str) {
        Some("replace") => {
            *live = without_directives(patch);
            return;
        }
        Some("delete") => {
            *live = Value::Object(Map::new());
            return;
        }
        _ => {}
    }
    if !live.is_object() {
        *live = Value::Object(Map::new());
    }
    let Some(fields) = live.as_object_mut() else { return };
    if let Some(kept) = changes.get(RETAIN).and_then(Value::as_array) {
        fields.retain(|name, _| kept.iter().any(|kept| kept == name));
    }
    for (name, change) in changes {
        if let Some(name) = name.strip_prefix(DELETE) {
            let gone = change.as_array().map(Vec::as_slice).unwrap_or_default();
            if let Some(items) = fields.get_mut(name).and_then(Value::as_array_mut) {
                items.retain(|item| !gone.contains(item));
            }
        } else if !name.starts_with('$') {
            merge_field(fields, name, change);
        }
    }
    for (name, order) in changes {
        if let (Some(name), Some(order)) = (name.strip_prefix(ORDER), order.as_array())
            && let Some(items) = fields.get_mut(name).and_then(Value::as_array_mut)
        {
            sort(name, items, order);
        }
    }
}

fn merge_field(fields: &mut Map<String, Value>, name: &str, change: &Value) {
    match change {
        Value::Null => {
            fields.remove(name);
        }
        Value::Object(_) => {
            if change[PATCH] == "delete" {
                fields.remove(name);
                return;
            }
            merge(fields.entry(name).or_insert(Value::Null), change);
        }
        Value::Array(items) => {
            let live = fields.entry(name).or_insert_with(|| Value::Array(Vec::new()));
            let merged = live.as_array_mut().map(|live| merge_list(name, live, items));
            if merged.is_none() {
                *live = without_directives(change);
            }
        }
        plain => {
            fields.insert(name.to_owned(), plain.clone());
        }
    }
}

fn merge_list(name: &str, live: &mut Vec<Value>, changes: &[Value]) {
    let is_replaced = changes.iter().any(|item| item[PATCH] == "replace");
    let known = if changes.iter().any(|item| item.get(PATCH).is_none()) { changes } else { live.as_slice() };
    match list_type(name, known) {
        ListType::Map(keys) if !is_replaced => {
            for change in changes {
                let at = live.iter().position(|item| matches_key(keys, item, change));
                match (change[PATCH].as_str(), at) {
                    (Some("delete"), Some(at)) => {
                        live.remove(at);
                    }
                    (Some("delete"), None) => {}
                    (_, Some(at)) => merge(&mut live[at], change),
                    (_, None) => live.push(without_directives(change)),
                }
            }
        }
        ListType::Set if !is_replaced => {
            for change in changes.iter().filter(|change| !change.is_object()) {
                if !live.contains(change) {
                    live.push(change.clone());
                }
            }
        }
        _ => *live = changes.iter().filter(|item| item.get(PATCH).is_none()).map(without_directives).collect(),
    }
}

/// Whether an item has the key in a patch. The patch may leave out a part of the key, such as the protocol of a port.
fn matches_key(keys: &[&str], item: &Value, change: &Value) -> bool {
    let given: Vec<_> = keys.iter().copied().filter(|key| !change[*key].is_null()).collect();
    !given.is_empty() && is_same(&given, item, change)
}

/// Sorts items in the order of the patch. The others follow in their order.
fn sort(name: &str, items: &mut [Value], order: &[Value]) {
    let place = |item: &Value| {
        let found = match list_type(name, order) {
            ListType::Map(keys) => order.iter().position(|one| matches_key(keys, item, one)),
            _ => order.iter().position(|one| one == item),
        };
        found.unwrap_or(order.len())
    };
    items.sort_by_key(place);
}

/// A value of a patch without directives and nulls.
fn without_directives(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(name, value)| !name.starts_with('$') && !value.is_null());
            Value::Object(kept.map(|(name, value)| (name.clone(), without_directives(value))).collect())
        }
        Value::Array(items) => {
            Value::Array(items.iter().filter(|item| item[PATCH] != "delete").map(without_directives).collect())
        }
        plain => plain.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn merged(mut live: Value, patch: &Value) -> Value {
        merge(&mut live, patch);
        live
    }

    #[test]
    fn containers_are_merged_by_name() {
        let live =
            json!({"containers": [{"name": "a", "image": "1", "env": [{"name": "X", "value": "1"}]}, {"name": "b"}]});
        let patch = json!({"containers": [{"name": "a", "image": "2", "env": [{"name": "Y", "value": "2"}]}, {"name": "b", "$patch": "delete"}]});
        assert_eq!(
            merged(live, &patch),
            json!({"containers": [{"name": "a", "image": "2", "env": [{"name": "X", "value": "1"}, {"name": "Y", "value": "2"}]}]})
        );
    }

    #[test]
    fn tolerations_are_replaced_and_null_removes() {
        let live = json!({"tolerations": [{"key": "a"}], "nodeName": "n"});
        assert_eq!(
            merged(live, &json!({"tolerations": [{"key": "b"}], "nodeName": null})),
            json!({"tolerations": [{"key": "b"}]})
        );
    }

    #[test]
    fn directives_are_applied_and_not_stored() {
        let live = json!({"strategy": {"type": "RollingUpdate", "rollingUpdate": {}}});
        let patch = json!({"strategy": {"$retainKeys": ["type"], "type": "Recreate"}});
        assert_eq!(merged(live, &patch), json!({"strategy": {"type": "Recreate"}}));
        let live = json!({"metadata": {"finalizers": ["a", "b"]}});
        let patch =
            json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"], "$setElementOrder/finalizers": ["b"]}});
        assert_eq!(merged(live, &patch), json!({"metadata": {"finalizers": ["b"]}}));
        assert_eq!(
            merged(json!({"a": {"b": 1}}), &json!({"a": {"$patch": "replace", "c": 2}})),
            json!({"a": {"c": 2}})
        );
    }

    #[test]
    fn items_have_the_order_of_the_patch() {
        let live = json!({"env": [{"name": "x"}, {"name": "y"}]});
        let patch =
            json!({"$setElementOrder/env": [{"name": "z"}, {"name": "y"}, {"name": "x"}], "env": [{"name": "z"}]});
        assert_eq!(merged(live, &patch), json!({"env": [{"name": "z"}, {"name": "y"}, {"name": "x"}]}));
    }

    #[test]
    fn ports_of_services_are_merged_by_number() {
        let live = json!({"ports": [{"port": 80, "protocol": "TCP", "nodePort": 30000}]});
        let patch = json!({"ports": [{"port": 80, "name": "http"}, {"port": 81}]});
        assert_eq!(
            merged(live, &patch),
            json!({"ports": [{"port": 80, "protocol": "TCP", "nodePort": 30000, "name": "http"}, {"port": 81}]})
        );
    }
}

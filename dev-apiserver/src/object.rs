//! Reading and writing fields of objects.
//!
//! Objects are JSON values. These functions treat a field of a wrong type as absent; [`crate::protobuf`] checks types.

mod generate;
mod selector;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

pub(crate) use generate::{hash, new_uid, now, now_in_micros, suffix};
pub(crate) use selector::{is_selected, label_selector, map_selector};

/// `metadata.name`.
pub(crate) fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// `metadata.namespace`; empty for cluster-scoped kinds.
pub(crate) fn namespace(object: &Value) -> &str {
    object["metadata"]["namespace"].as_str().unwrap_or_default()
}

/// `metadata.uid`.
pub(crate) fn uid(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().unwrap_or_default()
}

/// Whether the object is terminating.
pub(crate) fn is_deleted(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

/// Whether the object has finalizers.
pub(crate) fn has_finalizers(object: &Value) -> bool {
    object["metadata"]["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty())
}

/// The uid of the owner that is its controller.
pub(crate) fn controller(object: &Value) -> Option<&str> {
    let owners = object["metadata"]["ownerReferences"].as_array()?;
    owners.iter().find(|owner| owner["controller"] == true)?["uid"].as_str()
}

/// The entries of a map whose values are strings.
pub(crate) fn texts(field: &Value) -> BTreeMap<&str, &str> {
    let pairs = field.as_object().into_iter().flatten();
    pairs.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?))).collect()
}

/// The items of a list that are strings.
pub(crate) fn text_list(field: &Value) -> Vec<String> {
    field.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The items of a list. None if it is absent.
pub(crate) fn items(field: &Value) -> &[Value] {
    field.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// A field as an object. Creates the object if there is none.
pub(crate) fn map<'v>(value: &'v mut Value, field: &str) -> &'v mut Map<String, Value> {
    if !value.is_object() {
        *value = json!({});
    }
    let slot = value.as_object_mut().expect("made one above").entry(field).or_insert_with(|| json!({}));
    if !slot.is_object() {
        *slot = json!({});
    }
    slot.as_object_mut().expect("made one above")
}

/// A value as an object. Creates the object if there is none.
pub(crate) fn map_of(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = json!({});
    }
    value.as_object_mut().expect("made one above")
}

/// `metadata` as a value.
pub(crate) fn metadata_value(object: &mut Value) -> &mut Value {
    metadata(object);
    &mut object["metadata"]
}

/// `metadata` as an object.
pub(crate) fn metadata(object: &mut Value) -> &mut Map<String, Value> {
    map(object, "metadata")
}

/// The object as `PartialObjectMetadata`.
pub(crate) fn partial(object: &Value) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"]})
}

/// Removes fields that are null. Kubernetes treats them as absent.
pub(crate) fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

/// Sets a field that is absent or null.
pub(crate) fn default(value: &mut Value, field: &str, default: impl Into<Value>) {
    if let Some(fields) = value.as_object_mut() {
        let slot = fields.entry(field).or_insert(Value::Null);
        if slot.is_null() {
            *slot = default.into();
        }
    }
}

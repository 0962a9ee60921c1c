//! Reading and writing fields that all objects have, and generating uids, times and suffixes of names.
//!
//! Objects are JSON values. These functions treat a field of a wrong type as absent; [`crate::write`] checks types.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kube_wire::selector::LabelSelector;
use serde_json::{Map, Value, json};

/// The characters of suffixes, which form no words (apimachinery's `rand.String`).
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

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

/// Whether a selector matches the labels of the object.
pub(crate) fn is_selected(selector: &LabelSelector, object: &Value) -> bool {
    let labels = &object["metadata"]["labels"];
    selector.matches(|key| labels[key].as_str())
}

/// The uid of the owner that is its controller.
pub(crate) fn controller(object: &Value) -> Option<&str> {
    let owners = object["metadata"]["ownerReferences"].as_array()?;
    owners.iter().find(|owner| owner["controller"] == true)?["uid"].as_str()
}

/// The selector in a field of type `LabelSelector`. An empty one selects everything, an absent one nothing.
pub(crate) fn label_selector(field: &Value) -> Option<LabelSelector> {
    let field = field.as_object()?;
    let mut terms = Vec::new();
    for (key, value) in field.get("matchLabels").and_then(Value::as_object).into_iter().flatten() {
        terms.push(format!("{key}={}", value.as_str()?));
    }
    for expression in field.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
        let key = expression["key"].as_str()?;
        let values: Vec<_> = expression["values"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let values = values.join(",");
        terms.push(match expression["operator"].as_str()? {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "Exists" => key.to_owned(),
            "DoesNotExist" => format!("!{key}"),
            _ => return None,
        });
    }
    terms.join(",").parse().ok()
}

/// The selector in a map of labels, as in Services.
pub(crate) fn map_selector(field: &Value) -> Option<LabelSelector> {
    let pairs = field.as_object().filter(|pairs| !pairs.is_empty())?;
    LabelSelector::from_labels(pairs.iter().filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))).ok()
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

/// The current time in the format of `Time`.
pub(crate) fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The current time in the format of `MicroTime`.
pub(crate) fn now_in_micros() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

/// A random version 4 UUID (RFC 9562, section 5.4). Nothing depends on its secrecy.
pub(crate) fn new_uid() -> String {
    let bits = fastrand::u128(..) & !(0xf << 76) & !(0x3 << 62) | 0x4 << 76 | 0x2 << 62;
    let hex = format!("{bits:032x}");
    let mut uid = String::with_capacity(36);
    for (at, digit) in hex.chars().enumerate() {
        if matches!(at, 8 | 12 | 16 | 20) {
            uid.push('-');
        }
        uid.push(digit);
    }
    uid
}

/// A random suffix for names (apimachinery's `rand.String`).
pub(crate) fn suffix(length: usize) -> String {
    (0..length).map(|_| char::from(ALPHABET[fastrand::usize(..ALPHABET.len())])).collect()
}

/// A short hash of a value, as in `pod-template-hash`.
pub(crate) fn hash(value: &Value) -> String {
    // FNV-1a over the JSON text. Keys are sorted, so equal values have equal texts.
    let text = value.to_string();
    let digest = text.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    // The characters of suffixes instead of digits (apimachinery's `rand.SafeEncodeString`).
    digest.to_string().bytes().map(|digit| char::from(ALPHABET[usize::from(digit) % ALPHABET.len()])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uid_is_a_uuid_of_version_4() {
        let uid = new_uid();
        assert_eq!(uid.len(), 36);
        assert_eq!((&uid[14..15], uid[19..20].contains(['8', '9', 'a', 'b'])), ("4", true), "{uid}");
    }

    #[test]
    fn label_selectors_match_labels() {
        let field =
            json!({"matchLabels": {"app": "a"}, "matchExpressions": [{"key": "x", "operator": "DoesNotExist"}]});
        let selector = label_selector(&field).unwrap();
        assert!(is_selected(&selector, &json!({"metadata": {"labels": {"app": "a"}}})));
        assert!(!is_selected(&selector, &json!({"metadata": {"labels": {"app": "a", "x": "1"}}})));
        assert!(label_selector(&Value::Null).is_none());
    }
}

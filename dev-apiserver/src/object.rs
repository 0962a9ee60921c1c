//! Reading the places that every object has, and what is made up for new ones: uid, times, name suffixes.
//!
//! Objects are JSON as it came. A field of the wrong type reads as absent here; what must be right is checked where it
//! is written ([`crate::write`]).

use std::collections::BTreeMap;

use jiff::Timestamp;
use kube_wire::selector::LabelSelector;
use serde_json::{Map, Value, json};

/// Letters and digits that make no words.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// `metadata.name`.
pub(crate) fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// `metadata.namespace`; empty at the cluster scope.
pub(crate) fn namespace(object: &Value) -> &str {
    object["metadata"]["namespace"].as_str().unwrap_or_default()
}

/// `metadata.uid`.
pub(crate) fn uid(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().unwrap_or_default()
}

/// Whether the object is being deleted.
pub(crate) fn is_deleted(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

/// Whether a finalizer keeps it.
pub(crate) fn has_finalizers(object: &Value) -> bool {
    object["metadata"]["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty())
}

/// Whether its labels are selected.
pub(crate) fn is_selected(selector: &LabelSelector, object: &Value) -> bool {
    let labels = &object["metadata"]["labels"];
    selector.matches(|key| labels[key].as_str())
}

/// The uid of the controller that owns it.
pub(crate) fn controller(object: &Value) -> Option<&str> {
    let owners = object["metadata"]["ownerReferences"].as_array()?;
    owners.iter().find(|owner| owner["controller"] == true)?["uid"].as_str()
}

/// A `LabelSelector` field (`matchLabels`, `matchExpressions`); an empty one selects everything, an absent one nothing.
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

/// A selector that is a plain map, as Services have.
pub(crate) fn map_selector(field: &Value) -> Option<LabelSelector> {
    let pairs = field.as_object().filter(|pairs| !pairs.is_empty())?;
    LabelSelector::from_labels(pairs.iter().filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))).ok()
}

/// Keys and values that are texts.
pub(crate) fn texts(field: &Value) -> BTreeMap<&str, &str> {
    let pairs = field.as_object().into_iter().flatten();
    pairs.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?))).collect()
}

/// A list of texts.
pub(crate) fn text_list(field: &Value) -> Vec<String> {
    field.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The items of a list; none if it is not there.
pub(crate) fn items(field: &Value) -> &[Value] {
    field.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The field as an object, made one if it is none. `value` itself must not be a list: check before.
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

/// The value as an object, made one if it is none.
pub(crate) fn map_of(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = json!({});
    }
    value.as_object_mut().expect("made one above")
}

/// `metadata` as a value, for what is inside.
pub(crate) fn metadata_value(object: &mut Value) -> &mut Value {
    metadata(object);
    &mut object["metadata"]
}

/// `metadata` as an object.
pub(crate) fn metadata(object: &mut Value) -> &mut Map<String, Value> {
    map(object, "metadata")
}

/// `PartialObjectMetadata` of an object.
pub(crate) fn partial(object: &Value) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"]})
}

/// Takes away every field that is null: to Kubernetes it is not there.
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

/// Sets a field that is not there.
pub(crate) fn default(value: &mut Value, field: &str, default: impl Into<Value>) {
    if let Some(fields) = value.as_object_mut() {
        let slot = fields.entry(field).or_insert(Value::Null);
        if slot.is_null() {
            *slot = default.into();
        }
    }
}

/// The present time as Kubernetes writes it.
pub(crate) fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The same with microseconds (`MicroTime`).
pub(crate) fn now_in_micros() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

/// A random version 4 UUID (RFC 9562 section 5.4). It names and does not guard, so it need not be unguessable.
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

/// Random letters for names: apimachinery's `rand.String`.
pub(crate) fn suffix(length: usize) -> String {
    (0..length).map(|_| char::from(ALPHABET[fastrand::usize(..ALPHABET.len())])).collect()
}

/// A short name for a value that changes with it (`pod-template-hash`).
pub(crate) fn hash(value: &Value) -> String {
    // FNV-1a over the JSON text; keys are sorted, so equal values have equal texts.
    let text = value.to_string();
    let digest = text.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    // The letters of name suffixes instead of digits, as apimachinery's `rand.SafeEncodeString`.
    digest.to_string().bytes().map(|digit| char::from(ALPHABET[usize::from(digit) % ALPHABET.len()])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uid_has_its_form() {
        let uid = new_uid();
        assert_eq!(uid.len(), 36);
        assert_eq!((&uid[14..15], uid[19..20].contains(['8', '9', 'a', 'b'])), ("4", true), "{uid}");
    }

    #[test]
    fn selectors_of_objects_select() {
        let field =
            json!({"matchLabels": {"app": "a"}, "matchExpressions": [{"key": "x", "operator": "DoesNotExist"}]});
        let selector = label_selector(&field).unwrap();
        assert!(is_selected(&selector, &json!({"metadata": {"labels": {"app": "a"}}})));
        assert!(!is_selected(&selector, &json!({"metadata": {"labels": {"app": "a", "x": "1"}}})));
        assert!(label_selector(&Value::Null).is_none());
    }
}

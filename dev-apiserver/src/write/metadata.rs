//! The form of `metadata`.

use serde_json::Value;

/// Removes empty fields, which Go omits.
pub(super) fn tidy(metadata: &mut serde_json::Map<String, Value>) {
    metadata.remove("selfLink");
    for field in ["labels", "annotations", "finalizers", "ownerReferences", "managedFields", "generateName"] {
        let is_empty = match metadata.get(field) {
            Some(Value::Object(fields)) => fields.is_empty(),
            Some(Value::Array(items)) => items.is_empty(),
            Some(Value::String(text)) => text.is_empty(),
            Some(Value::Null) => true,
            _ => false,
        };
        if is_empty {
            metadata.remove(field);
        }
    }
}

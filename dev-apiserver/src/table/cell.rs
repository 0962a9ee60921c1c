//! Cells that several kinds have.

use serde_json::Value;

use crate::object;

/// The value at a path, or a placeholder.
pub(super) fn text_or(object: &Value, path: &str, placeholder: &str) -> Value {
    match object.pointer(path) {
        Some(Value::String(text)) if !text.is_empty() => text.as_str().into(),
        Some(value @ (Value::Number(_) | Value::Bool(_))) => value.to_string().into(),
        _ => placeholder.into(),
    }
}

/// `a=b,c=d`
pub(super) fn pairs(field: &Value) -> String {
    let pairs: Vec<_> = object::texts(field).iter().map(|(key, value)| format!("{key}={value}")).collect();
    if pairs.is_empty() { "<none>".to_owned() } else { pairs.join(",") }
}

//! Compares the content of objects, apart from their metadata and status.

use std::fmt::Write as _;

use serde_json::Value;
use sha2::{Digest, Sha256};

/// The fields that are not compared.
const APART: [&str; 4] = ["apiVersion", "kind", "metadata", "status"];

/// Whether two objects, as the host completes them, have the same content.
pub fn is_same(one: &Value, other: &Value) -> bool {
    content(one).eq(content(other))
}

/// The digest of the content of an object. It identifies a pending change.
pub fn digest(object: &Value) -> String {
    let mut hash = Sha256::new();
    for (key, value) in content(object) {
        // A key is a Go identifier, so it has no line feed. JSON has none outside of strings.
        hash.update(format!("{key}:{value}\n"));
    }
    hash.finalize().iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a string");
        text
    })
}

/// The compared fields, by key. Maps of `serde_json` are ordered.
fn content(object: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let members = object.as_object().into_iter().flatten();
    members.filter(|(key, value)| !APART.contains(&key.as_str()) && !value.is_null())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn metadata_and_status_are_not_compared() {
        let one =
            json!({"kind": "A", "metadata": {"name": "a"}, "spec": {"b": 1, "a": [1, 2]}, "status": 1, "x": null});
        let same = json!({"spec": {"a": [1, 2], "b": 1}, "metadata": {"name": "b"}});
        let other = json!({"spec": {"a": [2, 1], "b": 1}});
        assert!(is_same(&one, &same) && !is_same(&one, &other));
        assert_eq!(digest(&one), digest(&same));
        assert_ne!(digest(&one), digest(&other));
        assert_ne!(digest(&json!({"a": "b\nc:\"d\""})), digest(&json!({"a": "b", "c": "d"})));
    }
}

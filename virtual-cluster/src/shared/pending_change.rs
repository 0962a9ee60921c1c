//! What an object says, apart from whose it is and how it fares.

use std::fmt::Write as _;

use serde_json::Value;
use sha2::{Digest, Sha256};

/// What is not part of it.
const APART: [&str; 4] = ["apiVersion", "kind", "metadata", "status"];

/// Whether two objects, as the host completes them, say the same.
pub fn is_same(one: &Value, other: &Value) -> bool {
    said(one).eq(said(other))
}

/// What says the same has the same digest.
pub fn digest(object: &Value) -> String {
    let mut hash = Sha256::new();
    for (key, value) in said(object) {
        // A key is a Go identifier with a small letter, and JSON holds no line feed outside of texts.
        hash.update(format!("{key}:{value}\n"));
    }
    hash.finalize().iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a string");
        text
    })
}

/// By key; maps of `serde_json` are ordered.
fn said(object: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let members = object.as_object().into_iter().flatten();
    members.filter(|(key, value)| !APART.contains(&key.as_str()) && !value.is_null())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn metadata_and_status_are_apart() {
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

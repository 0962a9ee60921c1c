//! Parses objects that clients have written.
//!
//! serde_json gives up below 128 levels, and kube-apiserver stores 10,000. Everybody who may write an object can choose the
//! levels of its managed fields, which nobody reads here. So an object that cannot be parsed is parsed without them.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};

type Members = BTreeMap<String, Box<RawValue>>;

/// The object as a `T`.
pub(super) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, serde_json::Error> {
    serde_json::from_str(text).or_else(|error| match without_managed_fields(text) {
        Ok(text) => serde_json::from_str(&text),
        Err(_) => Err(error),
    })
}

fn without_managed_fields(text: &str) -> Result<String, serde_json::Error> {
    let mut object: Members = serde_json::from_str(text)?;
    if let Some(metadata) = object.get_mut("metadata") {
        let mut members: Members = serde_json::from_str(metadata.get())?;
        members.remove("managedFields");
        *metadata = to_raw_value(&members)?;
    }
    serde_json::to_string(&object)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn managed_fields_can_have_any_depth() {
        for levels in [1, 100, 130, 10_000] {
            let fields = format!("{}{{}}{}", "{\"f:a\":".repeat(levels), "}".repeat(levels));
            let text = format!(
                "{{\"metadata\":{{\"name\":\"a\",\"managedFields\":[{{\"fieldsV1\":{fields}}}],\"uid\":\"1\"}},\"spec\":[1]}}"
            );
            let mut object: Value = parse(&text).unwrap();
            object["metadata"].as_object_mut().unwrap().remove("managedFields");
            assert_eq!(object, json!({"metadata": {"name": "a", "uid": "1"}, "spec": [1]}), "{levels}");
        }
        assert!(parse::<Value>("{").is_err());
        assert!(parse::<Value>(&"[".repeat(200)).is_err());
    }
}

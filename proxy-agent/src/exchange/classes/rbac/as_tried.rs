//! Writes of exactly the object that was tried.

use std::collections::HashMap;

use bytes::Bytes;
use rewrite::json_patch::JsonPatch;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::refusal::Refusal;

/// An apply that the host refuses if its object is another one than in the dry run that had this `result`, or has changed.
/// All other text is the same: the host reads it as YAML, which is not the same after it has been parsed as JSON.
pub(crate) fn as_tried(apply: &Bytes, result: &Value, is_new: bool) -> Result<Bytes, Refusal> {
    let unreadable = |error: serde_json::Error| Refusal::Unreadable(error.to_string());
    let members: HashMap<String, &RawValue> = serde_json::from_slice(apply).map_err(unreadable)?;
    let mut operations = Vec::new();
    if members.get("metadata").is_none_or(|metadata| metadata.get() == "null") {
        operations.push(json!({"op": "add", "path": "/metadata", "value": {}}));
    }
    let mut pinned = Map::new();
    if is_new {
        // A version keeps an apply from changing an object, and not from creating one (`Update` in apiserver's
        // `registry/generic/registry/store.go`). No object has this one, which is that of an empty etcd.
        pinned.insert("resourceVersion".to_owned(), "1".into());
    } else {
        // Without the uid, the apply would create an object that was deleted in the meantime.
        for key in ["uid", "resourceVersion"] {
            pinned.insert(key.to_owned(), result["metadata"][key].clone());
        }
    }
    for (key, value) in pinned {
        operations.push(json!({"op": "add", "path": format!("/metadata/{key}"), "value": value}));
    }
    let patch = JsonPatch::parse(&Value::from(operations).to_string().into()).expect("a patch of additions");
    patch.apply(apply.clone()).map_err(|_| Refusal::Unreadable("the metadata of an apply is no object".to_owned()))
}

/// The result of a dry run, for a PUT. If it has no managed fields, the client has cleared them, but a PUT without
/// managed fields keeps the stored ones (`decodeLiveOrNew` and `isResetManagedFields` in apimachinery's
/// `pkg/util/managedfields/internal/fieldmanager.go`). So they are cleared explicitly.
pub(crate) fn without_managers(text: Bytes, result: &Value) -> Result<Bytes, Refusal> {
    if !result["metadata"]["managedFields"].is_null() {
        return Ok(text);
    }
    let clear = Bytes::from_static(br#"[{"op":"add","path":"/metadata/managedFields","value":[{}]}]"#);
    let clear = JsonPatch::parse(&clear).expect("a patch of one operation");
    clear.apply(text).map_err(|_| Refusal::Unreadable("its metadata is no object".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_apply_is_for_what_was_tried() {
        let result = json!({"metadata": {"name": "a", "uid": "u", "resourceVersion": "7"}});
        let tried = |apply: &Value, is_new: bool| -> Value {
            serde_json::from_slice(&as_tried(&apply.to_string().into(), &result, is_new).unwrap()).unwrap()
        };
        for bare in [json!({}), json!({"metadata": null}), json!({"metadata": {}})] {
            assert_eq!(tried(&bare, true), json!({"metadata": {"resourceVersion": "1"}}));
            assert_eq!(tried(&bare, false), json!({"metadata": {"uid": "u", "resourceVersion": "7"}}));
        }
        let named = json!({"metadata": {"name": "a", "resourceVersion": "5"}, "rules": []});
        assert_eq!(tried(&named, true), json!({"metadata": {"name": "a", "resourceVersion": "1"}, "rules": []}));
        for unreadable in ["{", r#"{"metadata":"a"}"#, "[]"] {
            assert!(as_tried(&unreadable.into(), &result, true).is_err(), "{unreadable}");
        }
    }

    #[test]
    fn text_stays_as_it_is() {
        let apply = r#"{"metadata": {"name":"a", "annotations": {"a": "\u0085\ud83d\ude00"}}, "b": 1e2}"#;
        let tried = as_tried(&apply.into(), &Value::Null, true).unwrap();
        let tried = std::str::from_utf8(&tried).unwrap();
        for part in [r#""name":"a""#, r"\u0085\ud83d\ude00", "1e2", r#""resourceVersion":"1""#] {
            assert!(tried.contains(part), "{tried}");
        }
    }

    #[test]
    fn cleared_managers_stay_cleared() {
        let put = |metadata: Value| -> Value {
            let result = json!({"metadata": metadata, "rules": []});
            let text = without_managers(result.to_string().into(), &result).unwrap();
            serde_json::from_slice(&text).unwrap()
        };
        let managed = json!({"name": "a", "managedFields": [{"manager": "b"}]});
        assert_eq!(put(managed.clone()), json!({"metadata": managed, "rules": []}));
        let cleared = json!({"metadata": {"name": "a", "managedFields": [{}]}, "rules": []});
        assert_eq!(put(json!({"name": "a"})), cleared);
    }
}

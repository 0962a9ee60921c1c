//! JSON patch (RFC 6902) and merge patch (RFC 7386).

use serde_json::{Map, Value};

/// An operation cannot be applied. As in kube-apiserver, the error does not say which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotApplicable;

/// Applies the operations in order.
pub(super) fn patch(document: &mut Value, operations: &[Value]) -> Result<(), NotApplicable> {
    operations.iter().try_for_each(|operation| one(document, operation))
}

fn one(document: &mut Value, operation: &Value) -> Result<(), NotApplicable> {
    let path = operation["path"].as_str().ok_or(NotApplicable)?;
    let value = || operation.get("value").cloned().ok_or(NotApplicable);
    let from = || operation["from"].as_str().ok_or(NotApplicable);
    match operation["op"].as_str() {
        Some("add") => add(document, path, value()?),
        Some("remove") => remove(document, path).map(drop),
        Some("replace") => {
            *document.pointer_mut(path).ok_or(NotApplicable)? = value()?;
            Ok(())
        }
        // The value is removed first, so it cannot be moved into itself.
        Some("move") => {
            let moved = remove(document, from()?)?;
            add(document, path, moved)
        }
        Some("copy") => {
            let copied = document.pointer(from()?).ok_or(NotApplicable)?.clone();
            add(document, path, copied)
        }
        Some("test") if document.pointer(path) == Some(&value()?) => Ok(()),
        _ => Err(NotApplicable),
    }
}

fn add(document: &mut Value, path: &str, value: Value) -> Result<(), NotApplicable> {
    let Some((parent, last)) = split(path)? else {
        *document = value;
        return Ok(());
    };
    match document.pointer_mut(parent).ok_or(NotApplicable)? {
        Value::Object(fields) => {
            fields.insert(last, value);
        }
        Value::Array(items) => {
            let at = if last == "-" { items.len() } else { index(&last)? };
            if at > items.len() {
                return Err(NotApplicable);
            }
            items.insert(at, value);
        }
        _ => return Err(NotApplicable),
    }
    Ok(())
}

fn remove(document: &mut Value, path: &str) -> Result<Value, NotApplicable> {
    let (parent, last) = split(path)?.ok_or(NotApplicable)?;
    match document.pointer_mut(parent).ok_or(NotApplicable)? {
        Value::Object(fields) => fields.remove(&last).ok_or(NotApplicable),
        Value::Array(items) => {
            let at = index(&last)?;
            if at < items.len() { Ok(items.remove(at)) } else { Err(NotApplicable) }
        }
        _ => Err(NotApplicable),
    }
}

/// The pointer of the parent, and the last token (RFC 6901). `None` for the whole document.
fn split(path: &str) -> Result<Option<(&str, String)>, NotApplicable> {
    if path.is_empty() {
        return Ok(None);
    }
    let (parent, last) = path.rsplit_once('/').ok_or(NotApplicable)?;
    Ok(Some((parent, last.replace("~1", "/").replace("~0", "~"))))
}

/// Parses an index, which has no leading zeros.
fn index(token: &str) -> Result<usize, NotApplicable> {
    if token.len() > 1 && token.starts_with('0') {
        return Err(NotApplicable);
    }
    token.parse().map_err(|_| NotApplicable)
}

/// Applies a merge patch. Null removes a field.
pub(super) fn merge(document: &mut Value, patch: &Value) {
    let Some(changes) = patch.as_object() else {
        *document = patch.clone();
        return;
    };
    if !document.is_object() {
        *document = Value::Object(Map::new());
    }
    let Some(fields) = document.as_object_mut() else { return };
    for (name, change) in changes {
        if change.is_null() {
            fields.remove(name);
        } else {
            merge(fields.entry(name).or_insert(Value::Null), change);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn patched(mut document: Value, operations: &Value) -> Result<Value, NotApplicable> {
        patch(&mut document, operations.as_array().unwrap())?;
        Ok(document)
    }

    #[test]
    fn every_operation_conforms_to_the_rfc() {
        let document = json!({"a": [1, 2], "b/c": {"~": 1}});
        for (operation, expected) in [
            (json!({"op": "add", "path": "/a/1", "value": 9}), json!({"a": [1, 9, 2], "b/c": {"~": 1}})),
            (json!({"op": "add", "path": "/a/-", "value": 9}), json!({"a": [1, 2, 9], "b/c": {"~": 1}})),
            (json!({"op": "remove", "path": "/b~1c/~0"}), json!({"a": [1, 2], "b/c": {}})),
            (json!({"op": "replace", "path": "/a", "value": null}), json!({"a": null, "b/c": {"~": 1}})),
            (json!({"op": "move", "from": "/a/0", "path": "/d"}), json!({"a": [2], "b/c": {"~": 1}, "d": 1})),
            (json!({"op": "copy", "from": "/a/0", "path": "/a/2"}), json!({"a": [1, 2, 1], "b/c": {"~": 1}})),
            (json!({"op": "test", "path": "/a/0", "value": 1}), document.clone()),
        ] {
            assert_eq!(patched(document.clone(), &json!([operation])), Ok(expected), "{operation}");
        }
    }

    #[test]
    fn inapplicable_operations_are_refused() {
        for operation in [
            json!({"op": "remove", "path": "/b"}),
            json!({"op": "add", "path": "/a/3", "value": 1}),
            json!({"op": "add", "path": "/a/01", "value": 1}),
            json!({"op": "add", "path": "/b/c", "value": 1}),
            json!({"op": "replace", "path": "/b", "value": 1}),
            json!({"op": "test", "path": "/a/0", "value": 2}),
            json!({"op": "move", "from": "/a", "path": "/a/0"}),
            json!({"op": "other", "path": "/a"}),
            json!("x"),
        ] {
            assert_eq!(patched(json!({"a": [1]}), &json!([operation])), Err(NotApplicable), "{operation}");
        }
    }

    #[test]
    fn a_merge_patch_merges_objects_and_null_removes() {
        let mut document = json!({"a": {"b": 1, "c": 2}, "l": [1]});
        merge(&mut document, &json!({"a": {"b": null, "d": {"e": null, "f": 3}}, "l": [2]}));
        assert_eq!(document, json!({"a": {"c": 2, "d": {"f": 3}}, "l": [2]}));
    }
}

//! JSON patches (RFC 6902), read and applied as kube-apiserver does (`gopkg.in/evanphx/json-patch.v4`).
//!
//! The library is laxer than the RFC: indices count from the end if they are negative, `replace` makes a member that was
//! not there, null is the same as nothing, and what stands before the first slash of a path is passed over.

use serde_json::{Map, Value};

/// The most operations of one patch (`maxJSONPatchOperations` in apiserver's `handlers/patch.go`).
const MAX_OPERATIONS: usize = 10_000;

/// A patch that can be read; whether it can be applied is another matter.
#[derive(Debug)]
pub(in crate::exchange) struct JsonPatch {
    operations: Vec<Operation>,
}

/// The body is none: no array of objects, too long, or with something else than text for `op`, `path` or `from`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::exchange) struct NotAPatch;

/// The patch does not apply to the object; why is told to nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::exchange) struct DoesNotApply;

#[derive(Debug)]
struct Operation {
    op: Option<String>,
    path: Option<String>,
    from: Option<String>,
    value: Option<Value>,
}

// === impl JsonPatch ===

impl JsonPatch {
    pub(in crate::exchange) fn parse(body: &[u8]) -> Result<Self, NotAPatch> {
        let parsed: Option<Vec<Option<Map<String, Value>>>> = serde_json::from_slice(body).map_err(|_| NotAPatch)?;
        let parsed = parsed.unwrap_or_default();
        if parsed.len() > MAX_OPERATIONS {
            return Err(NotAPatch);
        }
        let operations = parsed.into_iter().map(|members| Operation::of(members.unwrap_or_default()));
        Ok(Self { operations: operations.collect::<Result<_, _>>()? })
    }

    /// The pointers to all that is read or written.
    pub(in crate::exchange) fn pointers(&self) -> impl Iterator<Item = &str> {
        self.operations.iter().flat_map(|operation| [&operation.path, &operation.from]).filter_map(Option::as_deref)
    }

    pub(in crate::exchange) fn apply(&self, object: &mut Value) -> Result<(), DoesNotApply> {
        self.operations.iter().try_for_each(|operation| operation.apply(object))
    }
}

// === impl Operation ===

impl Operation {
    fn of(mut members: Map<String, Value>) -> Result<Self, NotAPatch> {
        let mut text = |key: &str| match members.remove(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(NotAPatch),
        };
        let (op, path, from) = (text("op")?, text("path")?, text("from")?);
        Ok(Self { op, path, from, value: members.remove("value") })
    }

    fn apply(&self, object: &mut Value) -> Result<(), DoesNotApply> {
        let path = self.path.as_deref().ok_or(DoesNotApply);
        let from = self.from.as_deref().ok_or(DoesNotApply);
        let value = || self.value.clone().unwrap_or_default();
        match self.op.as_deref() {
            Some("add") => add(object, path?, value()),
            Some("remove") => remove(object, path?).map(drop),
            Some("replace") => replace(object, path?, value()),
            Some("move") => {
                let moved = remove(object, from?)?;
                add(object, path?, moved)
            }
            Some("copy") => {
                let (container, key) = find(object, from?)?;
                let copied = member(container, &key)?.cloned().unwrap_or_default();
                add(object, path?, copied)
            }
            Some("test") => test(object, path?, self.value.as_ref().unwrap_or(&Value::Null)),
            _ => Err(DoesNotApply),
        }
    }
}

fn add(object: &mut Value, path: &str, value: Value) -> Result<(), DoesNotApply> {
    match find(object, path)? {
        (Value::Object(members), key) => drop(members.insert(key, value)),
        (Value::Array(elements), key) if key == "-" => elements.push(value),
        (Value::Array(elements), key) => {
            let at = index(&key, elements.len() + 1)?;
            elements.insert(at, value);
        }
        _ => return Err(DoesNotApply),
    }
    Ok(())
}

fn remove(object: &mut Value, path: &str) -> Result<Value, DoesNotApply> {
    match find(object, path)? {
        (Value::Object(members), key) => members.remove(&key).ok_or(DoesNotApply),
        (Value::Array(elements), key) => {
            let at = index(&key, elements.len())?;
            Ok(elements.remove(at))
        }
        _ => Err(DoesNotApply),
    }
}

fn replace(object: &mut Value, path: &str, value: Value) -> Result<(), DoesNotApply> {
    if path.is_empty() {
        if !value.is_object() && !value.is_array() {
            return Err(DoesNotApply);
        }
        *object = value;
        return Ok(());
    }
    match find(object, path)? {
        (Value::Object(members), key) => drop(members.insert(key, value)),
        (Value::Array(elements), key) => {
            let at = index(&key, elements.len())?;
            elements[at] = value;
        }
        _ => return Err(DoesNotApply),
    }
    Ok(())
}

fn test(object: &mut Value, path: &str, wanted: &Value) -> Result<(), DoesNotApply> {
    if path.is_empty() {
        return if object == wanted { Ok(()) } else { Err(DoesNotApply) };
    }
    let (container, key) = find(object, path)?;
    let found = member(container, &key)?.unwrap_or(&Value::Null);
    if found == wanted { Ok(()) } else { Err(DoesNotApply) }
}

/// The object or array that the last segment of a path is in, and that segment.
fn find<'v>(object: &'v mut Value, path: &str) -> Result<(&'v mut Value, String), DoesNotApply> {
    let (path, last) = path.rsplit_once('/').ok_or(DoesNotApply)?;
    let mut found = object;
    for segment in path.split('/').skip(1) {
        let key = decoded(segment);
        found = match found {
            Value::Object(members) => members.get_mut(&key).ok_or(DoesNotApply)?,
            Value::Array(elements) => {
                let at = index(&key, elements.len())?;
                &mut elements[at]
            }
            _ => return Err(DoesNotApply),
        };
    }
    if found.is_object() || found.is_array() { Ok((found, decoded(last))) } else { Err(DoesNotApply) }
}

fn member<'v>(container: &'v Value, key: &str) -> Result<Option<&'v Value>, DoesNotApply> {
    match container {
        Value::Array(elements) => Ok(Some(&elements[index(key, elements.len())?])),
        _ => Ok(container.get(key)),
    }
}

/// The position of one of `length` elements.
fn index(key: &str, length: usize) -> Result<usize, DoesNotApply> {
    let number: i64 = key.parse().map_err(|_| DoesNotApply)?;
    let position = match usize::try_from(number) {
        Ok(position) => Some(position),
        Err(_) => usize::try_from(number.unsigned_abs()).ok().and_then(|back| length.checked_sub(back)),
    };
    position.filter(|position| *position < length).ok_or(DoesNotApply)
}

fn decoded(segment: &str) -> String {
    segment.replace("~1", "/").replace("~0", "~")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn patched(patch: &Value) -> Result<Value, DoesNotApply> {
        let mut object = json!({"a": {"b": [1, 2, 3], "c/d": "x", "n": null}});
        JsonPatch::parse(patch.to_string().as_bytes()).unwrap().apply(&mut object).map(|()| object)
    }

    #[test]
    fn applies_as_the_library_does() {
        for (patch, expected) in [
            (json!([{"op": "add", "path": "/a/b/-", "value": 4}]), json!([1, 2, 3, 4])),
            (json!([{"op": "add", "path": "/a/b/1", "value": 4}]), json!([1, 4, 2, 3])),
            (json!([{"op": "add", "path": "/a/b/-1", "value": 4}]), json!([1, 2, 3, 4])),
            (json!([{"op": "remove", "path": "/a/b/-1"}]), json!([1, 2])),
            (json!([{"op": "replace", "path": "/a/b/0", "value": 9}]), json!([9, 2, 3])),
            (json!([{"op": "replace", "path": "x/a/b/0", "value": 9}]), json!([9, 2, 3])),
            (json!([{"op": "move", "from": "/a/b/0", "path": "/a/b/2"}]), json!([2, 3, 1])),
            (json!([{"op": "copy", "from": "/a/c~1d", "path": "/a/b/0"}]), json!(["x", 1, 2, 3])),
            (
                json!([{"op": "test", "path": "/a/n"}, {"op": "test", "path": "/a/none", "value": null}]),
                json!([1, 2, 3]),
            ),
            (json!([{"op": "replace", "path": "/a/none", "value": 1}]), json!([1, 2, 3])),
            (json!([{"op": "copy", "from": "/a/none", "path": "/a/b/0"}]), json!([null, 1, 2, 3])),
        ] {
            assert_eq!(patched(&patch).map(|object| object["a"]["b"].clone()), Ok(expected), "{patch}");
        }
        assert_eq!(patched(&json!([{"op": "replace", "path": "", "value": {}}])), Ok(json!({})));
        assert_eq!(JsonPatch::parse(b"null").unwrap().pointers().count(), 0);
    }

    #[test]
    fn does_not_apply_where_the_library_does_not() {
        for operation in [
            json!({"op": "test", "path": "/a/b/0", "value": 2}),
            json!({"op": "test", "path": "/a/b", "value": null}),
            json!({"op": "test", "path": "", "value": {}}),
            json!({"op": "remove", "path": "/a/none"}),
            json!({"op": "remove", "path": "/a/b/3"}),
            json!({"op": "remove", "path": "/a/b/-4"}),
            json!({"op": "replace", "path": "/a/b/3", "value": 1}),
            json!({"op": "replace", "path": "", "value": 1}),
            json!({"op": "add", "path": "/a/b/5", "value": 1}),
            json!({"op": "add", "path": "/a/b/x", "value": 1}),
            json!({"op": "add", "path": "/x/y/z", "value": 1}),
            json!({"op": "add", "path": "/a/n/z", "value": 1}),
            json!({"op": "add", "path": "a", "value": 1}),
            json!({"op": "add", "path": "", "value": 1}),
            json!({"op": "add", "value": 1}),
            json!({"op": "move", "from": "/a/none", "path": "/b"}),
            json!({"op": "copy", "from": "/x/y", "path": "/b"}),
            json!({"op": "move", "path": "/b"}),
            json!({"op": "frob", "path": "/a"}),
            json!({"path": "/a"}),
            json!(null),
        ] {
            assert_eq!(patched(&json!([operation])), Err(DoesNotApply), "{operation}");
        }
    }

    #[test]
    fn what_is_no_patch() {
        for body in ["", "{}", "[7]", "[{\"op\":7}]", "[{\"op\":\"add\",\"path\":{}}]", "[{\"from\":[]}]", "[{}", "x"] {
            assert_eq!(JsonPatch::parse(body.as_bytes()).unwrap_err(), NotAPatch, "{body}");
        }
        assert!(JsonPatch::parse(format!("[{}]", vec!["{}"; 10_001].join(",")).as_bytes()).is_err());
    }
}

//! Checks objects in JSON against the schema. As in kube-apiserver, a wrong type is an error, and an unknown field is
//! dropped, or an error with `fieldValidation=Strict`.

use kube_wire::Status;
use serde_json::{Value, json};

use super::fields::{Count, Entry, Kind, Message, Schema};

/// Drops unknown fields and returns their paths.
pub(crate) fn conform(api_version: &str, kind: &str, object: &mut Value) -> Result<Vec<String>, Status> {
    let schema = Schema::get();
    let Some(message) = schema.root(api_version, kind) else { return Ok(Vec::new()) };
    let mut unknown = Vec::new();
    fields(schema, message, object, "", &mut unknown).map_err(|(at, due)| {
        let version = api_version.rsplit('/').next().unwrap_or_default();
        let message = format!("{kind} in version {version:?} cannot be handled as a {kind}: {at} must be {due}");
        Status::bad_request(message)
    })?;
    Ok(unknown)
}

/// A path, and the expected type.
type Wrong = (String, &'static str);

fn fields(
    schema: &Schema,
    message: &Message,
    value: &mut Value,
    at: &str,
    unknown: &mut Vec<String>,
) -> Result<(), Wrong> {
    if value.is_null() {
        return Ok(());
    }
    let Some(object) = value.as_object_mut() else { return Err((shown(at), "an object")) };
    let mut dropped = Vec::new();
    for (name, value) in object.iter_mut() {
        let at = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
        match message.named(schema, name) {
            Some(entry) => self::entry(schema, entry, value, &at, unknown)?,
            // The object itself has them, but its message has not.
            None if !at.contains('.') && matches!(name.as_str(), "apiVersion" | "kind") => {}
            None => {
                dropped.push(name.clone());
                unknown.push(at);
            }
        }
    }
    for name in dropped {
        object.remove(&name);
    }
    Ok(())
}

fn entry(schema: &Schema, entry: &Entry, value: &mut Value, at: &str, unknown: &mut Vec<String>) -> Result<(), Wrong> {
    match (entry.count, &mut *value) {
        (_, Value::Null) => Ok(()),
        (Count::Many, Value::Array(items)) => items.iter_mut().enumerate().try_for_each(|(index, item)| {
            // Go decodes a null in a list to a zero value.
            if item.is_null() && matches!(entry.kind, Kind::Message(_)) {
                *item = json!({});
            }
            one(schema, entry.kind, item, &format!("{at}[{index}]"), unknown)
        }),
        (Count::Many, _) => Err((shown(at), "a list")),
        (Count::Map, Value::Object(items)) => {
            items.iter_mut().try_for_each(|(key, item)| one(schema, entry.kind, item, &format!("{at}.{key}"), unknown))
        }
        (Count::Map, _) => Err((shown(at), "an object")),
        _ => one(schema, entry.kind, value, at, unknown),
    }
}

fn one(schema: &Schema, kind: Kind, value: &mut Value, at: &str, unknown: &mut Vec<String>) -> Result<(), Wrong> {
    let (is_right, due) = match kind {
        Kind::Message(name) => match schema.message(name) {
            Some(message) => return fields(schema, message, value, at, unknown),
            None => (true, ""),
        },
        Kind::Text | Kind::Bytes => (value.is_string(), "a string"),
        Kind::Integer => (value.is_i64(), "an integer"),
        Kind::Bool => (value.is_boolean(), "a boolean"),
        Kind::Special("Time" | "MicroTime" | "Duration") => (value.is_string(), "a time"),
        Kind::Special("Quantity") => (value.is_string() || value.is_number(), "a quantity"),
        Kind::Special("IntOrString") => (value.is_string() || value.is_i64(), "an integer or a string"),
        Kind::Special("ExtraValue") => (value.is_array(), "a list"),
        Kind::Special(_) => (value.is_object(), "an object"),
    };
    if is_right || value.is_null() { Ok(()) } else { Err((shown(at), due)) }
}

fn shown(at: &str) -> String {
    if at.is_empty() { "the body".to_owned() } else { at.chars().take(200).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_types_are_refused() {
        for (wrong, at) in [
            (json!({"spec": {"replicas": "many"}}), "spec.replicas must be an integer"),
            (
                json!({"spec": {"template": {"spec": {"containers": {}}}}}),
                "spec.template.spec.containers must be a list",
            ),
            (json!({"metadata": {"labels": {"a": 1}}}), "metadata.labels.a must be a string"),
            (json!({"metadata": "x"}), "metadata must be an object"),
            (json!({"spec": {"template": {"spec": {"containers": ["x"]}}}}), "containers[0] must be an object"),
            (json!([]), "the body must be an object"),
        ] {
            let mut object = wrong;
            let refused = conform("apps/v1", "Deployment", &mut object).unwrap_err();
            assert!(refused.message.ends_with(at), "{refused}");
        }
    }

    #[test]
    fn null_in_a_list_is_a_zero_value() {
        let mut object = json!({"metadata": null, "spec": {"template": {"spec": {"containers": [null]}}}});
        assert_eq!(conform("apps/v1", "Deployment", &mut object), Ok(Vec::new()));
        assert_eq!(object["spec"]["template"]["spec"]["containers"], json!([{}]));
    }

    #[test]
    fn unknown_fields_are_named_and_dropped() {
        let volume = json!({"name": "v", "emptyDir": {"typo": 1}});
        let mut object = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "annotations": {"any": "thing"}},
            "spec": {"volumes": [volume], "kind": "x"},
        });
        let unknown = conform("v1", "Pod", &mut object).unwrap();
        assert_eq!(unknown, ["spec.kind", "spec.volumes[0].emptyDir.typo"]);
        assert_eq!(object["spec"], json!({"volumes": [{"name": "v", "emptyDir": {}}]}));
        assert_eq!(object["kind"], "Pod");
    }
}

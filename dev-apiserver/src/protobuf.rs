//! Request bodies in protobuf, converted to JSON. kubectl's `create` and `auth` commands send protobuf. Responses are always
//! JSON.
//!
//! `generate.py` generates the schema in `fields.txt`. A field that is not in it is refused, because the object would be
//! stored without it.

mod conform;
mod error;
mod fields;
mod special;

use kube_wire::Status;
use kube_wire::envelope::Envelope;
use kube_wire::proto::{Field, Reader};
use serde_json::{Map, Value};

pub(crate) use conform::conform;
use error::DecodeError;
use fields::{Count, Entry, Kind, Message, Schema};

/// Reads an object in an envelope.
pub(crate) fn object(bytes: &[u8]) -> Result<Value, Status> {
    let undecodable = |why: String| Status::bad_request(format!("the body of the request cannot be decoded: {why}"));
    let envelope = Envelope::decode(bytes).map_err(|error| undecodable(error.to_string()))?;
    let (version, kind) = (envelope.api_version, envelope.kind);
    let schema = Schema::get();
    let message = schema
        .root(version, kind)
        .ok_or_else(|| undecodable(format!("no kind {kind:?} is registered for version {version:?}")))?;
    let read = read(schema, message, Reader::new(envelope.raw)).map_err(|error| undecodable(error.to_string()))?;
    let mut object = read;
    object.insert("apiVersion".to_owned(), version.into());
    object.insert("kind".to_owned(), kind.into());
    Ok(Value::Object(object))
}

fn read(schema: &Schema, message: &Message, mut reader: Reader<'_>) -> Result<Map<String, Value>, DecodeError> {
    let mut object = Map::new();
    while let Some(field) = reader.next_field()? {
        let number = field.number;
        let entry = message.field(number).ok_or(DecodeError::Field { message: message.name, number })?;
        let name = entry.name.to_owned();
        match entry.count {
            Count::Inline => {
                if let Value::Object(fields) = value(schema, entry.kind, &field, &reader)? {
                    object.extend(fields);
                }
            }
            Count::Many => {
                let item = value(schema, entry.kind, &field, &reader)?;
                if let Value::Array(items) = object.entry(name).or_insert_with(|| Value::Array(Vec::new())) {
                    items.push(item);
                }
            }
            Count::Map => {
                let (key, item) = pair(schema, entry, reader.nested(field.bytes()?)?)?;
                if let Value::Object(items) = object.entry(name).or_insert_with(|| Value::Object(Map::new())) {
                    items.insert(key, item);
                }
            }
            Count::One | Count::Pointer => {
                let value = value(schema, entry.kind, &field, &reader)?;
                // Go writes all fields that are not pointers, even if they are zero.
                if entry.count == Count::Pointer || !is_zero(&value) {
                    object.insert(name, value);
                }
            }
        }
    }
    Ok(object)
}

fn value(schema: &Schema, kind: Kind, field: &Field<'_>, within: &Reader<'_>) -> Result<Value, DecodeError> {
    Ok(match kind {
        Kind::Text => field.text()?.into(),
        // Negative numbers are sign-extended to 64 bits.
        Kind::Integer => field.varint()?.cast_signed().into(),
        Kind::Bool => (field.varint()? != 0).into(),
        Kind::Bytes => special::base64(field.bytes()?),
        Kind::Special(name) => special::read(name, within.nested(field.bytes()?)?)?,
        Kind::Message(name) => {
            let message = schema.message(name).ok_or(DecodeError::Special(name))?;
            Value::Object(read(schema, message, within.nested(field.bytes()?)?)?)
        }
    })
}

/// Reads an entry of a map: a message with a key and a value.
fn pair(schema: &Schema, entry: &Entry, mut reader: Reader<'_>) -> Result<(String, Value), DecodeError> {
    let (mut key, mut item) = (String::new(), Value::Null);
    while let Some(field) = reader.next_field()? {
        match field.number {
            1 => field.text()?.clone_into(&mut key),
            2 => item = value(schema, entry.kind, &field, &reader)?,
            _ => {}
        }
    }
    if item.is_null() && entry.kind == Kind::Text {
        item = "".into();
    }
    Ok((key, item))
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_i64() == Some(0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube_wire::proto::Writer;
    use serde_json::json;

    fn message(fields: &[(u32, &[u8])]) -> Vec<u8> {
        let mut writer = Writer::new();
        for (number, bytes) in fields {
            writer.bytes(*number, bytes);
        }
        writer.into_bytes()
    }

    fn wrapped(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
        Envelope { api_version, kind, raw, ..Envelope::default() }.encode()
    }

    #[test]
    fn an_object_is_converted_to_json() {
        let metadata = message(&[(1, b"a"), (3, b""), (8, b""), (11, &message(&[(1, b"k"), (2, b"v")]))]);
        let raw = message(&[(1, &metadata), (2, &message(&[(1, b"x"), (2, b"1")]))]);
        let read = object(&wrapped("v1", "ConfigMap", &raw)).unwrap();
        let expected = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "labels": {"k": "v"}}, "data": {"x": "1"},
        });
        assert_eq!(read, expected);
    }

    #[test]
    fn every_group_has_delete_options() {
        let raw = message(&[(2, &message(&[(1, b"u")]))]);
        let read = object(&wrapped("rbac.authorization.k8s.io/v1", "DeleteOptions", &raw)).unwrap();
        assert_eq!(read["preconditions"]["uid"], "u");
    }

    #[test]
    fn an_inline_field_is_part_of_its_object() {
        let volume = message(&[(1, b"v"), (2, &message(&[(2, b"")]))]);
        let raw = message(&[(2, &message(&[(1, &volume)]))]);
        let read = object(&wrapped("v1", "Pod", &raw)).unwrap();
        assert_eq!(read["spec"]["volumes"], json!([{"name": "v", "emptyDir": {}}]));
    }

    #[test]
    fn unknown_kinds_and_fields_are_refused() {
        for body in [
            b"k8s".to_vec(),
            wrapped("v1", "Unknown", b""),
            wrapped("v1", "ConfigMap", &message(&[(99, b"")])),
            wrapped("v1", "ConfigMap", &[0xff]),
        ] {
            assert_eq!(object(&body).unwrap_err().code, 400);
        }
    }
}

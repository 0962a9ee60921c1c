//! The names in the metadata of an object, for callers that need them before they forward it.

use std::collections::BTreeMap;

use kube_wire::envelope::{Envelope, EnvelopeError};
use kube_wire::proto::Reader;

/// `metadata` of every kind (for instance `Pod` in core/v1 generated.proto).
const METADATA: u32 = 1;
/// `ObjectMeta` in apimachinery's meta/v1 generated.proto.
const NAME: u32 = 1;
/// Ibidem.
const GENERATE_NAME: u32 = 2;
/// Ibidem.
const UID: u32 = 5;
/// Ibidem.
const RESOURCE_VERSION: u32 = 6;
/// Ibidem.
const LABELS: u32 = 11;
/// Ibidem.
const FINALIZERS: u32 = 14;

/// The name in the metadata of an object. Absent fields are empty, as in Kubernetes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectName {
    /// `metadata.name`
    pub name: String,
    /// `metadata.generateName`
    pub generate_name: String,
}

/// Parts of the metadata of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectMetadata {
    /// `metadata.name`
    pub name: String,
    /// `metadata.uid`
    pub uid: String,
    /// `metadata.resourceVersion`
    pub resource_version: String,
    /// `metadata.labels`
    pub labels: BTreeMap<String, String>,
    /// `metadata.finalizers`
    pub finalizers: Vec<String>,
}

// === impl ObjectName ===

impl ObjectName {
    /// Reads the name of an enveloped object of any kind. An object with two names has none.
    pub fn of(body: &[u8]) -> Result<Self, EnvelopeError> {
        let object = Envelope::decode(body)?.raw;
        let mut found = Self::default();
        let Some(metadata) = only(object, METADATA)? else { return Ok(found) };
        let text = |bytes: Option<&[u8]>| bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        found.name = text(only(metadata, NAME)?).unwrap_or_default();
        found.generate_name = text(only(metadata, GENERATE_NAME)?).unwrap_or_default();
        Ok(found)
    }
}

// === impl ObjectMetadata ===

impl ObjectMetadata {
    /// Reads the metadata of an enveloped object of any kind.
    pub fn of(body: &[u8]) -> Result<Self, EnvelopeError> {
        let object = Envelope::decode(body)?.raw;
        let mut found = Self::default();
        let Some(metadata) = only(object, METADATA)? else { return Ok(found) };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut reader = Reader::new(metadata);
        while let Some(field) = reader.next_field()? {
            match field.number {
                NAME => found.name = text(field.bytes()?),
                UID => found.uid = text(field.bytes()?),
                RESOURCE_VERSION => found.resource_version = text(field.bytes()?),
                FINALIZERS => found.finalizers.push(text(field.bytes()?)),
                LABELS => {
                    let [key, value] = [1, 2].map(|number| only(field.bytes()?, number).map(Option::unwrap_or_default));
                    found.labels.insert(text(key?), text(value?));
                }
                _ => {}
            }
        }
        Ok(found)
    }
}

/// The content of a field of a message.
fn only(message: &[u8], number: u32) -> Result<Option<&[u8]>, EnvelopeError> {
    let mut reader = Reader::new(message);
    let mut found = None;
    while let Some(field) = reader.next_field()? {
        if field.number == number && found.replace(field.bytes()?).is_some() {
            return Err(EnvelopeError::Repeated(number));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube_wire::proto::Writer;

    fn object(metadata: &[(u32, &str)], times: usize) -> Vec<u8> {
        let mut inner = Writer::new();
        for (number, text) in metadata {
            inner.bytes(*number, text.as_bytes());
        }
        let inner = inner.into_bytes();
        let mut object = Writer::new();
        for _ in 0..times {
            object.bytes(METADATA, &inner);
        }
        Envelope { raw: &object.into_bytes(), ..Envelope::default() }.encode()
    }

    #[test]
    fn a_name_is_read_or_the_object_refused() {
        let named = |name: &str, generate_name: &str| {
            Ok(ObjectName { name: name.to_owned(), generate_name: generate_name.to_owned() })
        };
        assert_eq!(ObjectName::of(&object(&[(1, "a"), (3, "b"), (2, "c-")], 1)), named("a", "c-"));
        assert_eq!(ObjectName::of(&object(&[(3, "b")], 1)), named("", ""));
        assert_eq!(ObjectName::of(&object(&[], 0)), named("", ""));
        assert_eq!(ObjectName::of(&object(&[(1, "a"), (1, "b")], 1)), Err(EnvelopeError::Repeated(1)));
        assert_eq!(ObjectName::of(&object(&[(1, "a")], 2)), Err(EnvelopeError::Repeated(1)));
        assert_eq!(ObjectName::of(b"{}"), Err(EnvelopeError::Magic));
    }

    #[test]
    fn metadata_is_read() {
        let label = "\n\x01a\x12\x01b";
        let read = ObjectMetadata::of(&object(&[(1, "a"), (5, "u"), (6, "7"), (11, label), (14, "f"), (14, "g")], 1));
        let expected = ObjectMetadata {
            name: "a".to_owned(),
            uid: "u".to_owned(),
            resource_version: "7".to_owned(),
            labels: [("a".to_owned(), "b".to_owned())].into(),
            finalizers: vec!["f".to_owned(), "g".to_owned()],
        };
        assert_eq!(read, Ok(expected));
    }
}

//! How an object calls itself, for a caller that has to know before it sends it on.

use kube_wire::envelope::{Envelope, EnvelopeError};
use kube_wire::proto::Reader;

/// `metadata` of every kind (for instance `Pod` in core/v1 generated.proto).
const METADATA: u32 = 1;
/// `ObjectMeta` in apimachinery's meta/v1 generated.proto.
const NAME: u32 = 1;
/// Ibidem.
const GENERATE_NAME: u32 = 2;

/// The name in an object's metadata. What is absent is empty, as it is for Kubernetes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectName {
    /// `metadata.name`
    pub name: String,
    /// `metadata.generateName`
    pub generate_name: String,
}

// === impl ObjectName ===

impl ObjectName {
    /// Reads the name out of an enveloped object of any kind. An object that says it twice has none.
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

/// What is in a field of a message.
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
}

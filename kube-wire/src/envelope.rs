//! The wrapper around every Kubernetes object in protobuf: four bytes `k8s\0`, then a `runtime.Unknown` that names the
//! type and contains the message of the object (apimachinery's `pkg/runtime/generated.proto` and
//! `pkg/runtime/serializer/protobuf`).
//!
//! This module does not parse the object itself.

use crate::proto::{Reader, WireError, Writer};

/// The prefix of every protobuf object.
pub const MAGIC: [u8; 4] = *b"k8s\0";

/// A `runtime.Unknown` that borrows from its encoded bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// `typeMeta.apiVersion`
    pub api_version: &'a str,
    /// `typeMeta.kind`
    pub kind: &'a str,
    /// The message of the object, in the encoding of `content_type`.
    pub raw: &'a [u8],
    /// Empty unless the object is compressed, which no known client does.
    pub content_encoding: &'a str,
    /// Empty for protobuf.
    pub content_type: &'a str,
}

/// The bytes are not an enveloped object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EnvelopeError {
    /// The four bytes are missing.
    #[error("the data does not begin with the protobuf prefix of Kubernetes")]
    Magic,
    /// A field occurs twice. Go's reader uses the last one, but other readers may not.
    #[error("field {0} is repeated")]
    Repeated(u32),
    /// Not a protobuf message.
    #[error(transparent)]
    Wire(#[from] WireError),
}

// === impl Envelope ===

impl<'a> Envelope<'a> {
    /// Reads a whole body. Ignores unknown fields, as Go's reader does.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, EnvelopeError> {
        let message = bytes.strip_prefix(&MAGIC).ok_or(EnvelopeError::Magic)?;
        let mut reader = Reader::new(message);
        let mut envelope = Self::default();
        let mut seen = Once::default();
        while let Some(field) = reader.next_field()? {
            match field.number {
                1 => {
                    seen.mark(1)?;
                    (envelope.api_version, envelope.kind) = type_meta(reader.nested(field.bytes()?)?)?;
                }
                2 => {
                    seen.mark(2)?;
                    envelope.raw = field.bytes()?;
                }
                3 => {
                    seen.mark(3)?;
                    envelope.content_encoding = field.text()?;
                }
                4 => {
                    seen.mark(4)?;
                    envelope.content_type = field.text()?;
                }
                _ => {}
            }
        }
        Ok(envelope)
    }

    /// Writes it as the API server does: all fields, including empty ones.
    pub fn encode(&self) -> Vec<u8> {
        let mut meta = Writer::new();
        meta.bytes(1, self.api_version.as_bytes());
        meta.bytes(2, self.kind.as_bytes());
        let mut out = Vec::with_capacity(self.raw.len() + 64 + self.api_version.len() + self.kind.len());
        out.extend_from_slice(&MAGIC);
        let mut message = Writer::after(out);
        message.bytes(1, &meta.into_bytes());
        message.bytes(2, self.raw);
        message.bytes(3, self.content_encoding.as_bytes());
        message.bytes(4, self.content_type.as_bytes());
        message.into_bytes()
    }

    /// Whether `raw` is a plain protobuf message.
    pub fn holds_protobuf(&self) -> bool {
        self.content_encoding.is_empty() && matches!(self.content_type, "" | crate::media::PROTOBUF)
    }
}

fn type_meta(mut reader: Reader<'_>) -> Result<(&str, &str), EnvelopeError> {
    let (mut api_version, mut kind) = ("", "");
    let mut seen = Once::default();
    while let Some(field) = reader.next_field()? {
        match field.number {
            1 => {
                seen.mark(1)?;
                api_version = field.text()?;
            }
            2 => {
                seen.mark(2)?;
                kind = field.text()?;
            }
            _ => {}
        }
    }
    Ok((api_version, kind))
}

/// Which of the fields 1 to 7 have occurred.
#[derive(Default)]
struct Once(u8);

impl Once {
    fn mark(&mut self, field: u8) -> Result<(), EnvelopeError> {
        let bit = 1 << field;
        if self.0 & bit != 0 {
            return Err(EnvelopeError::Repeated(field.into()));
        }
        self.0 |= bit;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn malformed_envelopes_are_refused() {
        use EnvelopeError::*;
        for (bytes, expected) in [
            (&b""[..], Magic),
            (b"k8s", Magic),
            (b"{}  ", Magic),
            (b"k8s\0\x0a\x02", Wire(WireError::Truncated)),
            (b"k8s\0\x08\x02", Wire(WireError::UnexpectedType(1))),
            (b"k8s\0\x1a\x01\xff", Wire(WireError::NotUtf8(3))),
            (b"k8s\0\x12\0\x12\0", Repeated(2)),
            (b"k8s\0\x0a\x04\x12\0\x12\0", Repeated(2)),
        ] {
            assert_eq!(Envelope::decode(bytes), Err(expected), "{bytes:?}");
        }
        // An empty message and an unknown field are fine, as they are for Go.
        assert_eq!(Envelope::decode(b"k8s\0"), Ok(Envelope::default()));
        assert_eq!(Envelope::decode(b"k8s\0\x28\x01"), Ok(Envelope::default()));
    }

    proptest! {
        #[test]
        fn encoding_has_an_inverse(texts: [String; 4], raw: Vec<u8>) {
            let [api_version, kind, content_encoding, content_type] = &texts;
            let envelope = Envelope { api_version, kind, raw: &raw, content_encoding, content_type };
            let bytes = envelope.encode();
            prop_assert_eq!(Envelope::decode(&bytes), Ok(envelope));
        }

        #[test]
        fn no_input_panics(bytes: Vec<u8>) {
            let _ = Envelope::decode(&[&MAGIC, bytes.as_slice()].concat());
        }
    }
}

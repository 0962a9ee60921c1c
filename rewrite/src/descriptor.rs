//! The fields of protobuf messages on the paths to names. The tables are generated (`schema/README.md`).

/// Group, version and kind, and the message of such an object.
pub(crate) type KindMessage = (&'static str, &'static str, &'static str, &'static Descriptor);

/// A message of the Kubernetes API.
#[derive(Debug)]
pub(crate) struct Descriptor {
    pub(crate) fields: &'static [FieldDescriptor],
}

/// A field with the JSON key `key`.
#[derive(Debug)]
pub(crate) struct FieldDescriptor {
    pub(crate) key: &'static str,
    /// The number of the field, after those of surrounding messages that JSON omits (`inline` in Go).
    pub(crate) numbers: &'static [u32],
    pub(crate) shape: Shape,
    pub(crate) holds: Holds,
}

/// How often a field may occur.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Once.
    One,
    /// Once for each element of a list.
    Many,
    /// Once for each entry of a map with string keys.
    Map,
}

/// The type of a field, of each element of a list, or of each value of a map.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Holds {
    /// A string or bytes.
    Text,
    /// Bytes that hold JSON (`RawExtension`).
    Json,
    /// An `int32`.
    Number,
    /// A message.
    Message(&'static Descriptor),
}

// === impl Descriptor ===

impl Descriptor {
    /// The field with the JSON key `key`.
    pub(crate) fn field(&self, key: &str) -> Option<&'static FieldDescriptor> {
        self.fields.iter().find(|field| field.key == key)
    }

    /// The number of a field that this message itself has.
    pub(crate) fn number(&self, key: &str) -> Option<u32> {
        match self.field(key)?.numbers {
            [number] => Some(*number),
            _ => None,
        }
    }
}

//! What a protobuf message holds, as far as names are concerned. The tables are generated (`schema/README.md`).

/// A message of the Kubernetes API.
#[derive(Debug)]
pub(crate) struct Descriptor {
    pub(crate) fields: &'static [FieldDescriptor],
}

/// A field that JSON knows by `key`.
#[derive(Debug)]
pub(crate) struct FieldDescriptor {
    pub(crate) key: &'static str,
    /// The field's number, behind those of the messages around it that JSON leaves out (`inline` in Go).
    pub(crate) numbers: &'static [u32],
    pub(crate) shape: Shape,
    pub(crate) holds: Holds,
}

/// How often a field may be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Once.
    One,
    /// Once for each element of a list.
    Many,
    /// Once for each entry of a map with string keys.
    Map,
}

/// What is in a field, each element of a list, or each value of a map.
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
    /// The field that JSON knows by `key`.
    pub(crate) fn field(&self, key: &str) -> Option<&'static FieldDescriptor> {
        self.fields.iter().find(|field| field.key == key)
    }

    /// The number of a field that is in this very message.
    pub(crate) fn number(&self, key: &str) -> Option<u32> {
        match self.field(key)?.numbers {
            [number] => Some(*number),
            _ => None,
        }
    }
}

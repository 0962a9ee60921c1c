//! The result of a conversion.

/// A document as JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Converted {
    /// The text.
    pub json: Vec<u8>,
    /// Duplicate keys. The last one is used, unless fields are validated strictly.
    pub duplicates: Vec<Duplicate>,
}

/// A member of a mapping with the key of another member.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: key {key:?} already set in map")]
pub struct Duplicate {
    /// The key.
    pub key: String,
    /// The line on which its value begins, as yaml/v2 reports it (`setMapIndex` in `decode.go`).
    pub line: u32,
}

//! YAML as kube-apiserver reads it: `sigs.k8s.io/yaml`, which converts the result of `go.yaml.in/yaml/v2` to JSON.
//!
//! This is YAML 1.1: `0400` is 256, `on` is true, `<<` merges. The parser here is for YAML 1.2, whose grammar differs only in
//! a few cases. The module `scalar` determines the value of a scalar as Go does. Documents that the two would read differently
//! are refused.
//!
//! Aliases may expand as far as Go allows (`allowedAliasRatio` in yaml/v2's `decode.go`), and the size of the JSON is limited.

mod converted;
mod document;
mod error;
mod scalar;
mod write;

use document::Document;
use write::Writer;

use crate::json::{MAX_WEIGHT, OBJECT};

pub use converted::{Converted, Duplicate};
pub use error::YamlError;

/// The size limit of the JSON: that of a request body. A stored object has at most 1.5 MiB.
const MAX_JSON: usize = 3 * 1024 * 1024;

/// Converts the first document of a text to JSON. `null` if there is none.
pub fn to_json(text: &[u8]) -> Result<Converted, YamlError> {
    let text = std::str::from_utf8(text).map_err(|error| YamlError::Syntax(error.to_string()))?;
    if text.chars().skip(1).any(|character| character == '\u{feff}') {
        return Err(YamlError::Ambiguous("a byte order mark inside a document"));
    }
    if text.contains(['\u{85}', '\u{2028}', '\u{2029}']) {
        // They are line breaks only in YAML 1.1.
        return Err(YamlError::Ambiguous("a Unicode line break"));
    }
    let document = Document::parse(text)?;
    if document.is_empty() {
        return Ok(Converted { json: b"null".to_vec(), duplicates: Vec::new() });
    }
    Writer::new(&document, MAX_JSON).write()
}

/// A rough upper estimate of the memory of the parsed JSON, in bytes, before the text is parsed. With aliases, a short
/// document can be of any size up to the limit.
pub fn weight(text: &[u8]) -> usize {
    if memchr::memchr(b'&', text).is_some() && memchr::memchr(b'*', text).is_some() {
        return MAX_WEIGHT;
    }
    let collections = text.iter().filter(|byte| matches!(byte, b':' | b'?' | b'{' | b'[' | b'-' | b',')).count();
    text.len() + collections * OBJECT
}

#[cfg(test)]
mod tests;

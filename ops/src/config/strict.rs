//! Reads a document so that no unknown key is ignored.
//!
//! A wrapper ([`Strict`]) is between a `Deserialize` implementation and the YAML library, around each thing that one
//! passes to the other. Serde tells it which keys a struct knows. It records every other key with its location and
//! continues, so all of them are reported. `deny_unknown_fields` would stop at the first. It also joins
//! [`FilePath`](super::FilePath)s to a directory.
//!
//! Maps without fixed keys are not checked. Neither are structs that serde buffers (inside untagged and internally
//! tagged enums, or next to `flatten`): those need `deny_unknown_fields`, which reports no line.
//!
//! Reading order: `wrapper` (the type), then what it is for serde: `deserializer` (a value of the document), `visitor`
//! (what takes it), `access` (the contents of containers); `keys` and `key`.

mod access;
mod deserializer;
mod key;
mod keys;
mod visitor;
mod wrapper;

use std::cell::RefCell;
use std::path::Path;

use serde::de::Deserialize;

use super::documents::Text;
use super::problem::Problems;
use super::yaml;
use wrapper::{Expected, Reading, Strict};

/// A document that has been found in a file and not been read yet.
#[derive(Debug)]
pub struct Unread<'a> {
    pub(super) text: &'a Text,
    /// The directory of the file.
    pub(super) directory: &'a Path,
    pub(super) problems: &'a mut Problems,
}

// === impl Unread ===

impl<'a> Unread<'a> {
    /// Reads `T`, and reports unknown keys.
    ///
    /// # Errors
    /// The document is not a `T`.
    pub fn read<T: Deserialize<'a>>(self) -> Result<T, Problems> {
        let Self { text, directory, problems } = self;
        let reading = Reading { directory, problems: RefCell::new(problems) };
        serde_saphyr::with_deserializer_from_str_with_options(&text.0, yaml::options(), |inner| {
            T::deserialize(Strict { inner, reading: &reading, expected: Expected::Document })
        })
        .map_err(|error| yaml::problem(&error).into())
    }
}

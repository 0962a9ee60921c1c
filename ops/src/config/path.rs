//! Paths as a configuration file writes them.

use std::ffi::OsString;
use std::fmt;
use std::ops::Deref;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, Serialize};

use super::location::Located;

/// A file that a configuration names, relative to the directory of the configuration file.
///
/// The path is joined while the document is read, so the program never has a path that is not joined yet. Neither `~`
/// nor `${NAME}` is expanded.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct FilePath(PathBuf);

/// The name by which the reader of documents recognises a path and joins it. Other deserializers see an ordinary
/// newtype and leave the path as it is.
pub(super) const MARKER: &str = "atoll::config::FilePath";

// === impl FilePath ===

impl FilePath {
    /// The path.
    pub fn as_path(&self) -> &Path {
        &self.0
    }
}

impl From<PathBuf> for FilePath {
    fn from(path: PathBuf) -> Self {
        Self(path)
    }
}

impl From<PathBuf> for Located<FilePath> {
    fn from(path: PathBuf) -> Self {
        FilePath(path).into()
    }
}

impl Deref for FilePath {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl AsRef<Path> for FilePath {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl<'de> Deserialize<'de> for FilePath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PathVisitor;

        impl<'de> Visitor<'de> for PathVisitor {
            type Value = FilePath;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a file path")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<FilePath, E> {
                written(text).map(|text| FilePath(text.into()))
            }

            // A joined path arrives as bytes, because its directory need not be UTF-8.
            fn visit_byte_buf<E: Error>(self, joined: Vec<u8>) -> Result<FilePath, E> {
                Ok(FilePath(OsString::from_vec(joined).into()))
            }

            fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<FilePath, D::Error> {
                deserializer.deserialize_str(self)
            }
        }

        deserializer.deserialize_newtype_struct(MARKER, PathVisitor)
    }
}

/// Hands `visitor` the path of `deserializer`, joined to `directory`.
pub(super) fn join<'de, D, V>(directory: &Path, deserializer: D, visitor: V) -> Result<V::Value, D::Error>
where
    D: Deserializer<'de>,
    V: Visitor<'de>,
{
    let text = String::deserialize(deserializer)?;
    let joined = directory.join(written(&text)?);
    visitor.visit_byte_buf(joined.into_os_string().into_vec())
}

/// A path that can name a file: the kernel accepts neither an empty path nor one with a NUL.
fn written<E: Error>(text: &str) -> Result<&str, E> {
    if text.is_empty() {
        Err(E::custom("a file path must not be empty"))
    } else if text.contains('\0') {
        Err(E::custom("a file path must not contain a NUL character"))
    } else {
        Ok(text)
    }
}

//! Reads a document so that no unknown key is ignored.
//!
//! [`Strict`] is between a `Deserialize` implementation and the YAML library. Serde tells it which keys a struct knows.
//! It records every other key with its place and continues, so all of them are reported. `deny_unknown_fields` would
//! stop at the first. It also joins [`FilePath`](super::FilePath)s to a directory.
//!
//! Maps without fixed keys are not checked. Neither are structs that serde buffers (inside untagged and internally
//! tagged enums, or next to `flatten`): those need `deny_unknown_fields`, which reports no line.

mod access;
mod key;
mod visitor;

use std::cell::RefCell;
use std::path::Path;

use serde::de::{Deserialize, Deserializer, Visitor};

use super::documents::Text;
use super::problem::Problems;
use super::{path, yaml};
use visitor::Watch;

/// Keys of a document that belong to no type: `parse` has read them already.
const HEADER: [&str; 2] = ["apiVersion", "kind"];

/// What all levels of a document share.
struct Reading<'a> {
    directory: &'a Path,
    problems: RefCell<&'a mut Problems>,
}

/// A deserializer that passes its contents through [`Watch`].
struct Strict<'a, D> {
    inner: D,
    reading: &'a Reading<'a>,
    /// Whether this is the document itself, which has the two header keys besides its own.
    root: bool,
}

/// The keys of a struct.
#[derive(Clone, Copy)]
struct Keys {
    fields: &'static [&'static str],
    root: bool,
}

/// Reads `T`, and adds unknown keys to `problems`. Fails if `T` cannot be read.
pub(super) fn read<'de, T: Deserialize<'de>>(
    text: &'de Text,
    directory: &Path,
    problems: &mut Problems,
) -> Result<T, Problems> {
    let reading = Reading { directory, problems: RefCell::new(problems) };
    serde_saphyr::with_deserializer_from_str_with_options(&text.0, yaml::options(), |inner| {
        T::deserialize(Strict { inner, reading: &reading, root: true })
    })
    .map_err(|error| yaml::problem(&error).into())
}

// === impl Strict ===

impl<'a, D> Strict<'a, D> {
    fn watch<V>(&self, visitor: V) -> Watch<'a, V> {
        Watch { visitor, reading: self.reading, keys: None }
    }
}

macro_rules! forward {
    ($($method:ident)*) => {
        $(
            fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
                let visitor = self.watch(visitor);
                self.inner.$method(visitor)
            }
        )*
    };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Strict<'_, D> {
    type Error = D::Error;

    forward! {
        deserialize_any deserialize_bool
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128
        deserialize_f32 deserialize_f64 deserialize_char deserialize_str deserialize_string
        deserialize_bytes deserialize_byte_buf deserialize_option deserialize_unit
        deserialize_seq deserialize_map deserialize_identifier deserialize_ignored_any
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let mut visitor = self.watch(visitor);
        visitor.keys = Some(Keys { fields, root: self.root });
        self.inner.deserialize_struct(name, fields, visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, D::Error> {
        if name == path::MARKER {
            return path::join(self.reading.directory, self.inner, visitor);
        }
        let visitor = self.watch(visitor);
        self.inner.deserialize_newtype_struct(name, visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let visitor = self.watch(visitor);
        self.inner.deserialize_enum(name, variants, visitor)
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, D::Error> {
        let visitor = self.watch(visitor);
        self.inner.deserialize_unit_struct(name, visitor)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, D::Error> {
        let visitor = self.watch(visitor);
        self.inner.deserialize_tuple(len, visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let visitor = self.watch(visitor);
        self.inner.deserialize_tuple_struct(name, len, visitor)
    }

    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }
}

// === impl Keys ===

impl Keys {
    /// Whether the struct itself reads this key.
    fn know(&self, key: &str) -> bool {
        self.fields.contains(&key)
    }

    /// Whether the key belongs to the document and not to the struct.
    fn pass_over(&self, key: &str) -> bool {
        self.root && HEADER.contains(&key)
    }
}

//! A key of a struct, with its location.

use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::forward_to_deserialize_any;

use crate::config::location::{Located, Location};

/// A key as the file has it.
pub(super) struct Key {
    pub(super) text: String,
    pub(super) location: Option<Location>,
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let located = Located::<String>::deserialize(Lift(deserializer))?;
        Ok(Self { location: located.location(), text: located.into_inner() })
    }
}

/// Makes a bare string look like a newtype around it.
///
/// Serde requests a located value as a newtype. Keys of the file are newtypes. Keys of the structs that the YAML
/// library creates (the line and column of a located value) are bare strings.
struct Lift<T>(T);

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Lift<D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_any(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_newtype_struct(name, Lift(visitor))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct seq
        tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Lift<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<V::Value, E> {
        self.0.visit_newtype_struct(StrDeserializer::new(text))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        self.0.visit_newtype_struct(inner)
    }
}

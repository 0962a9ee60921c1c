//! The visitor that wraps values which contain other values.

use std::fmt;

use serde::de::{Deserializer, EnumAccess, Error, MapAccess, SeqAccess, Visitor};

use super::access::{Enum, Map, Seq};
use super::{Keys, Reading, Strict};

/// Forwards scalars and wraps containers.
pub(super) struct Watch<'a, V> {
    pub(super) visitor: V,
    pub(super) reading: &'a Reading<'a>,
    /// The keys of the struct that is expected here; `None` when it is anything else.
    pub(super) keys: Option<Keys>,
}

macro_rules! forward {
    ($($method:ident: $type:ty)*) => {
        $(
            fn $method<E: Error>(self, value: $type) -> Result<V::Value, E> {
                self.visitor.$method(value)
            }
        )*
    };
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Watch<'_, V> {
    type Value = V::Value;

    forward! {
        visit_bool: bool
        visit_i8: i8 visit_i16: i16 visit_i32: i32 visit_i64: i64 visit_i128: i128
        visit_u8: u8 visit_u16: u16 visit_u32: u32 visit_u64: u64 visit_u128: u128
        visit_f32: f32 visit_f64: f64 visit_char: char
        visit_str: &str visit_borrowed_str: &'de str visit_string: String
        visit_bytes: &[u8] visit_borrowed_bytes: &'de [u8] visit_byte_buf: Vec<u8>
    }

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.visitor.expecting(f)
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.visitor.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.visitor.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        let reading = self.reading;
        self.visitor.visit_some(Strict { inner, reading, root: false })
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        let reading = self.reading;
        self.visitor.visit_newtype_struct(Strict { inner, reading, root: false })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, inner: A) -> Result<V::Value, A::Error> {
        let reading = self.reading;
        self.visitor.visit_seq(Seq { inner, reading })
    }

    fn visit_map<A: MapAccess<'de>>(self, inner: A) -> Result<V::Value, A::Error> {
        let (reading, keys) = (self.reading, self.keys);
        self.visitor.visit_map(Map { inner, reading, keys })
    }

    fn visit_enum<A: EnumAccess<'de>>(self, inner: A) -> Result<V::Value, A::Error> {
        let reading = self.reading;
        self.visitor.visit_enum(Enum { inner, reading })
    }
}

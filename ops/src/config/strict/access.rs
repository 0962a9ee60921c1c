//! Sequences, maps and enums whose contents are read strictly.

use serde::de::value::StringDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, IgnoredAny, IntoDeserializer, MapAccess, SeqAccess, VariantAccess,
    Visitor,
};

use super::key::Key;
use super::visitor::Watch;
use super::{Keys, Reading, Strict};
use crate::config::problem::Problem;

/// A value that is read through [`Strict`].
struct Seed<'a, S> {
    inner: S,
    reading: &'a Reading<'a>,
}

pub(super) struct Seq<'a, A> {
    pub(super) inner: A,
    pub(super) reading: &'a Reading<'a>,
}

/// A map. With `keys`, it is a struct, and other keys are recorded and skipped.
pub(super) struct Map<'a, A> {
    pub(super) inner: A,
    pub(super) reading: &'a Reading<'a>,
    pub(super) keys: Option<Keys>,
}

/// An enum and, once its variant is known, the variant.
pub(super) struct Enum<'a, A> {
    pub(super) inner: A,
    pub(super) reading: &'a Reading<'a>,
}

// === impl Seed ===

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Seed<'_, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, inner: D) -> Result<S::Value, D::Error> {
        self.inner.deserialize(Strict { inner, reading: self.reading, root: false })
    }
}

// === impl Seq ===

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Seq<'_, A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, inner: S) -> Result<Option<S::Value>, A::Error> {
        let reading = self.reading;
        self.inner.next_element_seed(Seed { inner, reading })
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

// === impl Map ===

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Map<'_, A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        let Some(keys) = self.keys else {
            return self.inner.next_key_seed(seed);
        };
        while let Some(key) = self.inner.next_key::<Key>()? {
            if keys.know(&key.text) {
                let key: StringDeserializer<A::Error> = key.text.into_deserializer();
                return seed.deserialize(key).map(Some);
            }
            if !keys.pass_over(&key.text) {
                let known = keys.fields.join(", ");
                let message = format!("unknown key `{}`; known here: {known}", key.text);
                let mut problems = self.reading.problems.borrow_mut();
                problems.push(Problem::new(key.place, message));
            }
            self.inner.next_value::<IgnoredAny>()?;
        }
        Ok(None)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, inner: S) -> Result<S::Value, A::Error> {
        let reading = self.reading;
        self.inner.next_value_seed(Seed { inner, reading })
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

// === impl Enum ===

impl<'a, 'de, A: EnumAccess<'de>> EnumAccess<'de> for Enum<'a, A> {
    type Error = A::Error;
    type Variant = Enum<'a, A::Variant>;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self::Variant), A::Error> {
        let reading = self.reading;
        let (value, inner) = self.inner.variant_seed(seed)?;
        Ok((value, Enum { inner, reading }))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Enum<'_, A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.inner.unit_variant()
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, inner: S) -> Result<S::Value, A::Error> {
        let reading = self.reading;
        self.inner.newtype_variant_seed(Seed { inner, reading })
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, A::Error> {
        let reading = self.reading;
        self.inner.tuple_variant(len, Watch { visitor, reading, keys: None })
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        let keys = Some(Keys { fields, root: false });
        let reading = self.reading;
        self.inner.struct_variant(fields, Watch { visitor, reading, keys })
    }
}

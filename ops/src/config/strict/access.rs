//! Sequences, maps and enums whose contents are read strictly.

use serde::de::value::StringDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, IgnoredAny, IntoDeserializer, MapAccess, SeqAccess, VariantAccess,
    Visitor,
};

use super::key::Key;
use super::keys::Keys;
use super::wrapper::{Expected, Strict};
use crate::config::problem::Problem;

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Strict<'_, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, inner: D) -> Result<S::Value, D::Error> {
        let inner = self.around(inner);
        self.inner.deserialize(inner)
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Strict<'_, A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, inner: S) -> Result<Option<S::Value>, A::Error> {
        let seed = self.around(inner);
        self.inner.next_element_seed(seed)
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Strict<'_, A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        let Expected::Struct(keys) = self.expected else {
            return self.inner.next_key_seed(seed);
        };
        while let Some(key) = self.inner.next_key::<Key>()? {
            if keys.know(&key.text) {
                let key: StringDeserializer<A::Error> = key.text.into_deserializer();
                return seed.deserialize(key).map(Some);
            }
            if !keys.pass_over(&key.text) {
                let known = keys.fields.join(", ");
                let message = format!("unknown key `{}`; known keys: {known}", key.text);
                let mut problems = self.reading.problems.borrow_mut();
                problems.push(Problem::new(key.location, message));
            }
            self.inner.next_value::<IgnoredAny>()?;
        }
        Ok(None)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, inner: S) -> Result<S::Value, A::Error> {
        let seed = self.around(inner);
        self.inner.next_value_seed(seed)
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

impl<'a, 'de, A: EnumAccess<'de>> EnumAccess<'de> for Strict<'a, A> {
    type Error = A::Error;
    type Variant = Strict<'a, A::Variant>;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self::Variant), A::Error> {
        let reading = self.reading;
        let (value, variant) = self.inner.variant_seed(seed)?;
        Ok((value, Strict::new(variant, reading)))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Strict<'_, A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.inner.unit_variant()
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, inner: S) -> Result<S::Value, A::Error> {
        let seed = self.around(inner);
        self.inner.newtype_variant_seed(seed)
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, A::Error> {
        let visitor = self.around(visitor);
        self.inner.tuple_variant(len, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        let expected = Expected::Struct(Keys { fields, root: false });
        let visitor = Strict { inner: visitor, reading: self.reading, expected };
        self.inner.struct_variant(fields, visitor)
    }
}

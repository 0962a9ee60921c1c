//! The estimated memory of JSON and protobuf: it follows from the values that serde_json finds, and no prefix, wrapper or
//! defect of a message hides what it contains.
#![no_main]

use std::fmt;

use libfuzzer_sys::fuzz_target;
use rewrite::{json, protobuf};
use serde::Deserializer;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// The key under which serde_json shows a number, with its feature `arbitrary_precision`.
const NUMBER: &str = "$serde_json::private::Number";

fuzz_target!(|input: &[u8]| {
    if let Some(counts) = Counts::of(input) {
        assert_eq!(json::weight(input), input.len() + counts.weight());
    } else {
        assert!(json::weight(input) >= input.len());
    }

    let weight = protobuf::weight(input);
    assert!(weight >= input.len());
    let Ok(length) = u8::try_from(input.len()) else { return };
    if length < 0x80 {
        let field = [&[0x0a, length][..], input].concat();
        assert!(protobuf::weight(&field) >= weight, "a field hides its content");
        let behind = [&[0x08, 1][..], input].concat();
        assert!(protobuf::weight(&behind) >= weight, "a field hides what follows it");
    }
});

/// The values of a JSON text, by the parts that weigh more than their length.
#[derive(Default)]
struct Counts {
    objects: usize,
    arrays: usize,
    commas: usize,
    nulls: usize,
}

impl Counts {
    /// `None` if it is not JSON, or if a key could be mistaken for [`NUMBER`].
    fn of(text: &[u8]) -> Option<Self> {
        if text.contains(&b'$') || text.windows(6).any(|window| window == br"\u0024") {
            return None;
        }
        let mut counts = Self::default();
        let mut deserializer = serde_json::Deserializer::from_slice(text);
        (&mut counts).deserialize(&mut deserializer).ok()?;
        deserializer.end().is_ok().then_some(counts)
    }

    /// What each part weighs is taken from the smallest text that has it.
    fn weight(&self) -> usize {
        let of = |text: &str| json::weight(text.as_bytes()) - text.len();
        let array = of("[]");
        self.objects * of("{}") + self.arrays * array + self.commas * (of("[0,0]") - array) + self.nulls * of("null")
    }
}

impl<'de> DeserializeSeed<'de> for &mut Counts {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for &mut Counts {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.nulls += 1;
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        self.arrays += 1;
        let mut count = 0_usize;
        while elements.next_element_seed(&mut *self)?.is_some() {
            count += 1;
        }
        self.commas += count.saturating_sub(1);
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let mut count = 0_usize;
        while let Some(key) = members.next_key::<String>()? {
            if key == NUMBER {
                return members.next_value::<IgnoredAny>().map(drop);
            }
            members.next_value_seed(&mut *self)?;
            count += 1;
        }
        self.objects += 1;
        self.commas += count.saturating_sub(1);
        Ok(())
    }
}

//! Directives of strategic merge patches (`strategicpatch/patch.go` in apimachinery).

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// The directives in a patch that can remove what the patch does not name. All keys are checked: in any spelling, at
/// any depth, and including duplicates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Directives {
    /// Of maps: `$patch` and `$retainKeys`.
    pub(crate) of_maps: bool,
    /// Of lists: `$deleteFromPrimitiveList/NAME`.
    pub(crate) of_lists: bool,
}

// === impl Directives ===

impl Directives {
    /// The directives of this patch. A patch that cannot be parsed may contain any.
    pub(crate) fn of(patch: &[u8]) -> Self {
        // Every key that begins with a dollar contains one of these two bytes.
        if memchr::memchr2(b'$', b'\\', patch).is_none() {
            return Self::default();
        }
        serde_json::from_slice(patch).unwrap_or(Self { of_maps: true, of_lists: true })
    }

    pub(crate) fn any(self) -> bool {
        self.of_maps || self.of_lists
    }

    fn and(self, other: Self) -> Self {
        Self { of_maps: self.of_maps || other.of_maps, of_lists: self.of_lists || other.of_lists }
    }

    fn of_key(key: &str) -> Self {
        Self { of_maps: matches!(key, "$patch" | "$retainKeys"), of_lists: key.starts_with("$deleteFromPrimitiveList") }
    }
}

impl<'de> Deserialize<'de> for Directives {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Keys)
    }
}

/// Collects the directives of a document.
struct Keys;

impl<'de> Visitor<'de> for Keys {
    type Value = Directives;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a patch")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Directives, A::Error> {
        let mut found = Directives::default();
        while let Some((key, inside)) = map.next_entry::<String, Directives>()? {
            found = found.and(Directives::of_key(&key)).and(inside);
        }
        Ok(found)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Directives, A::Error> {
        let mut found = Directives::default();
        while let Some(inside) = elements.next_element::<Directives>()? {
            found = found.and(inside);
        }
        Ok(found)
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<Directives, E> {
        Ok(Directives::default())
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<Directives, E> {
        Ok(Directives::default())
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<Directives, E> {
        Ok(Directives::default())
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<Directives, E> {
        Ok(Directives::default())
    }

    fn visit_str<E: de::Error>(self, _: &str) -> Result<Directives, E> {
        Ok(Directives::default())
    }

    fn visit_unit<E: de::Error>(self) -> Result<Directives, E> {
        Ok(Directives::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directive_is_found_however_it_is_written() {
        let maps = Directives { of_maps: true, of_lists: false };
        let lists = Directives { of_maps: false, of_lists: true };
        let both = Directives { of_maps: true, of_lists: true };
        for (patch, found) in [
            (r#"{"metadata":{"labels":{"a":"$patch"}}}"#, Directives::default()),
            (r#"{"spec":[1,-1,0.5,true,null,"\u0024patch"],"$setElementOrder/ports":[]}"#, Directives::default()),
            (r#"{"metadata":{"labels":{"$patch":"replace"}}}"#, maps),
            (r#"{"metadata":{"labels":{"\u0024pat\u0063h":"replace"}}}"#, maps),
            (r#"{"metadata":{"$retainKeys":["name"]}}"#, maps),
            (r#"{"a":[{"$patch":"delete"}]}"#, maps),
            (r#"{"metadata":{"$patch":"replace"},"metadata":{}}"#, maps),
            (r#"{"metadata":{"$deleteFromPrimitiveList/finalizers":["a"]}}"#, lists),
            // What Go reads and serde_json does not.
            (r#"{"a":"\ud800","b":{"\u0024patch":"replace"}}"#, both),
            (r#"{"a":"\ud800"}"#, both),
        ] {
            assert_eq!(Directives::of(patch.as_bytes()), found, "{patch}");
        }
    }
}

//! Random samples of a JSON object.
//!
//! A sample of an object is a smaller object of the same form, in which about one of many similar values is left. If many
//! values of the object are invalid, some values of the sample are, too.

use bytes::Bytes;

use super::cursor::Cursor;
use super::edit::Edits;
use super::fault::Malformed;
use super::weight::parts;
use super::{Fate, Text};

/// The number of members of an object that a sample keeps. An object of the Kubernetes API with more members is a map.
const MEMBERS: usize = 64;

/// The number of elements of an array that a sample keeps.
const ELEMENTS: usize = 4;

/// The content of deeper objects and arrays is left out. Schemas of custom resources are nested the deepest, and have
/// fewer levels.
const DEEPEST: usize = 200;

/// Directives of strategic merge patches for lists. They must name every element, which a sample has not.
const ORDER: &str = "$setElementOrder/";

/// The path to the only values that no one validates, one by one: the names of managed fields (`FieldsV1`).
const MANAGED: [&str; 3] = ["metadata", "managedFields", "fieldsV1"];

/// Where a value is, as far as it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// At the first so many keys of [`MANAGED`].
    Towards(usize),
    Elsewhere,
}

/// How a sample is drawn.
struct Sampler<'k, K> {
    keep: &'k mut K,
    /// How many more members and elements the sample keeps without drawing.
    sure: usize,
}

/// The number of values in an object, without those in its managed fields, if it is above `limit`.
pub fn values_above(limit: usize, object: &[u8]) -> Result<Option<usize>, Malformed> {
    let all = parts(object);
    let mut managed = 0;
    if all > limit {
        count_managed(&mut Cursor::new(object, 0, 0), 0, &mut managed)?;
    }
    Ok(Some(all.saturating_sub(managed)).filter(|values| *values > limit))
}

/// Draws a sample of an object. It keeps the first members and elements of each object and array while they are at most
/// `sure` altogether, and those of the others that `keep` is true for.
pub fn sample(object: &Bytes, sure: usize, mut keep: impl FnMut() -> bool) -> Result<Bytes, Malformed> {
    let mut sampler = Sampler { keep: &mut keep, sure };
    let mut cursor = Cursor::new(object, 0, 0);
    let mut edits = Edits::new();
    sampler.value(&mut cursor, &mut edits, Place::Towards(0), 0)?;
    cursor.finish()?;
    let mut pieces: Vec<Bytes> = Vec::new();
    edits.splice(object, 0..object.len(), &mut pieces);
    Ok(pieces.concat().into())
}

/// Adds up the values of managed fields.
fn count_managed(cursor: &mut Cursor<'_>, known: usize, managed: &mut usize) -> Result<(), Malformed> {
    match cursor.peek()? {
        b'{' if known < MANAGED.len() => {
            cursor.object(&mut Edits::new(), |cursor, _, key| {
                if *key.decode() == *MANAGED[known] {
                    count_managed(cursor, known + 1, managed)?;
                } else {
                    cursor.skip()?;
                }
                Ok::<_, Malformed>(Fate::Keep)
            })?;
        }
        b'[' if known == MANAGED.len() - 1 => {
            cursor.array(&mut Edits::new(), |cursor, _, _| {
                match cursor.peek()? {
                    b'{' => count_managed(cursor, known, managed)?,
                    _ => cursor.skip()?,
                }
                Ok::<_, Malformed>(Fate::Keep)
            })?;
        }
        _ => {
            let start = cursor.at();
            cursor.skip()?;
            if known == MANAGED.len() {
                *managed += parts(cursor.slice(start..cursor.at()));
            }
        }
    }
    Ok(())
}

// === impl Place ===

impl Place {
    fn member(self, key: &Text<'_>) -> Self {
        match self {
            Self::Towards(known) if MANAGED.get(known).is_some_and(|next| &*key.decode() == *next) => {
                Self::Towards(known + 1)
            }
            _ => Self::Elsewhere,
        }
    }

    fn element(self) -> Self {
        if self == Self::Towards(MANAGED.len() - 1) { self } else { Self::Elsewhere }
    }
}

// === impl Sampler ===

impl<K: FnMut() -> bool> Sampler<'_, K> {
    fn value(&mut self, cursor: &mut Cursor<'_>, edits: &mut Edits, at: Place, depth: usize) -> Result<(), Malformed> {
        match cursor.peek()? {
            b'{' if at != Place::Towards(MANAGED.len()) => {
                let mut index = 0;
                cursor.object(edits, |cursor, edits, key| {
                    index += 1;
                    let is_kept = !key.decode().starts_with(ORDER) && self.keeps(index, MEMBERS);
                    self.part(cursor, edits, is_kept, at.member(&key), depth)
                })?;
            }
            b'[' if at != Place::Towards(MANAGED.len()) => {
                cursor.array(edits, |cursor, edits, index| {
                    let is_kept = self.keeps(index + 1, ELEMENTS);
                    self.part(cursor, edits, is_kept, at.element(), depth)
                })?;
            }
            _ => cursor.skip()?,
        }
        Ok(())
    }

    /// A member or element.
    fn part(
        &mut self,
        cursor: &mut Cursor<'_>,
        edits: &mut Edits,
        is_kept: bool,
        at: Place,
        depth: usize,
    ) -> Result<Fate, Malformed> {
        let is_too_deep = depth >= DEEPEST && matches!(cursor.peek()?, b'{' | b'[');
        if !is_kept || is_too_deep {
            cursor.skip()?;
            return Ok(Fate::Remove);
        }
        self.value(cursor, edits, at, depth + 1)?;
        Ok(Fate::Keep)
    }

    /// Whether the sample keeps the member or element with this number, counted from one.
    fn keeps(&mut self, number: usize, always: usize) -> bool {
        if number <= always && self.sure > 0 {
            self.sure -= 1;
            return true;
        }
        (self.keep)()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn text(value: &Value) -> Bytes {
        value.to_string().into()
    }

    fn parsed(text: &[u8]) -> Value {
        serde_json::from_slice(text).unwrap()
    }

    /// Keeps every tenth.
    fn tenth() -> impl FnMut() -> bool {
        let mut number = 0;
        move || {
            number += 1;
            number % 10 == 0
        }
    }

    /// Whether `sample` is `whole` without some members and elements.
    fn is_part(sample: &Value, whole: &Value) -> bool {
        match (sample, whole) {
            (Value::Object(sample), Value::Object(whole)) => {
                sample.iter().all(|(key, value)| whole.get(key).is_some_and(|whole| is_part(value, whole)))
            }
            (Value::Array(sample), Value::Array(whole)) => {
                let mut whole = whole.iter();
                sample.iter().all(|value| whole.any(|whole| is_part(value, whole)))
            }
            _ => sample == whole,
        }
    }

    fn object() -> impl Strategy<Value = Value> {
        let leaf =
            prop_oneof![Just(Value::Null), any::<bool>().prop_map(Value::from), any::<i64>().prop_map(Value::from)];
        let leaf = prop_oneof![leaf, "[a-z\\\\\"{,]{0,4}".prop_map(Value::from)];
        leaf.prop_recursive(5, 400, 90, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..90).prop_map(Value::from),
                prop::collection::hash_map("[a-z$\"]{0,3}", inner, 0..90)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    #[test]
    fn a_struct_stays_whole_and_a_map_does_not() {
        let labels: Value =
            (0..1000).map(|label| (label.to_string(), json!("x"))).collect::<serde_json::Map<_, _>>().into();
        let ports: Vec<_> = (0..1000).map(|port| json!({"name": "p", "containerPort": port})).collect();
        let whole = json!({
            "kind": "Pod",
            "metadata": {"name": "a", "labels": labels},
            "spec": {"$setElementOrder/containers": [{"name": "a"}], "containers": [{"name": "a", "ports": ports}]},
        });
        let sample = parsed(&sample(&text(&whole), usize::MAX, tenth()).unwrap());
        assert!(is_part(&sample, &whole));
        assert_eq!(sample["metadata"]["labels"].as_object().unwrap().len(), MEMBERS + (1000 - MEMBERS) / 10);
        assert_eq!(sample["metadata"]["name"], "a");
        assert_eq!(sample["spec"]["$setElementOrder/containers"], Value::Null);
        let ports = sample["spec"]["containers"][0]["ports"].as_array().unwrap();
        assert!((100..=110).contains(&ports.len()), "{}", ports.len());
        assert!(ports.iter().all(|port| port.as_object().unwrap().len() == 2));
    }

    #[test]
    fn names_of_managed_fields_are_no_values() {
        let fields: Value =
            (0..2000).map(|field| (format!("f:{field}"), json!({}))).collect::<serde_json::Map<_, _>>().into();
        let entry = json!({"manager": "a", "fieldsV1": fields});
        let managed = json!({"metadata": {"managedFields": [entry, entry]}});
        assert_eq!(values_above(1000, &text(&managed)), Ok(None));
        let sample = parsed(&sample(&text(&managed), usize::MAX, tenth()).unwrap());
        assert_eq!(sample, managed);
        // They are elsewhere.
        let own = json!({"spec": {"managedFields": [{"fieldsV1": fields}]}});
        assert!(values_above(1000, &text(&own)).unwrap().unwrap() > 4000);
        let sample = parsed(&super::sample(&text(&own), usize::MAX, tenth()).unwrap());
        assert!(sample["spec"]["managedFields"][0]["fieldsV1"].as_object().unwrap().len() < 300);
    }

    #[test]
    fn what_is_sure_is_limited() {
        let mut nested = json!(0);
        for _ in 0..12 {
            nested = json!([nested, nested, nested]);
        }
        let whole = text(&nested);
        let kept = |sure| parts(&sample(&whole, sure, || false).unwrap());
        assert!(kept(100) <= 202, "{}", kept(100));
        assert_eq!(kept(usize::MAX), parts(&whole));
        let deep = [vec![b'['; 9000], vec![b']'; 9000]].concat();
        assert!(sample(&deep.into(), usize::MAX, || true).unwrap().len() <= 2 * DEEPEST + 2);
    }

    proptest! {
        #[test]
        fn a_sample_is_a_part_of_the_whole(whole in object(), sure in 0..50_usize, seed in any::<u64>()) {
            let mut state = seed | 1;
            let draw = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                state >> 63 == 0
            };
            let sample = sample(&text(&whole), sure, draw).unwrap();
            prop_assert!(is_part(&parsed(&sample), &whole));
        }

        #[test]
        fn without_a_limit_it_is_the_whole(whole in object()) {
            prop_assert_eq!(parsed(&sample(&text(&whole), 0, || true).unwrap()), whole);
        }

        #[test]
        fn text_that_is_not_json_does_no_harm(text in prop::collection::vec(any::<u8>(), 0..200)) {
            let text = Bytes::from(text);
            let _ = values_above(0, &text);
            let is_json = serde_json::from_slice::<Value>(&text).is_ok();
            prop_assert!(!is_json || sample(&text, 3, || true).is_ok());
        }
    }
}

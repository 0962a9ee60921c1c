//! Random samples of a JSON object: see [`Draw`].

use bytes::Bytes;

use super::Fate;
use super::cursor::Cursor;
use super::edit::Edits;
use super::fault::Malformed;
use super::weight::parts;
use crate::sample::{Counts, Draw, FIRST, GROWTH, Number};

/// The number of members of an object on the upper two levels that a sample always keeps. Only a map has more.
const UPPER: usize = 256;

/// The content of deeper objects and arrays is left out. Schemas of custom resources are nested the deepest, and have
/// fewer levels.
const DEEPEST: usize = 200;

/// Directives of strategic merge patches for lists. They must name every element, which a sample has not.
const ORDER: &str = "$setElementOrder/";

/// The other directives of strategic merge patches, whose content is not validated (apimachinery's
/// `pkg/util/strategicpatch/patch.go`).
const DIRECTIVES: [&str; 3] = ["$patch", "$retainKeys", "$deleteFromPrimitiveList/"];

/// The path to the only values that no one validates one by one: the names of managed fields (`FieldsV1`).
const MANAGED: [&str; 3] = ["metadata", "managedFields", "fieldsV1"];

/// The maximum length of the name of a field manager (`FieldManagerMaxLength` in apimachinery's
/// `pkg/apis/meta/v1/validation`), in bytes.
pub const MAX_MANAGER: usize = 128;

/// Where a value is, as far as it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// At the first so many keys of [`MANAGED`].
    Towards(usize),
    Elsewhere,
}

/// How a sample is drawn.
struct Sampler<'d> {
    draw: &'d Draw,
    /// How many more values the sample keeps without drawing.
    sure: usize,
    next: Number,
    /// Whether the object is a strategic merge patch, which may contain directives.
    is_strategic: bool,
}

/// The number of values in an object or a patch, without those in its managed fields, if it is above `limit`.
pub fn values_above(limit: usize, object: &[u8], is_strategic: bool) -> Result<Option<Counts>, Malformed> {
    if parts(object) <= limit {
        return Ok(None);
    }
    let draw = Draw::all();
    let mut sampler = Sampler { draw: &draw, sure: 0, next: Number::default(), is_strategic };
    let mut cursor = Cursor::new(object, 0, 0);
    sampler.value(&mut cursor, &mut Edits::new(), Place::Towards(0), 0)?;
    cursor.finish()?;
    let values = sampler.next.value;
    Ok(Some(Counts { values, scalars: 0 }).filter(|counts| counts.values > limit))
}

/// Draws a sample of an object, or of a patch.
pub fn sample(object: &Bytes, draw: &Draw, is_strategic: bool) -> Result<Bytes, Malformed> {
    let mut sampler = Sampler { draw, sure: draw.sure, next: Number::default(), is_strategic };
    let mut cursor = Cursor::new(object, 0, 0);
    let mut edits = Edits::new();
    sampler.value(&mut cursor, &mut edits, Place::Towards(0), 0)?;
    cursor.finish()?;
    let mut pieces: Vec<Bytes> = Vec::new();
    edits.splice(object, 0..object.len(), &mut pieces);
    Ok(pieces.concat().into())
}

/// Whether the managed fields of an object contain the name of a field manager that is too long.
pub fn has_long_manager(object: &[u8]) -> Result<bool, Malformed> {
    let mut is_long = false;
    if memchr::memmem::find(object, b"anager").is_some() || memchr::memchr(b'\\', object).is_some() {
        find_long_manager(&mut Cursor::new(object, 0, 0), 0, &mut is_long)?;
    }
    Ok(is_long)
}

/// Looks for a name in what is at the first `known` keys of [`MANAGED`].
fn find_long_manager(cursor: &mut Cursor<'_>, known: usize, is_long: &mut bool) -> Result<(), Malformed> {
    let is_list = known == MANAGED.len() - 1;
    match cursor.peek()? {
        b'{' => {
            cursor.object(&mut Edits::new(), |cursor, _, key| {
                if is_list && key.is("manager") && cursor.peek()? == b'"' {
                    *is_long |= cursor.string()?.decode().len() > MAX_MANAGER;
                } else if !is_list && key.is(MANAGED[known]) {
                    find_long_manager(cursor, known + 1, is_long)?;
                } else {
                    cursor.skip()?;
                }
                Ok::<_, Malformed>(Fate::Keep)
            })?;
        }
        b'[' if is_list => {
            cursor.array(&mut Edits::new(), |cursor, _, _| {
                match cursor.peek()? {
                    b'{' => find_long_manager(cursor, known, is_long)?,
                    _ => cursor.skip()?,
                }
                Ok::<_, Malformed>(Fate::Keep)
            })?;
        }
        _ => cursor.skip()?,
    }
    Ok(())
}

// === impl Place ===

impl Place {
    fn member(self, key: &str) -> Self {
        match self {
            Self::Towards(known) if MANAGED.get(known).is_some_and(|next| key == *next) => Self::Towards(known + 1),
            _ => Self::Elsewhere,
        }
    }

    fn element(self) -> Self {
        if self == Self::Towards(MANAGED.len() - 1) { self } else { Self::Elsewhere }
    }
}

// === impl Sampler ===

impl Sampler<'_> {
    fn value(&mut self, cursor: &mut Cursor<'_>, edits: &mut Edits, at: Place, depth: usize) -> Result<(), Malformed> {
        match cursor.peek()? {
            b'{' if at != Place::Towards(MANAGED.len()) => {
                let mut members = 0;
                cursor.object(edits, |cursor, edits, key| {
                    let key = key.decode();
                    if let Some(fate) = self.directive(&key) {
                        cursor.skip()?;
                        return Ok(fate);
                    }
                    members += 1;
                    let is_upper = depth < 2 && members <= UPPER;
                    self.part(cursor, edits, is_upper, members <= FIRST, at.member(&key), depth)
                })?;
            }
            b'[' if at != Place::Towards(MANAGED.len()) => {
                cursor.array(edits, |cursor, edits, index| match cursor.peek()? {
                    b'{' | b'[' => self.part(cursor, edits, false, index < FIRST, at.element(), depth),
                    _ => self.scalar(cursor, index < FIRST),
                })?;
            }
            _ => cursor.skip()?,
        }
        Ok(())
    }

    /// What happens to a member if its key is a directive.
    fn directive(&self, key: &str) -> Option<Fate> {
        if !self.is_strategic {
            return None;
        }
        if key.starts_with(ORDER) {
            return Some(Fate::Remove);
        }
        DIRECTIVES.iter().any(|directive| key.starts_with(directive)).then_some(Fate::Keep)
    }

    /// An element of a list that contains nothing.
    fn scalar(&mut self, cursor: &mut Cursor<'_>, is_first: bool) -> Result<Fate, Malformed> {
        self.next.value += 1;
        let is_drawn = if cursor.peek()? == b'"' {
            self.draw.has_element(cursor.string()?.decode().as_bytes())
        } else {
            let start = cursor.at();
            cursor.skip()?;
            self.draw.has_element(cursor.slice(start..cursor.at()))
        };
        if is_drawn {
            return Ok(Fate::Keep);
        }
        if !is_first || self.sure == 0 {
            return Ok(Fate::Remove);
        }
        self.sure -= 1;
        Ok(Fate::Keep)
    }

    /// A member, or an element that contains values. `is_upper` ones are always kept, and `is_first` ones as long as
    /// there is room.
    fn part(
        &mut self,
        cursor: &mut Cursor<'_>,
        edits: &mut Edits,
        is_upper: bool,
        is_first: bool,
        at: Place,
        depth: usize,
    ) -> Result<Fate, Malformed> {
        let first = self.next;
        self.next.value += 1;
        let before = self.sure;
        let is_sure = is_upper || (is_first && self.sure > 0);
        if is_sure && !is_upper {
            self.sure -= 1;
        }
        if !matches!(cursor.peek()?, b'{' | b'[') {
            cursor.skip()?;
        } else if depth >= DEEPEST {
            cursor.skip()?;
            return Ok(Fate::Remove);
        } else {
            if !is_sure {
                self.sure += GROWTH;
            }
            // Some room is kept for what follows.
            let reserve = if is_upper { 0 } else { self.sure / 3 };
            self.sure -= reserve;
            self.value(cursor, edits, at, depth + 1)?;
            self.sure += reserve;
        }
        if is_sure {
            return Ok(Fate::Keep);
        }
        if self.draw.has_any(first..self.next) {
            self.sure = self.sure.min(before);
            return Ok(Fate::Keep);
        }
        self.sure = before;
        Ok(Fate::Remove)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::sample::tests::drawn;

    fn text(value: &Value) -> Bytes {
        value.to_string().into()
    }

    fn parsed(text: &[u8]) -> Value {
        serde_json::from_slice(text).unwrap()
    }

    fn count(whole: &[u8]) -> Counts {
        values_above(0, whole, true).unwrap().unwrap_or_default()
    }

    /// A sample of so many values, of which this many are sure.
    fn sampled(whole: &Value, size: usize, sure: usize, seed: u64) -> Value {
        let whole = text(whole);
        parsed(&sample(&whole, &drawn(size, count(&whole), sure, seed), true).unwrap())
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

    /// The number of members and elements, by another reader.
    fn values(value: &Value) -> usize {
        match value {
            Value::Object(members) => members.values().map(|value| 1 + values(value)).sum(),
            Value::Array(elements) => elements.iter().map(|value| 1 + values(value)).sum(),
            _ => 0,
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

    fn map(members: usize, value: &Value) -> Value {
        Value::Object((0..members).map(|member| (format!("k{member}"), value.clone())).collect())
    }

    #[test]
    fn a_struct_stays_whole_and_a_map_does_not() {
        let ports: Vec<_> = (0..1000).map(|port| json!({"name": "p", "containerPort": port})).collect();
        let whole = json!({
            "kind": "Pod",
            "metadata": {"name": "a", "labels": map(1000, &json!("x"))},
            "spec": {"$setElementOrder/containers": [{"name": "a"}], "containers": [{"name": "a", "ports": ports}]},
        });
        let sample = sampled(&whole, 100, 1600, 1);
        assert!(is_part(&sample, &whole));
        let labels = sample["metadata"]["labels"].as_object().unwrap().len();
        assert!((FIRST + 5..=FIRST + 100).contains(&labels), "{labels}");
        assert_eq!(sample["metadata"]["name"], "a");
        assert_eq!(sample["spec"]["$setElementOrder/containers"], Value::Null);
        let ports = sample["spec"]["containers"][0]["ports"].as_array().unwrap();
        assert!((FIRST..=FIRST + 100).contains(&ports.len()), "{}", ports.len());
        assert!(ports.iter().all(|port| port.as_object().unwrap().len() == 2));
    }

    /// However deep it is.
    #[test]
    fn what_is_drawn_stays_with_all_that_contains_it() {
        for depth in [1, 5, 20, 90] {
            let mut deep = map(100, &json!("invalid"));
            for _ in 0..depth {
                deep = json!({"a": [deep]});
            }
            let whole = text(&json!({"spec": map(500, &deep)}));
            let sample = sample(&whole, &drawn(64, count(&whole), 0, 3), false).unwrap();
            let kept = memchr::memmem::find_iter(&sample, "invalid").count();
            assert!(kept >= 15, "{depth}: {kept}");
        }
    }

    #[test]
    fn equal_strings_are_drawn_together() {
        let list: Vec<_> = (0..4000).map(|element| json!(format!("{}", element % 2000))).collect();
        let sample = sampled(&json!({"spec": {"list": list}}), 64, 0, 7);
        let kept = sample["spec"]["list"].as_array().unwrap();
        assert!(kept.len() > 20 && kept.iter().all(|one| kept.iter().filter(|other| *other == one).count() == 2));
    }

    #[test]
    fn big_lists_leave_room_for_small_ones() {
        let env = vec![json!({"name": "a", "value": "b"}); 30];
        let one = json!({"name": "a", "image": "b", "env": env});
        let volumes = vec![json!({"name": "a", "emptyDir": {}}); 30];
        let pod = json!({"containers": vec![one; 400], "volumes": volumes});
        let sample = sampled(&json!({"spec": {"template": {"spec": pod}}}), 512, 8192, 5);
        assert_eq!(sample["spec"]["template"]["spec"]["volumes"], json!(volumes));
    }

    #[test]
    fn names_of_managed_fields_are_no_values() {
        let fields = map(2000, &json!({}));
        let entry = json!({"manager": "a", "fieldsV1": fields});
        let managed = json!({"metadata": {"managedFields": [entry, entry]}});
        assert_eq!(values_above(1000, &text(&managed), false), Ok(None));
        assert_eq!(sampled(&managed, 1, 100, 1), managed);
        // They are elsewhere.
        let own = json!({"spec": {"managedFields": [{"fieldsV1": fields}]}});
        assert!(values_above(1000, &text(&own), false).unwrap().unwrap().values > 2000);
        assert!(sampled(&own, 10, 100, 1)["spec"]["managedFields"][0]["fieldsV1"].as_object().unwrap().len() < 300);
    }

    #[test]
    fn directives_are_those_of_strategic_patches() {
        let labels: Value = (0..3000)
            .map(|label| (format!("$deleteFromPrimitiveList/{label}"), json!("x")))
            .collect::<serde_json::Map<_, _>>()
            .into();
        let whole = text(&json!({"metadata": {"labels": labels}}));
        let kept = |is_strategic| {
            let all = values_above(0, &whole, is_strategic).unwrap().unwrap_or_default();
            let sample = sample(&whole, &drawn(10, all, 10, 1), is_strategic).unwrap();
            parsed(&sample)["metadata"]["labels"].as_object().unwrap().len()
        };
        assert_eq!(kept(true), 3000);
        assert!(kept(false) <= 20);
    }

    #[test]
    fn what_is_sure_is_limited() {
        let mut nested = json!(0);
        for _ in 0..12 {
            nested = json!([nested, nested, nested]);
        }
        let whole = text(&nested);
        let kept = |size, sure| parts(&sample(&whole, &drawn(size, count(&whole), sure, 1), false).unwrap());
        assert!(kept(0, 100) <= 202, "{}", kept(0, 100));
        assert!(kept(5, 100) <= 202 + 5 * 12 * 2 * GROWTH, "{}", kept(5, 100));
        let deep = Bytes::from([vec![b'['; 9000], vec![b']'; 9000]].concat());
        assert!(sample(&deep, &Draw::all(), false).unwrap().len() <= 2 * DEEPEST + 2);
    }

    #[test]
    fn names_of_managers_are_short() {
        let manager = |length: usize| json!({"metadata": {"managedFields": [null, {"manager": "a".repeat(length)}]}});
        assert_eq!(has_long_manager(&text(&manager(MAX_MANAGER))), Ok(false));
        assert_eq!(has_long_manager(&text(&manager(MAX_MANAGER + 1))), Ok(true));
        let escaped = text(&manager(200)).to_vec();
        let escaped = String::from_utf8(escaped).unwrap().replace("manager\"", "\\u006danage\\u0072\"");
        assert_eq!(has_long_manager(escaped.as_bytes()), Ok(true));
        assert_eq!(has_long_manager(&text(&json!({"spec": manager(200), "manager": "a".repeat(200)}))), Ok(false));
        assert_eq!(has_long_manager(br#"{"metadata":{"managedFields":{"manager":"a"}}}"#), Ok(false));
    }

    proptest! {
        #[test]
        fn a_sample_is_a_part_of_the_whole(whole in object(), size in 0..9_usize, sure in 0..50_usize, seed in any::<u64>()) {
            let text = text(&whole);
            let sample = sample(&text, &drawn(size, count(&text), sure, seed), false).unwrap();
            prop_assert!(is_part(&parsed(&sample), &whole));
        }

        #[test]
        fn without_a_limit_it_is_the_whole(whole in object()) {
            prop_assert_eq!(count(&text(&whole)).values, values(&whole));
            prop_assert_eq!(parsed(&sample(&text(&whole), &Draw::all(), false).unwrap()), whole);
        }

        #[test]
        fn text_that_is_not_json_does_no_harm(text in prop::collection::vec(any::<u8>(), 0..200)) {
            let text = Bytes::from(text);
            let counts = values_above(0, &text, false);
            let is_json = serde_json::from_slice::<Value>(&text).is_ok();
            prop_assert!(!is_json || counts.is_ok());
            let draw = drawn(3, counts.ok().flatten().unwrap_or_default(), 3, 1);
            prop_assert!(!is_json || sample(&text, &draw, false).is_ok());
            prop_assert!(!is_json || has_long_manager(&text).is_ok());
        }
    }
}

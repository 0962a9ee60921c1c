//! Random samples of a JSON object: see [`Draw`].

use bytes::Bytes;

use super::cursor::Cursor;
use super::edit::Edits;
use super::fault::Malformed;
use super::text::{Text, quoted};
use super::weight::values_and_longest;
use super::{DEEPEST, Outcome};
use crate::name::LAST_APPLIED_ANNOTATION;
use crate::sample::{Allowance, Counts, Draw, FIRST, MAX_TEXT, Position};

/// The prefix of a directive of strategic merge patches that names all elements of a list of the patch, in their order
/// (apimachinery's `pkg/util/strategicpatch/patch.go`). A sample omits it, because it would not name all elements that the
/// sample keeps.
const ORDER: &str = "$setElementOrder/";

/// No list of a built-in kind with such a directive is below this level. The containers of a CronJob are at level 7.
const ORDERED: usize = 16;

/// The sample keeps an element of an array whole, or omits it, if it has at most this many values. A schema may require some number of
/// elements: for example, two for a coordinate.
const FEW_VALUES: usize = 32;

/// A directive whose content the host does not validate. A sample keeps it.
const PATCH: &str = "$patch";

/// Another such directive.
const RETAIN_KEYS: &str = "$retainKeys";

/// What is known of an object, or of a patch of one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Form {
    /// Whether it is a strategic merge patch. Such a patch may contain directives.
    pub is_strategic: bool,
    /// Whether its kind is built in. Then a sample always keeps the first members of each object that is in no list, or in
    /// the first elements of lists. The agent has the host check that they are not unknown members which displace others.
    pub is_built_in: bool,
    /// Whether the host does not validate text outside its metadata.
    pub is_data: bool,
}

/// Where a value is, if its place decides what a sample does with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Region {
    Root,
    Metadata,
    ManagedFields,
    /// The names of managed fields (`FieldsV1`). The host does not validate them one by one.
    FieldsV1,
    Annotations,
    /// In a value whose text the host does not validate.
    Data,
    Elsewhere,
}

/// A member or element that a sample may omit, with its index.
#[derive(Clone, Copy, Debug)]
enum Part {
    Member(usize),
    Element(usize),
}

/// Where a visited value is.
#[derive(Clone, Copy, Debug)]
struct Spot {
    place: Region,
    /// The number of objects and arrays that contain it.
    depth: usize,
    /// Whether each array that contains it does so in its first element.
    is_in_first: bool,
}

/// The state of the scan that counts values or draws a sample.
struct Sampler<'d> {
    draw: &'d Draw,
    form: Form,
    allowance: Allowance,
    /// The position of the next value.
    next: Position,
    /// The length of the longest text that a sample shortens, in bytes. Only counted, and 0 while a sample is drawn.
    text: usize,
    /// The number of texts of the maximum length ([`Draw`] knows it) that the sample has kept.
    longest_kept: usize,
    /// The number of drawn elements in a sample.
    elements: usize,
    /// Whether a sample omits a part of what is being visited because its allowance is used up.
    is_cut: bool,
    /// Whether the object is the text of a string in another object.
    is_text: bool,
}

/// The counts of an object or a patch if it [needs samples](Counts::needs_samples), else `None`. The names of managed fields
/// do not count.
pub fn counts_if_sampled(object: &[u8], form: Form) -> Result<Option<Counts>, Malformed> {
    let (values, text) = values_and_longest(object);
    if !(Counts { values, numbers: 0, text, length: object.len() }).needs_samples() {
        return Ok(None);
    }
    let draw = Draw::all();
    let mut sampler = Sampler::new(&draw, form, false);
    sampler.object(&mut Cursor::new(object, 0, 0), &mut Edits::new())?;
    Ok(Some(sampler.counts(object.len())).filter(|counts| counts.needs_samples()))
}

/// Draws a sample of an object or a patch.
pub fn sample(object: &Bytes, draw: &Draw, form: Form) -> Result<Bytes, Malformed> {
    Sampler::new(draw, form, false).sample(object)
}

/// The counts of a text that is a JSON object or array. `None` for other text. Some annotations contain such text.
pub(crate) fn counts_of_text(text: &[u8]) -> Option<Counts> {
    let start = text.trim_ascii_start();
    if !start.starts_with(b"{") && !start.starts_with(b"[") {
        return None;
    }
    let all = Draw::all();
    let mut whole = Sampler::new(&all, Form::default(), true);
    whole.object(&mut Cursor::new(text, 0, 0), &mut Edits::new()).ok()?;
    Some(whole.counts(text.len()))
}

/// A sample of a text that is JSON with these counts.
pub(crate) fn sample_of_text(text: &[u8], counts: Counts, draw: &Draw) -> Option<String> {
    let draw = draw.in_text(counts);
    let sample = Sampler::new(&draw, Form::default(), true).sample(&Bytes::copy_from_slice(text)).ok()?;
    Some(String::from_utf8_lossy(&sample).into_owned())
}

// === impl Region ===

impl Region {
    fn member(self, key: &str, form: Form) -> Self {
        match (self, key) {
            (Self::Root, "metadata") => Self::Metadata,
            (Self::Root, _) if form.is_data => Self::Data,
            (Self::Metadata, "managedFields") => Self::ManagedFields,
            (Self::Metadata, "annotations") => Self::Annotations,
            (Self::Annotations, LAST_APPLIED_ANNOTATION) | (Self::Data, _) => Self::Data,
            (Self::ManagedFields, "fieldsV1") => Self::FieldsV1,
            _ => Self::Elsewhere,
        }
    }

    fn element(self) -> Self {
        if matches!(self, Self::ManagedFields | Self::Data) { self } else { Self::Elsewhere }
    }
}

// === impl Sampler ===

impl<'d> Sampler<'d> {
    fn new(draw: &'d Draw, form: Form, is_text: bool) -> Self {
        Self {
            draw,
            form,
            allowance: draw.allowance,
            next: Position::default(),
            text: 0,
            longest_kept: 0,
            elements: 0,
            is_cut: false,
            is_text,
        }
    }

    fn counts(&self, length: usize) -> Counts {
        Counts { values: self.next.values, numbers: 0, text: self.text, length }
    }

    fn sample(mut self, object: &Bytes) -> Result<Bytes, Malformed> {
        let mut edits = Edits::new();
        self.object(&mut Cursor::new(object, 0, 0), &mut edits)?;
        let mut pieces: Vec<Bytes> = Vec::new();
        edits.splice(object, 0..object.len(), &mut pieces);
        Ok(pieces.concat().into())
    }

    fn object(&mut self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Malformed> {
        let place = if self.is_text { Region::Elsewhere } else { Region::Root };
        self.value(cursor, edits, Spot { place, depth: 0, is_in_first: true })?;
        cursor.finish()
    }

    /// Visits a value.
    fn value(&mut self, cursor: &mut Cursor<'_>, edits: &mut Edits, spot: Spot) -> Result<(), Malformed> {
        match cursor.peek()? {
            b'{' if spot.place != Region::FieldsV1 => {
                // If the object has `$patch`, `$setElementOrder/...` may be an ordinary key, as in `$patch: replace`. To find
                // it, the whole object is read once more, so this is limited to the levels that lists of built-in kinds have.
                let may_order = self.form.is_strategic && spot.depth < ORDERED && cursor.member_at(PATCH)?.is_none();
                let mut members = 0;
                cursor.object(edits, |cursor, edits, key| {
                    let key = key.decode();
                    members += 1;
                    let part = Part::Member(members - 1);
                    // A structure has few members. Any number of such keys could be in a map, where they are ordinary keys.
                    if may_order && members <= FIRST && key.starts_with(ORDER) {
                        cursor.skip()?;
                        return Ok(Outcome::Remove);
                    }
                    if self.form.is_strategic && (key == PATCH || key == RETAIN_KEYS) {
                        cursor.skip()?;
                        return Ok(Outcome::Keep);
                    }
                    self.part(cursor, edits, part, Spot { place: spot.place.member(&key, self.form), ..spot })
                })?;
            }
            b'[' if spot.place != Region::FieldsV1 => {
                cursor.array(edits, |cursor, edits, index| {
                    self.part(cursor, edits, Part::Element(index), Spot { place: spot.place.element(), ..spot })
                })?;
            }
            b'"' => {
                let string = cursor.string()?;
                self.long_text(string, edits, spot.place);
            }
            _ => cursor.skip()?,
        }
        Ok(())
    }

    /// Visits a member or an element, and decides whether the sample keeps it. `spot` has the place of the part itself, and
    /// otherwise describes the object or array.
    fn part(
        &mut self,
        cursor: &mut Cursor<'_>,
        edits: &mut Edits,
        part: Part,
        spot: Spot,
    ) -> Result<Outcome, Malformed> {
        let (before, first, longest, elements) = (self.allowance, self.next, self.longest_kept, self.elements);
        let is_cut = std::mem::take(&mut self.is_cut);
        self.next.values += 1;
        let is_allowed = self.allows(part, spot);
        // Consumes the white space before the value.
        let next = cursor.peek()?;
        let start = cursor.at();
        let outcome = match next {
            b'{' | b'[' if spot.depth >= DEEPEST => {
                cursor.skip()?;
                Outcome::Remove
            }
            _ => {
                let (back, mark) = (self.allowance.keep_back(), edits.mark());
                let is_in_first = spot.is_in_first && !matches!(part, Part::Element(1..));
                self.value(cursor, edits, Spot { depth: spot.depth + 1, is_in_first, ..spot })?;
                self.allowance.give_back(back);
                let content = cursor.slice(start..cursor.at());
                if is_allowed || self.longest_kept > longest || self.is_drawn(part, first, elements, content) {
                    let is_short = content.len() <= MAX_TEXT && self.next.values - first.values <= FEW_VALUES;
                    if matches!(part, Part::Element(_)) && is_short && !self.form.is_strategic {
                        edits.forget_since(mark);
                    }
                    Outcome::Keep
                } else {
                    Outcome::Remove
                }
            }
        };
        if let Outcome::Remove = outcome {
            self.is_cut = before.is_used_up() && !matches!(part, Part::Element(1..));
            (self.allowance, self.elements) = (before, elements);
        }
        self.is_cut |= is_cut;
        Ok(outcome)
    }

    /// Whether the sample keeps what was visited since `first` because it is drawn. `elements` were drawn before it.
    fn is_drawn(&mut self, part: Part, first: Position, elements: usize, content: &[u8]) -> bool {
        if !self.draw.has_any(first..self.next) {
            return self.draws_scalar(part, content);
        }
        let is_element = matches!(part, Part::Element(_));
        // An element of a custom object without its key makes the whole sample invalid. Others are drawn, too.
        if is_element && self.is_cut && elements > 0 && !self.form.is_built_in {
            return false;
        }
        self.elements += usize::from(is_element);
        true
    }

    /// Whether the hash draws an element that is a scalar.
    fn draws_scalar(&self, part: Part, content: &[u8]) -> bool {
        let is_structure = content.starts_with(b"{") || content.starts_with(b"[");
        matches!(part, Part::Element(_)) && !is_structure && self.draw.has_element(content)
    }

    /// Whether the sample keeps a part without drawing it. Uses up the allowance.
    fn allows(&mut self, part: Part, spot: Spot) -> bool {
        match part {
            Part::Member(index) | Part::Element(index) if self.always_keeps(index, spot) => true,
            Part::Member(index) => self.allowance.take_member(index),
            Part::Element(index) => self.allowance.take_element(index),
        }
    }

    /// Whether a sample always keeps the member or element with this index. Such members can decide how the host validates
    /// lists: `spec.os` decides for all containers. Lists may refer to such elements: containers refer to volumes. In a custom
    /// object, these are only the members of the object itself, and the parts of its members.
    fn always_keeps(&self, index: usize, spot: Spot) -> bool {
        index < FIRST && spot.is_in_first && !self.is_text && (self.form.is_built_in || spot.depth < 2)
    }

    /// Shortens a long text. If everything is kept, only measures it.
    fn long_text(&mut self, string: Text<'_>, edits: &mut Edits, place: Region) {
        if string.raw.len() <= MAX_TEXT || place == Region::Data {
            return;
        }
        let text = string.decode();
        let counts = if self.is_text { None } else { counts_of_text(text.as_bytes()) };
        let length = counts.map_or(text.len(), Counts::as_text);
        if self.draw.is_all() {
            self.text = self.text.max(length);
            return;
        }
        self.longest_kept += usize::from(self.draw.keeps_longest(length, self.longest_kept));
        let short = counts.and_then(|counts| sample_of_text(text.as_bytes(), counts, self.draw));
        let short = short.unwrap_or_else(|| self.draw.shorten(&text));
        let range = string.range();
        edits.replace(range.start - 1..range.end + 1, quoted(&short).into());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::sample::SHORT_TEXT;
    use crate::sample::tests::drawn;

    const STRATEGIC: Form = Form { is_strategic: true, is_built_in: true, is_data: false };
    const CUSTOM: Form = Form { is_strategic: false, is_built_in: false, is_data: false };

    fn text(value: &Value) -> Bytes {
        value.to_string().into()
    }

    fn parsed(text: &[u8]) -> Value {
        serde_json::from_slice(text).unwrap()
    }

    fn counts(whole: &[u8], form: Form) -> Counts {
        let draw = Draw::all();
        let mut sampler = Sampler::new(&draw, form, false);
        sampler.object(&mut Cursor::new(whole, 0, 0), &mut Edits::new()).unwrap();
        sampler.counts(whole.len())
    }

    fn sampled(whole: &Value, form: Form, count: usize, elements: usize) -> Value {
        let whole = text(whole);
        parsed(&sample(&whole, &drawn(count, counts(&whole, form), elements, 1), form).unwrap())
    }

    /// Whether `sample` is `whole` without some of its members and elements.
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

    /// The number of members and elements, as counted by `serde_json`.
    fn values(value: &Value) -> usize {
        match value {
            Value::Object(members) => members.values().map(|value| 1 + values(value)).sum(),
            Value::Array(elements) => elements.iter().map(|value| 1 + values(value)).sum(),
            _ => 0,
        }
    }

    fn count(sample: &Value, part: &str) -> usize {
        memchr::memmem::find_iter(&text(sample), part).count()
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
    fn structures_are_kept_whole_and_maps_are_not() {
        let ports: Vec<_> = (0..1000).map(|port| json!({"name": "p", "containerPort": port})).collect();
        let whole = json!({
            "kind": "Pod",
            "metadata": {"name": "a", "labels": map(1000, &json!("x"))},
            "spec": {"$setElementOrder/containers": [{"name": "a"}], "containers": [{"name": "a", "ports": ports}]},
        });
        let sample = sampled(&whole, STRATEGIC, 100, 100);
        assert!(is_part(&sample, &whole));
        let labels = sample["metadata"]["labels"].as_object().unwrap().len();
        assert!((FIRST + 5..=FIRST + 100).contains(&labels), "{labels}");
        assert_eq!(sample["metadata"]["name"], "a");
        assert_eq!(sample["spec"]["$setElementOrder/containers"], Value::Null);
        let ports = sample["spec"]["containers"][0]["ports"].as_array().unwrap();
        assert!((FIRST..=FIRST + 100).contains(&ports.len()), "{}", ports.len());
        assert!(ports.iter().all(|port| port.as_object().unwrap().len() == 2));
    }

    /// These objects are valid, so their samples must be valid, too: no element may lack a required member.
    #[test]
    fn elements_are_kept_whole() {
        let backend = json!({"service": {"name": "a", "port": {"number": 80}}});
        let path = json!({"path": "/", "pathType": "Prefix", "backend": backend});
        for (hosts, paths) in [(30, 10), (50, 10), (100, 10), (20, 100)] {
            let rule = json!({"host": "a.example.com", "http": {"paths": vec![path.clone(); paths]}});
            let whole = json!({"spec": {"rules": vec![rule; hosts]}});
            for (drawn, form) in [(32, STRATEGIC), (512, STRATEGIC), (32, CUSTOM), (512, CUSTOM)] {
                let (text, mut state) = (text(&whole), 1_usize);
                let draw = Draw::new(drawn, counts(&text, form), Allowance::new(8 * drawn, 32 * drawn), |below| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (state >> 33) % below
                });
                let sample = parsed(&sample(&text, &draw, form).unwrap());
                for rule in sample["spec"]["rules"].as_array().unwrap() {
                    let paths = rule["http"]["paths"].as_array().unwrap();
                    assert!(!paths.is_empty() && paths.iter().all(|kept| *kept == path), "{hosts}x{paths:?}");
                }
            }
        }
    }

    /// What decides how the host validates a list stays, regardless of what precedes it.
    #[test]
    fn members_of_built_in_structures_are_kept() {
        let list = vec![map(60, &json!("x")); 2000];
        let whole = json!({"spec": {"a": list, "template": {"spec": {"b": list, "os": {"name": "windows"}}}}});
        let sample = sampled(&whole, STRATEGIC, 32, 256);
        assert_eq!(sample["spec"]["template"]["spec"]["os"]["name"], "windows");
    }

    /// A drawn value stays at any depth.
    #[test]
    fn drawn_values_are_kept_with_their_containers() {
        for depth in [1, 5, 20, 60] {
            let mut deep = map(100, &json!("invalid"));
            for _ in 0..depth {
                deep = json!({"a": [deep]});
            }
            let sample = sampled(&json!({"spec": vec![deep; 500]}), CUSTOM, 64, 0);
            assert!(count(&sample, "invalid") >= 20, "{depth}: {}", count(&sample, "invalid"));
        }
    }

    #[test]
    fn equal_elements_are_drawn_together_but_not_all_of_them() {
        let list: Vec<_> = (0..4000).map(|element| json!(format!("{}", element % 2000))).collect();
        let sample = sampled(&json!({"spec": {"list": list}}), CUSTOM, 64, 0);
        let kept = sample["spec"]["list"].as_array().unwrap();
        let twice = kept.iter().filter(|one| kept.iter().filter(|other| other == one).count() == 2).count();
        assert!(kept.len() > 80 && twice > 20, "{twice} of {}", kept.len());
        let equal: Vec<_> = (0..20_000).map(|element| json!(if element < 100 { element } else { -1 })).collect();
        let sample = sampled(&json!({"spec": {"list": equal}}), CUSTOM, 64, 0);
        assert!(count(&sample, "-1") > 40);
    }

    #[test]
    fn big_lists_leave_room_for_small_ones() {
        let env = vec![json!({"name": "a", "value": "b"}); 30];
        let one = json!({"name": "a", "image": "b", "env": env});
        let volumes = vec![json!({"name": "a", "emptyDir": {}}); 30];
        let pod = json!({"containers": vec![one; 400], "volumes": volumes});
        let sample = sampled(&json!({"spec": {"template": {"spec": pod}}}), STRATEGIC, 512, 4096);
        assert_eq!(sample["spec"]["template"]["spec"]["volumes"], json!(volumes));
    }

    #[test]
    fn names_of_managed_fields_are_not_counted() {
        let fields = map(2000, &json!({}));
        let entry = json!({"manager": "a", "fieldsV1": fields});
        let managed = json!({"metadata": {"managedFields": [entry, entry]}});
        assert_eq!(counts_if_sampled(&text(&managed), CUSTOM), Ok(None));
        assert_eq!(sampled(&managed, CUSTOM, 1, 100), managed);
        // At any other path, they are values.
        let own = json!({"spec": {"managedFields": [{"fieldsV1": fields}]}});
        assert!(counts_if_sampled(&text(&own), CUSTOM).unwrap().unwrap().values > 2000);
        let sample = sampled(&own, CUSTOM, 10, 100);
        assert!(sample["spec"]["managedFields"][0]["fieldsV1"].as_object().unwrap().len() < 300);
    }

    #[test]
    fn directives_are_few() {
        for key in ["$deleteFromPrimitiveList/", "$setElementOrder/", "$patchX", "$retainKeysX"] {
            let labels: Value =
                (0..3000).map(|label| (format!("{key}{label}"), json!("x"))).collect::<serde_json::Map<_, _>>().into();
            // They are keys if the patch replaces the object.
            for directive in [json!({}), json!({"$patch": "replace"})] {
                let mut labels = labels.clone();
                labels.as_object_mut().unwrap().extend(directive.as_object().unwrap().clone());
                let whole = json!({"metadata": {"labels": labels}});
                assert!(counts(&text(&whole), STRATEGIC).values >= 3000 - FIRST);
                let kept = sampled(&whole, STRATEGIC, 64, 10)["metadata"]["labels"].as_object().unwrap().len();
                assert!((40..140).contains(&kept), "{key}: {kept}");
            }
        }
    }

    /// In an apply, an element without its key would make the whole sample invalid.
    #[test]
    fn large_elements_of_custom_objects_keep_their_keys() {
        let fields: serde_json::Map<_, _> = (0..34)
            .map(|field| {
                (format!("f{field}"), json!({"a": 1, "b": {"c": 2, "d": 3}, "e": {"f": 4, "g": {"h": 5, "i": 6}}}))
            })
            .collect();
        let element = |index: usize| json!({"base": fields, "name": format!("name{index}"), "patches": [fields]});
        let whole = json!({"metadata": {}, "spec": {"resources": (0..100).map(element).collect::<Vec<_>>()}});
        for seed in 0..10 {
            let body = text(&whole);
            let draw = drawn(32, counts(&body, CUSTOM), 256, seed);
            let sample = parsed(&sample(&body, &draw, CUSTOM).unwrap());
            let elements = sample["spec"]["resources"].as_array().unwrap();
            assert!(elements.len() > 4, "{}", elements.len());
            assert!(elements.iter().all(|element| element["name"].is_string()), "{seed}: {}", elements.len());
        }
    }

    /// A schema may require exactly two elements.
    #[test]
    fn short_elements_are_kept_whole() {
        let points: Vec<_> = (0..2000).map(|point| json!([point, {"x": [point, point]}])).collect();
        let whole = json!({"metadata": {}, "spec": {"points": points}});
        for seed in 0..10 {
            let body = text(&whole);
            let draw = drawn(32, counts(&body, CUSTOM), 256, seed);
            let sample = parsed(&sample(&body, &draw, CUSTOM).unwrap());
            let points = sample["spec"]["points"].as_array().unwrap();
            assert!((30..400).contains(&points.len()), "{}", points.len());
            let is_whole =
                |point: &Value| point.as_array().unwrap().len() == 2 && point[1]["x"].as_array().unwrap().len() == 2;
            assert!(points.iter().all(is_whole), "{seed}: {sample}");
        }
    }

    #[test]
    fn long_text_is_shortened() {
        let whole = |text: &str| json!({"metadata": {"annotations": {"a": text}}, "data": {"b": text}});
        let list = vec!["a00"; 3000].join(",");
        let data = Form { is_data: true, ..CUSTOM };
        for (form, kept) in [(CUSTOM, SHORT_TEXT / 2..=SHORT_TEXT), (data, list.len()..=list.len())] {
            assert_eq!(counts_if_sampled(&text(&whole(&list)), form).unwrap().unwrap().text, list.len());
            let sample = sampled(&whole(&list), form, 9, 9);
            assert!(sample["metadata"]["annotations"]["a"].as_str().unwrap().len() <= SHORT_TEXT);
            assert!(kept.contains(&sample["data"]["b"].as_str().unwrap().len()));
        }
        let json = format!("[{}]", vec![r#"{"a":"\"é"}"#; 10_000].join(","));
        assert!(counts_if_sampled(&text(&whole(&json)), CUSTOM).unwrap().unwrap().ratio(64) > 1000);
        let sample = sampled(&whole(&json), CUSTOM, 9, 9);
        let inner = parsed(sample["data"]["b"].as_str().unwrap().as_bytes());
        assert!((20..80).contains(&inner.as_array().unwrap().len()), "{}", inner.as_array().unwrap().len());
        // An array does not hide a long text.
        let array = json!([list]).to_string();
        assert_eq!(counts_if_sampled(&text(&whole(&array)), CUSTOM).unwrap().unwrap().text, list.len());
        assert!(sampled(&whole(&array), CUSTOM, 9, 9)["data"]["b"].as_str().unwrap().len() < SHORT_TEXT + 10);
        // Many short texts do not hide it.
        let mut texts: serde_json::Map<_, _> = (0..5000).map(|key| (format!("k{key}"), json!("a"))).collect();
        texts.insert("k3000".to_owned(), json!(list));
        let sample = sampled(&json!({"metadata": {"annotations": texts}}), CUSTOM, 9, 9);
        assert!(sample["metadata"]["annotations"]["k3000"].as_str().unwrap().contains(",a00,"));
        assert!(sample["metadata"]["annotations"].as_object().unwrap().len() < 100);
        // kubectl's annotation is not validated.
        let applied = json!({"metadata": {"annotations": {LAST_APPLIED_ANNOTATION: list}}});
        assert_eq!(counts_if_sampled(&text(&applied), CUSTOM), Ok(None));
    }

    #[test]
    fn values_that_are_not_drawn_are_limited() {
        let mut nested = json!(0);
        for _ in 0..12 {
            nested = json!([nested, nested, nested]);
        }
        let kept = |drawn, elements| values(&sampled(&json!({"spec": nested}), CUSTOM, drawn, elements));
        // Short elements are whole.
        assert!(kept(0, 100) <= 8 * 100 + 2, "{}", kept(0, 100));
        assert!(kept(5, 100) <= 4 * 100 + 8 * 5 * 32, "{}", kept(5, 100));
        let maps = json!({"spec": map(64, &map(64, &map(64, &json!(0))))});
        assert!(values(&sampled(&maps, CUSTOM, 32, 256)) <= 64 + 8 * (32 * 32 + 4 * 256) + 32 * 4);
        let deep = Bytes::from([vec![b'['; 9000], vec![b']'; 9000]].concat());
        assert!(sample(&deep, &Draw::all(), CUSTOM).unwrap().len() <= 2 * DEEPEST + 2);
    }

    proptest! {
        #[test]
        fn a_sample_is_a_part_of_the_object(
            whole in object(),
            count in 0..9_usize,
            elements in 0..50_usize,
            is_built_in: bool,
        ) {
            let form = Form { is_built_in, ..CUSTOM };
            prop_assert!(is_part(&sampled(&whole, form, count, elements), &whole));
        }

        #[test]
        fn a_sample_without_a_limit_is_complete(whole in object()) {
            prop_assert_eq!(counts(&text(&whole), CUSTOM).values, values(&whole));
            prop_assert_eq!(parsed(&sample(&text(&whole), &Draw::all(), CUSTOM).unwrap()), whole);
        }

        #[test]
        fn other_text_does_not_panic(text in prop::collection::vec(any::<u8>(), 0..200)) {
            let text = Bytes::from(text);
            let is_json = serde_json::from_slice::<Value>(&text).is_ok();
            let of = Counts { values: 100, ..Counts::default() };
            prop_assert!(!is_json || sample(&text, &drawn(3, of, 3, 1), CUSTOM).is_ok());
        }
    }
}

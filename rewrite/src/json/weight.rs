//! Estimates the memory of a parsed JSON text.
//!
//! `[{"":0},{"":0},...]` has eight bytes for each object, and a parsed tree needs about a hundred times as much: a body
//! of 3 MiB, which every API server accepts, would need almost 300 MiB.

use super::Outcome;
use super::cursor::Cursor;
use super::edit::Edits;
use super::fault::Malformed;
use memchr::{memchr_iter, memchr2, memchr3_iter};

/// An object with one member: a leaf of a B-tree has room for eleven.
pub(crate) const OBJECT: usize = 640;
/// An array with one element: a vector grows to four.
const ARRAY: usize = 160;
/// Each further member or element, with its key.
const MORE: usize = 120;

/// `null`, which a Go decoder takes for an empty structure where it expects one. No other value contains an `n`.
const NULL: usize = OBJECT;

/// The weight of a text that is not estimated further, in bytes, such as YAML with aliases. It exceeds every limit for an
/// object.
pub const MAX_WEIGHT: usize = 64 * 1024 * 1024;

/// A rough upper estimate of the bytes of the parsed tree. The text need not be valid JSON.
pub fn weight(text: &[u8]) -> usize {
    let mut weight = text.len();
    outside_strings(text, |part| weight += weight_outside_strings(part));
    weight
}

/// The part of the weight that the names of managed fields (`fieldsV1`) have, without their text. An API server decodes them as
/// bytes, and makes them itself for each field that a client writes.
pub fn weight_of_managed_names(object: &[u8]) -> Result<usize, Malformed> {
    let Some(metadata) = Cursor::new(object, 0, 0).member_at("metadata")? else { return Ok(0) };
    let Some(mut managed) = metadata.member_at("managedFields")? else { return Ok(0) };
    let mut names = 0;
    if managed.peek()? == b'[' {
        managed.array(&mut Edits::new(), |manager, _, _| {
            if let Some(mut fields) = manager.member_at("fieldsV1")? {
                let start = fields.at();
                fields.skip()?;
                let text = fields.slice(start..fields.at());
                names += weight(text) - text.len();
            }
            manager.skip()?;
            Ok(Outcome::Keep)
        })?;
    }
    Ok(names)
}

/// The number of members and elements, plus one for each empty object and array, and an upper bound of the length of the
/// longest string, in bytes. For text that is not valid JSON, the numbers have no meaning.
pub(super) fn values_and_longest(text: &[u8]) -> (usize, usize) {
    let (mut values, mut end, mut longest) = (0, 0, 0);
    outside_strings(text, |part| {
        values += memchr3_iter(b'{', b'[', b',', part).count();
        // The text before this part is a string.
        let start = part.as_ptr() as usize - text.as_ptr() as usize;
        longest = longest.max(start - end);
        end = start + part.len();
    });
    (values, longest.max(text.len() - end))
}

/// Visits the text between the strings.
fn outside_strings(text: &[u8], mut visit: impl FnMut(&[u8])) {
    let mut rest = text;
    while let Some(quote) = memchr::memchr(b'"', rest) {
        visit(&rest[..quote]);
        rest = &rest[quote + 1..];
        // To the end of the string.
        loop {
            let Some(at) = memchr2(b'"', b'\\', rest) else { return };
            let is_end = rest[at] == b'"';
            rest = rest.get(at + if is_end { 1 } else { 2 }..).unwrap_or_default();
            if is_end {
                break;
            }
        }
    }
    visit(rest);
}

/// The weight of text outside strings.
fn weight_outside_strings(text: &[u8]) -> usize {
    let parts = memchr3_iter(b'{', b'[', b',', text);
    let parts: usize = parts
        .map(|at| match text[at] {
            b'{' => OBJECT,
            b'[' => ARRAY,
            _ => MORE,
        })
        .sum();
    parts + memchr_iter(b'n', text).count() * NULL
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_parts_weigh_much() {
        assert_eq!(weight(b""), 0);
        assert_eq!(weight(br#"{"a":[1,"{[,\"{"]}"#), 18 + OBJECT + ARRAY + MORE);
        assert_eq!(weight(b"[null,null]"), 11 + ARRAY + MORE + 2 * NULL);
        for open in [r#"{"a":"{"#, r#"{"a":"\"#, "\""] {
            assert!(weight(open.as_bytes()) <= 2 * OBJECT, "{open}");
        }
        let objects = format!("[{}]", vec![r#"{"":0}"#; 300_000].join(","));
        assert!(weight(objects.as_bytes()) > MAX_WEIGHT);
        let text = format!(r#"{{"data":{{"a":"{}"}}}}"#, "{,[".repeat(900_000));
        assert!(weight(text.as_bytes()) < 4 * 1024 * 1024);
        // 1.5 MB, in which each field has only a type.
        let schema = format!("{{{}}}", vec![r#""field":{"type":"string"}"#; 60_000].join(","));
        assert!(schema.len() > 1_500_000 && weight(schema.as_bytes()) < MAX_WEIGHT);
    }

    #[test]
    fn names_of_managed_fields_weigh_most() {
        let keys =
            |value: &str| (0..10_000).map(|key| format!(r#""f:key{key}":{value}"#)).collect::<Vec<_>>().join(",");
        let managed = format!(r#"[{{"manager":"a","fieldsV1":{{"f:data":{{{}}}}}}}, {{"manager":"b"}}]"#, keys("{}"));
        let object = format!(r#"{{"metadata":{{"name":"a","managedFields":{managed}}},"data":{{{}}}}}"#, keys("\"v\""));
        let parts = weight(object.as_bytes()) - object.len();
        let names = weight_of_managed_names(object.as_bytes()).unwrap();
        assert!(parts > 8 << 20 && parts - names < 2 << 20, "{parts} {names}");
        for other in ["[]", "1", r#"{"metadata":[]}"#, r#"{"metadata":{"managedFields":{"fieldsV1":{}}}}"#] {
            assert_eq!(weight_of_managed_names(other.as_bytes()), Ok(0), "{other}");
        }
    }
}

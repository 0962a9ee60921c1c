//! Random samples of a protobuf message: see [`Draw`].
//!
//! This module does not know the schema. So it treats a field as a message if its content can be read as one. Text that looks
//! like a message may become shorter.

use kube_wire::proto::Writer;

use super::lenient::{Field, fields, next};
use crate::json;
use crate::sample::{Allowance, Counts, Draw, FIRST, MAX_TEXT, Position};

/// A sample has no fields with this number or a higher one. Kubernetes has none above 50, and its decoders skip unknown
/// fields.
const FIELDS: usize = 100;

/// Messages below this level are treated as text. No kind that has samples and a protobuf form is nested as deeply.
const DEEPEST: usize = 32;

/// Printable text of at most this length, in bytes, is not read as a message. A name has at most 253 characters.
const NAME: usize = 256;

/// The number of bytes that count as one number in a packed list of more than [`MAX_TEXT`] bytes. A group ID that is not valid
/// takes at least five bytes.
const RUN: usize = 8;

/// A sample always keeps this many runs at the beginning of such a list.
const FIRST_RUNS: usize = 32;

/// The numbers of a packed list of at most this length, in bytes, are not counted. Each byte of a longer one counts as a
/// number, up to [`MAX_TEXT`] bytes.
const MAX_UNCOUNTED: usize = 32;

/// The field with the metadata of an object.
const METADATA: i32 = 1;

/// The state of the scan that counts values or draws a sample.
struct Sampler<'d> {
    draw: &'d Draw,
    allowance: Allowance,
    /// The position of the next value.
    next: Position,
    /// The length of the longest text that a sample shortens, in bytes. Only counted, and 0 while a sample is drawn.
    text: usize,
    /// The number of texts of the maximum length ([`Draw`] knows it) that the sample has kept.
    longest_kept: usize,
    /// Whether the host does not validate text outside the metadata.
    is_data: bool,
}

/// The counts of an object if it [needs samples](Counts::needs_samples). `None` if it does not, or if no decoder can read it.
/// `is_data` says that the host does not validate text outside the metadata.
pub fn counts_if_sampled(message: &[u8], is_data: bool) -> Option<Counts> {
    let length = message.len();
    // A field has at least two bytes, and a number in a packed list one. So an object has at most as many values as bytes.
    if length <= MAX_TEXT && !(Counts { values: length, length, ..Counts::default() }).needs_samples() {
        return None;
    }
    let draw = Draw::all();
    let mut sampler = Sampler::new(&draw, is_data);
    sampler.message(message, 0, true)?;
    let Position { values, numbers } = sampler.next;
    Some(Counts { values, numbers, text: sampler.text, length }).filter(|counts| counts.needs_samples())
}

/// Draws a sample of an object. `None` if no decoder can read the object. `is_data` says that the host does not validate text
/// outside the metadata.
pub fn sample(message: &[u8], draw: &Draw, is_data: bool) -> Option<Vec<u8>> {
    Sampler::new(draw, is_data).message(message, 0, true)
}

/// The number of a field, if Kubernetes may have such a field.
fn known(field: &Field<'_>) -> Option<usize> {
    let number = usize::try_from(field.number).ok()?;
    (!field.is_group && number < FIELDS).then_some(number)
}

/// Whether this is probably a name or other short text. Few messages consist of printable characters only.
fn is_name(content: &[u8]) -> bool {
    content.len() <= NAME && content.iter().all(|byte| (b' '..=b'~').contains(byte))
}

/// How often each field occurs. `None` if no decoder can read the message, or if it is probably a packed list of numbers.
fn occurrences(message: &[u8], depth: usize) -> Option<[usize; FIELDS]> {
    let mut occurrences = [0_usize; FIELDS];
    let mut rest = message;
    while !rest.is_empty() {
        let field;
        (field, rest) = next(rest)?;
        match known(&field) {
            Some(number) => occurrences[number] += 1,
            // No kind has this field, so `message` may be a packed list of numbers that looks like a message.
            None if depth > 0 && message.len() > MAX_TEXT => return None,
            None => {}
        }
    }
    Some(occurrences)
}

// === impl Sampler ===

impl<'d> Sampler<'d> {
    fn new(draw: &'d Draw, is_data: bool) -> Self {
        Self { draw, allowance: draw.allowance, next: Position::default(), text: 0, longest_kept: 0, is_data }
    }

    /// Draws a sample of a message. `is_in_first_or_last` if all fields that contain it are the first or last of their number.
    /// If `message` is not one, returns `None` and counts nothing.
    fn message(&mut self, message: &[u8], depth: usize, is_in_first_or_last: bool) -> Option<Vec<u8>> {
        let occurrences = occurrences(message, depth)?;
        let mut sample = Writer::new();
        let mut seen = [0_usize; FIELDS];
        for field in fields(message) {
            let Some(number) = known(&field) else { continue };
            let before = self.allowance;
            // The last occurrence counts if the schema allows only one.
            let is_last = seen[number] + 1 == occurrences[number];
            // Other lists may refer to the first elements, as containers refer to volumes.
            let is_always_kept = is_in_first_or_last && (seen[number] < FIRST || is_last);
            let is_in_first_or_last = is_in_first_or_last && (seen[number] == 0 || is_last);
            // The last occurrence is exempt from the limit of elements, as the first element of an array is.
            let is_allowed = is_always_kept || self.allowance.take_element(if is_last { 0 } else { seen[number] });
            seen[number] += 1;
            let is_kept = match field.content {
                None => {
                    let is_kept = self.number(is_allowed);
                    if is_kept {
                        sample.raw(field.head);
                    }
                    is_kept
                }
                Some(content) => {
                    let kept = self.delimited(&field, content, depth, is_allowed, is_in_first_or_last);
                    if let Some(kept) = &kept {
                        sample.raw(field.head);
                        sample.raw_varint(kept.len() as u64);
                        sample.raw(kept);
                    }
                    kept.is_some()
                }
            };
            if !is_kept {
                self.allowance = before;
            }
        }
        Some(sample.into_bytes())
    }

    /// Samples a field without a length. Returns whether the sample keeps it.
    fn number(&mut self, is_allowed: bool) -> bool {
        let first = self.next;
        self.next.numbers += 1;
        is_allowed || self.draw.has_any(first..self.next)
    }

    /// Samples a field with a length. Returns its content in the sample, or `None` if the sample omits it.
    fn delimited(
        &mut self,
        field: &Field<'_>,
        content: &[u8],
        depth: usize,
        is_allowed: bool,
        is_in_first_or_last: bool,
    ) -> Option<Vec<u8>> {
        let (first, longest) = (self.next, self.longest_kept);
        self.next.values += 1;
        let back = self.allowance.keep_back();
        let kept = if depth == 0 && self.is_data && field.number != METADATA {
            content.to_vec()
        } else {
            self.content(content, depth, is_in_first_or_last)
        };
        self.allowance.give_back(back);
        let is_drawn = self.draw.has_any(first..self.next) || self.draw.has_element(content);
        (is_allowed || is_drawn || self.longest_kept > longest).then_some(kept)
    }

    /// Draws a sample of the content of a field. It is a name, a message, a packed list of numbers or a text. A list of at most
    /// [`MAX_TEXT`] bytes stays whole.
    fn content(&mut self, content: &[u8], depth: usize, is_in_first_or_last: bool) -> Vec<u8> {
        if is_name(content) {
            return content.to_vec();
        }
        let message = if depth >= DEEPEST { None } else { self.message(content, depth + 1, is_in_first_or_last) };
        message.unwrap_or_else(|| match std::str::from_utf8(content) {
            _ if content.len() <= MAX_TEXT => {
                let is_text = content.iter().all(|byte| *byte >= b' ' || byte.is_ascii_whitespace());
                self.next.numbers += if is_text || content.len() <= MAX_UNCOUNTED { 0 } else { content.len() };
                content.to_vec()
            }
            Ok(text) => self.long_text(text),
            Err(_) => self.packed(content),
        })
    }

    /// Shortens a long text. If everything is kept, only measures it.
    fn long_text(&mut self, text: &str) -> Vec<u8> {
        let counts = json::counts_of_text(text.as_bytes());
        let length = counts.map_or(text.len(), Counts::as_text);
        if self.draw.is_all() {
            self.text = self.text.max(length);
            return text.into();
        }
        self.longest_kept += usize::from(self.draw.keeps_longest(length, self.longest_kept));
        let short = counts.and_then(|counts| json::sample_of_text(text.as_bytes(), counts, self.draw));
        short.unwrap_or_else(|| self.draw.shorten(text)).into()
    }

    /// Shortens a packed list of numbers. The numbers that it keeps are whole.
    fn packed(&mut self, content: &[u8]) -> Vec<u8> {
        let mut kept = Vec::new();
        // A varint ends with an ASCII byte.
        let is_end = |byte: &u8| byte.is_ascii();
        for (run, bytes) in content.chunks(RUN).enumerate() {
            let first = self.next;
            self.next.numbers += 1;
            if run >= FIRST_RUNS && !self.draw.has_any(first..self.next) {
                continue;
            }
            // A number belongs to the run in which it begins.
            let (start, end) = (run * RUN, run * RUN + bytes.len());
            let is_begun = start > 0 && !content[start - 1].is_ascii();
            let skipped = if is_begun { bytes.iter().position(is_end).map_or(bytes.len(), |end| end + 1) } else { 0 };
            kept.extend_from_slice(&bytes[skipped..]);
            if skipped < bytes.len() && !content[end - 1].is_ascii() {
                let more = content[end..].iter().take(2 * RUN).position(is_end).map_or(0, |last| last + 1);
                kept.extend_from_slice(&content[end..end + more]);
            }
        }
        kept
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sample::SHORT_TEXT;
    use crate::sample::tests::drawn;

    fn field(number: u32, content: &[u8]) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.bytes(number, content);
        writer.into_bytes()
    }

    /// A Pod whose security context has this content.
    fn pod(security_context: &[u8]) -> Vec<u8> {
        let container = [field(1, b"name"), field(2, b"image")].concat();
        field(2, &[field(2, &container), field(14, security_context)].concat())
    }

    fn counts(message: &[u8]) -> Counts {
        let draw = Draw::all();
        let mut sampler = Sampler::new(&draw, false);
        sampler.message(message, 0, true).unwrap();
        let Position { values, numbers } = sampler.next;
        Counts { values, numbers, text: sampler.text, length: message.len() }
    }

    fn sampled(message: &[u8], count: usize, elements: usize) -> Vec<u8> {
        sample(message, &drawn(count, counts(message), elements, 1), false).unwrap()
    }

    fn is_message(content: &[u8]) -> bool {
        let mut rest = content;
        while let Some((_, others)) = next(rest) {
            rest = others;
        }
        rest.is_empty()
    }

    fn count(sample: &[u8], part: &[u8]) -> usize {
        sample.windows(part.len()).filter(|window| *window == part).count()
    }

    #[test]
    fn lists_are_shortened_and_structures_are_not() {
        let name = "0".repeat(253);
        let label = |label: u32| field(11, &[field(1, format!("k{label}").as_bytes()), field(2, b"")].concat());
        let labels: Vec<u8> = (0..5000).flat_map(label).collect();
        let whole = [field(1, &[field(1, name.as_bytes()), labels].concat()), pod(b"")].concat();
        assert!(counts_if_sampled(&whole, false).unwrap().values > 10_000);
        let first: Vec<u8> = (0..64).flat_map(label).collect();
        let kept = [field(1, name.as_bytes()), first, label(4999)].concat();
        assert_eq!(sampled(&whole, 0, 10), [field(1, &kept), pod(b"")].concat());
        let sample = sampled(&whole, 100, 100);
        let labels = counts(&sample).values / 3;
        assert!((100 + FIRST / 2..200 + FIRST).contains(&labels), "{labels}");
        assert_eq!(count(&sample, b"\x0a\x05k4999\x12\0") + count(&sample, b"\x0a\x02k0\x12\0"), 2);
    }

    #[test]
    fn drawn_values_are_kept_with_their_containers() {
        let mut deep = field(1, b"\x07invalid");
        for _ in 0..15 {
            deep = field(3, &deep);
        }
        let whole = field(2, &field(2, &deep).repeat(2000));
        let kept = count(&sampled(&whole, 64, 0), b"invalid");
        assert!((FIRST + 40..FIRST + 80).contains(&kept), "{kept}");
    }

    /// A container that mounts a volume which the sample omits would be invalid.
    #[test]
    fn volumes_and_their_mounts_are_kept() {
        let text = |number, text: String| field(number, text.as_bytes());
        let item = |item: usize| field(2, &[text(1, format!("key{item}")), text(2, format!("path{item}"))].concat());
        let items = (0..6).flat_map(item).collect::<Vec<_>>();
        let source = field(2, &field(19, &[field(1, &text(1, "configuration".into())), items].concat()));
        let volume = |volume: usize| field(1, &[text(1, format!("volume{volume}")), source.clone()].concat());
        let mount =
            |mount: usize| field(9, &[text(1, format!("volume{mount}")), text(3, format!("/path/{mount}"))].concat());
        let variable = |variable: usize| field(7, &[text(1, format!("N{variable}")), text(2, "value".into())].concat());
        let container = |container: usize| {
            let mounts: Vec<u8> = (0..40).filter(|volume| volume % 4 == container % 4).flat_map(mount).collect();
            let variables: Vec<u8> = (0..20).flat_map(variable).collect();
            field(2, &[text(1, format!("container{container}")), variables, mounts].concat())
        };
        let volumes: Vec<u8> = (0..40).flat_map(volume).collect();
        let containers: Vec<u8> = (0..40).flat_map(container).collect();
        let whole = field(2, &[volumes, containers].concat());
        assert!(counts_if_sampled(&whole, false).is_some());
        for seed in 0..20 {
            let draw = drawn(32, counts(&whole), 256, seed);
            let sample = sample(&whole, &draw, false).unwrap();
            // The source of a volume is behind its name, and the path of a mount.
            let volume = |index: usize| [&text(1, format!("volume{index}"))[..], &[2 << 3 | 2]].concat();
            assert!((0..40).all(|index| count(&sample, &volume(index)) == 1), "{seed}");
        }
    }

    #[test]
    fn numbers_are_sampled_in_each_form() {
        let number = [&[0xff; 9][..], &[1]].concat();
        let apart = pod(&[&[4 << 3], &number[..]].concat().repeat(3000));
        let packed = pod(&field(4, &number.repeat(3000)));
        // Go takes the low 32 bits of the number of a field.
        let wide = [0xa0, 0x80, 0x80, 0x80, 0x80, 0x40];
        let wide = pod(&[&wide[..], &number].concat().repeat(3000));
        // The exit codes of a Job are a packed list each.
        let rules = field(11, &field(1, &field(1, &field(3, &[1; 250])))).repeat(40);
        assert!(counts_if_sampled(&field(2, &rules), false).unwrap().numbers >= 10_000);
        for whole in [apart, packed, wide] {
            let counts = counts_if_sampled(&whole, false).unwrap();
            assert!(counts.numbers >= 3000, "{counts:?}");
            let sample = sampled(&whole, 64, 10);
            let (numbers, parts) = (count(&sample, &number), memchr::memchr_iter(0xff, &sample).count());
            assert!((40..150).contains(&numbers), "{numbers}");
            assert_eq!(parts, 9 * numbers);
        }
    }

    #[test]
    fn long_text_is_shortened() {
        let text = "é!".repeat(10_000);
        let whole = pod(&field(9, text.as_bytes()));
        assert_eq!(counts_if_sampled(&whole, false).unwrap().text, text.len());
        assert!(sampled(&whole, 9, 9).len() < SHORT_TEXT + 60);
        let json = format!("[{}]", vec!["{}"; 10_000].join(","));
        let whole = pod(&field(9, json.as_bytes()));
        assert!(counts_if_sampled(&whole, false).unwrap().ratio(64) > 500);
        let sample = sampled(&whole, 9, 9);
        assert!((20..60).contains(&count(&sample, b"{}")), "{}", count(&sample, b"{}"));
        // Many short texts do not hide a long one.
        let fields = field(9, b"a").repeat(3000);
        let whole = pod(&[fields.clone(), field(9, text.as_bytes()), fields].concat());
        assert!(count(&sampled(&whole, 9, 9), "é!é!".as_bytes()) > 0);
        // The data of a ConfigMap stays as it is.
        let data = [field(1, b""), field(2, &[field(1, b"key"), field(2, text.as_bytes())].concat())].concat();
        assert_eq!(counts_if_sampled(&data, true), None);
        assert!(counts_if_sampled(&data, false).is_some());
        assert_eq!(sample_of_data(&data), data);
    }

    fn sample_of_data(message: &[u8]) -> Vec<u8> {
        sample(message, &drawn(9, counts(message), 9, 1), true).unwrap()
    }

    #[test]
    fn unknown_fields_do_not_hide_a_list() {
        let containers = field(2, b"").repeat(3000);
        // A group, a field that no kind has, and a field without a number.
        for hidden in [&[0x0b, 0x08, 1, 0x0c][..], &field(20_000, b"x"), &[0xf8, 0xff, 0xff, 0xff, 0x0f, 0]] {
            let whole = [hidden, &containers, hidden].concat();
            assert!(counts_if_sampled(&whole, false).unwrap().values >= 3000, "{hidden:?}");
            assert!(sampled(&whole, 0, 0).len() < 20 + 2 * FIRST, "{hidden:?}");
        }
        // A list of numbers that looks like a message with fields that no kind has.
        let disguised = [&[0xa2, 0x06, 10][..], &[0xff; 9], &[1]].concat().repeat(3000);
        let numbers = count(&sampled(&pod(&field(4, &disguised)), 64, 0), &[0xff; 9]);
        assert!(numbers >= 30, "{numbers}");
    }

    proptest! {
        #[test]
        fn a_sample_is_a_message_and_not_longer(
            bytes in prop::collection::vec(0..40_u8, 0..300),
            count in 0..5_usize,
            elements in 0..20_usize,
        ) {
            let of = Counts { values: 100, numbers: 100, ..Counts::default() };
            if let Some(sample) = sample(&bytes, &drawn(count, of, elements, 1), false) {
                prop_assert!(is_message(&sample));
                prop_assert!(sample.len() <= bytes.len());
            } else {
                prop_assert!(!is_message(&bytes));
            }
        }

        #[test]
        fn a_sample_without_a_limit_is_complete(bytes in prop::collection::vec(0..40_u8, 0..300)) {
            let whole = sample(&bytes, &Draw::all(), false);
            prop_assert!(whole.is_none_or(|whole| whole.len() <= bytes.len()));
        }
    }
}

//! Random samples of a protobuf message: see [`Draw`].
//!
//! This module does not know the schema. So it treats a field as a message if its content can be read as one. Text that looks
//! like a message may become shorter.

use bytes::Bytes;
use kube_wire::proto::Writer;

use super::lenient::{Field, fields, next};
use crate::json;
use crate::sample::{Allowance, Draw, FIRST, MAX_TEXT, Position, Size};

/// A sample has no fields with this number or a higher one. Kubernetes has none above 50, and its decoders skip unknown
/// fields.
const FIELDS: usize = 100;

/// Messages below this level are treated as text. Of the kinds with samples, none is nested as deeply.
const DEEPEST: usize = 32;

/// Printable text of at most this length, in bytes, is not read as a message. A name has at most 253 characters.
const NAME: usize = 256;

/// The number of bytes of a packed list that count as one number. A group ID that is not valid takes at least five bytes.
const RUN: usize = 8;

/// A packed list of at most this length, in bytes, counts as one value.
const FEW: usize = 32;

/// The field with the metadata of an object.
const METADATA: i32 = 1;

/// The state of the scan that counts values or draws a sample.
struct Sampler<'d> {
    draw: &'d Draw,
    allowance: Allowance,
    /// The position of the next value.
    next: Position,
    /// The length of the longest text that a sample shortens, in bytes.
    text: usize,
    /// The number of texts of this length in a sample.
    longest: usize,
    /// Whether the host does not validate text outside the metadata.
    is_data: bool,
}

/// The size of an object if it is [large](Size::is_large). `None` if it is not, or if no decoder can read it. `is_data` says
/// that the host does not validate text outside the metadata.
pub fn large(message: &[u8], is_data: bool) -> Option<Size> {
    let length = message.len();
    // A field has at least two bytes, and a number in a packed list one.
    if length <= MAX_TEXT && !(Size { values: length, length, ..Size::default() }).is_large() {
        return None;
    }
    let draw = Draw::all();
    let mut sampler = Sampler::new(&draw, is_data);
    sampler.message(message, 0, true)?;
    let Position { values, numbers } = sampler.next;
    Some(Size { values, numbers, text: sampler.text, length }).filter(|size| size.is_large())
}

/// Draws a sample of an object. `None` if no decoder can read the object.
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

// === impl Sampler ===

impl<'d> Sampler<'d> {
    fn new(draw: &'d Draw, is_data: bool) -> Self {
        Self { draw, allowance: draw.allowance, next: Position::default(), text: 0, longest: 0, is_data }
    }

    /// Draws a sample of a message. `is_alone` if all fields that contain it are the first or last of their number. If `message`
    /// is not one, returns `None` and counts nothing.
    fn message(&mut self, message: &[u8], depth: usize, is_alone: bool) -> Option<Vec<u8>> {
        let mut occurrences = [0_usize; FIELDS];
        let mut rest = message;
        while !rest.is_empty() {
            let (field, behind) = next(rest)?;
            match known(&field) {
                Some(number) => occurrences[number] += 1,
                // No kind has this field, so `message` may be a packed list of numbers that looks like a message.
                None if depth > 0 && message.len() > MAX_TEXT => return None,
                None => {}
            }
            rest = behind;
        }
        let mut sample = Writer::new();
        let mut seen = [0_usize; FIELDS];
        for field in fields(message) {
            let Some(number) = known(&field) else { continue };
            let (before, first, longest) = (self.allowance, self.next, self.longest);
            // The last occurrence counts if the schema allows only one.
            let is_last = seen[number] + 1 == occurrences[number];
            // Other lists may refer to the first elements, as containers refer to volumes.
            let is_deciding = is_alone && (seen[number] < FIRST || is_last);
            let is_alone = is_alone && (seen[number] == 0 || is_last);
            let is_allowed = is_deciding || self.allowance.takes_element(if is_last { 0 } else { seen[number] });
            seen[number] += 1;
            match field.content {
                None => {
                    self.next.numbers += 1;
                    if is_allowed || self.draw.has_any(first..self.next) {
                        sample.raw(field.head);
                    } else {
                        self.allowance = before;
                    }
                }
                Some(content) => {
                    self.next.values += 1;
                    let back = self.allowance.keep_back();
                    let kept = if depth == 0 && self.is_data && field.number != METADATA {
                        content.to_vec()
                    } else {
                        self.content(content, depth, is_alone)
                    };
                    self.allowance.give_back(back);
                    let is_drawn = self.draw.has_any(first..self.next) || self.draw.has_element(content);
                    if is_allowed || is_drawn || self.longest > longest {
                        sample.raw(field.head);
                        sample.raw_varint(kept.len() as u64);
                        sample.raw(&kept);
                    } else {
                        self.allowance = before;
                    }
                }
            }
        }
        Some(sample.into_bytes())
    }

    /// Draws a sample of the content of a field. Each byte of a short packed list counts as a number, and the list stays whole.
    fn content(&mut self, content: &[u8], depth: usize, is_alone: bool) -> Vec<u8> {
        if is_name(content) {
            return content.to_vec();
        }
        let message = if depth >= DEEPEST { None } else { self.message(content, depth + 1, is_alone) };
        message.unwrap_or_else(|| match std::str::from_utf8(content) {
            _ if content.len() <= MAX_TEXT => {
                let is_text = content.iter().all(|byte| *byte >= b' ' || byte.is_ascii_whitespace());
                self.next.numbers += if is_text || content.len() <= FEW { 0 } else { content.len() };
                content.to_vec()
            }
            Ok(text) => self.shortened(text),
            Err(_) => self.packed(content),
        })
    }

    /// Shortens a text.
    fn shortened(&mut self, content: &str) -> Vec<u8> {
        let text = Bytes::copy_from_slice(content.as_bytes());
        let inner = json::sample_of_text(&text, self.draw);
        let length = inner.as_ref().map_or(text.len(), |(size, _)| size.as_text());
        if self.draw.is_all() {
            self.text = self.text.max(length);
            return content.into();
        }
        self.longest += usize::from(self.draw.has_text(length, self.longest));
        inner.map_or_else(|| self.draw.shorten(content), |(_, sample)| sample).into()
    }

    /// Shortens a packed list of numbers. The numbers that it keeps are whole.
    fn packed(&mut self, content: &[u8]) -> Vec<u8> {
        let mut kept = Vec::new();
        // A varint ends with an ASCII byte.
        let is_end = |byte: &u8| byte.is_ascii();
        for (run, bytes) in content.chunks(RUN).enumerate() {
            let first = self.next;
            self.next.numbers += 1;
            if run >= NAME / RUN && !self.draw.has_any(first..self.next) {
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

    fn size(message: &[u8]) -> Size {
        let draw = Draw::all();
        let mut sampler = Sampler::new(&draw, false);
        sampler.message(message, 0, true).unwrap();
        let Position { values, numbers } = sampler.next;
        Size { values, numbers, text: sampler.text, length: message.len() }
    }

    fn sampled(message: &[u8], count: usize, elements: usize) -> Vec<u8> {
        sample(message, &drawn(count, size(message), elements, 1), false).unwrap()
    }

    fn is_message(content: &[u8]) -> bool {
        let mut rest = content;
        while let Some((_, behind)) = next(rest) {
            rest = behind;
        }
        rest.is_empty()
    }

    fn count(sample: &[u8], part: &[u8]) -> usize {
        sample.windows(part.len()).filter(|window| *window == part).count()
    }

    #[test]
    fn lists_become_shorter_and_structures_do_not() {
        let name = "0".repeat(253);
        let label = |label: u32| field(11, &[field(1, format!("k{label}").as_bytes()), field(2, b"")].concat());
        let labels: Vec<u8> = (0..5000).flat_map(label).collect();
        let whole = [field(1, &[field(1, name.as_bytes()), labels].concat()), pod(b"")].concat();
        assert!(large(&whole, false).unwrap().values > 10_000);
        let first: Vec<u8> = (0..64).flat_map(label).collect();
        let kept = [field(1, name.as_bytes()), first, label(4999)].concat();
        assert_eq!(sampled(&whole, 0, 10), [field(1, &kept), pod(b"")].concat());
        let sample = sampled(&whole, 100, 100);
        let labels = size(&sample).values / 3;
        assert!((100 + FIRST / 2..200 + FIRST).contains(&labels), "{labels}");
        assert_eq!(count(&sample, b"\x0a\x05k4999\x12\0") + count(&sample, b"\x0a\x02k0\x12\0"), 2);
    }

    #[test]
    fn what_is_drawn_stays_with_all_that_contains_it() {
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
    fn volumes_and_what_mounts_them_stay() {
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
        assert!(large(&whole, false).is_some());
        for seed in 0..20 {
            let draw = drawn(32, size(&whole), 256, seed);
            let sample = sample(&whole, &draw, false).unwrap();
            // The source of a volume is behind its name, and the path of a mount.
            let volume = |index: usize| [&text(1, format!("volume{index}"))[..], &[2 << 3 | 2]].concat();
            assert!((0..40).all(|index| count(&sample, &volume(index)) == 1), "{seed}");
        }
    }

    #[test]
    fn numbers_become_fewer_in_each_form() {
        let number = [&[0xff; 9][..], &[1]].concat();
        let apart = pod(&[&[4 << 3], &number[..]].concat().repeat(3000));
        let packed = pod(&field(4, &number.repeat(3000)));
        // Go takes the low 32 bits of the number of a field.
        let wide = [0xa0, 0x80, 0x80, 0x80, 0x80, 0x40];
        let wide = pod(&[&wide[..], &number].concat().repeat(3000));
        // The exit codes of a Job are a packed list each.
        let rules = field(11, &field(1, &field(1, &field(3, &[1; 250])))).repeat(40);
        assert!(large(&field(2, &rules), false).unwrap().numbers >= 10_000);
        for whole in [apart, packed, wide] {
            let size = large(&whole, false).unwrap();
            assert!(size.numbers >= 3000, "{size:?}");
            let sample = sampled(&whole, 64, 10);
            let (numbers, parts) = (count(&sample, &number), memchr::memchr_iter(0xff, &sample).count());
            assert!((40..150).contains(&numbers), "{numbers}");
            assert_eq!(parts, 9 * numbers);
        }
    }

    #[test]
    fn text_becomes_shorter() {
        let text = "é!".repeat(10_000);
        let whole = pod(&field(9, text.as_bytes()));
        assert_eq!(large(&whole, false).unwrap().text, text.len());
        assert!(sampled(&whole, 9, 9).len() < SHORT_TEXT + 60);
        let json = format!("[{}]", vec!["{}"; 10_000].join(","));
        let whole = pod(&field(9, json.as_bytes()));
        assert!(large(&whole, false).unwrap().ratio(64) > 500);
        let sample = sampled(&whole, 9, 9);
        assert!((20..60).contains(&count(&sample, b"{}")), "{}", count(&sample, b"{}"));
        // Many short texts do not hide a long one.
        let fields = field(9, b"a").repeat(3000);
        let whole = pod(&[fields.clone(), field(9, text.as_bytes()), fields].concat());
        assert!(count(&sampled(&whole, 9, 9), "é!é!".as_bytes()) > 0);
        // The data of a ConfigMap stays as it is.
        let data = [field(1, b""), field(2, &[field(1, b"key"), field(2, text.as_bytes())].concat())].concat();
        assert_eq!(large(&data, true), None);
        assert!(large(&data, false).is_some());
        assert_eq!(sample_of_data(&data), data);
    }

    fn sample_of_data(message: &[u8]) -> Vec<u8> {
        sample(message, &drawn(9, size(message), 9, 1), true).unwrap()
    }

    #[test]
    fn nothing_hides_a_list() {
        let containers = field(2, b"").repeat(3000);
        // A group, a field that no kind has, and a field without a number.
        for hidden in [&[0x0b, 0x08, 1, 0x0c][..], &field(20_000, b"x"), &[0xf8, 0xff, 0xff, 0xff, 0x0f, 0]] {
            let whole = [hidden, &containers, hidden].concat();
            assert!(large(&whole, false).unwrap().values >= 3000, "{hidden:?}");
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
            let of = Size { values: 100, numbers: 100, ..Size::default() };
            if let Some(sample) = sample(&bytes, &drawn(count, of, elements, 1), false) {
                prop_assert!(is_message(&sample));
                prop_assert!(sample.len() <= bytes.len());
            } else {
                prop_assert!(!is_message(&bytes));
            }
        }

        #[test]
        fn without_a_limit_it_is_the_whole(bytes in prop::collection::vec(0..40_u8, 0..300)) {
            let whole = sample(&bytes, &Draw::all(), false);
            prop_assert!(whole.is_none_or(|whole| whole.len() <= bytes.len()));
        }
    }
}

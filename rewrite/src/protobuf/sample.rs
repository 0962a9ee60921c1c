//! Random samples of a protobuf message: see [`Draw`].
//!
//! The schema is not known here, so everything that can be read as a message counts as one. Text that can be read so may
//! become shorter.

use kube_wire::proto::Writer;

use super::lenient::{Field, next};
use crate::json::MAX_MANAGER;
use crate::sample::{Counts, Draw, GROWTH, Number};

/// Fields have numbers below this limit. Kubernetes has none above 50. A decoder skips the others, so a sample has none.
const FIELDS: usize = 100;

/// The number of occurrences of a field that a sample keeps without drawing. It keeps the last, too, which counts if the
/// schema allows only one.
const OCCURRENCES: usize = 4;

/// The content of deeper messages is not sampled. No message of Kubernetes with a protobuf form is nested as deeply, except
/// in the schema of a CustomResourceDefinition.
const DEEPEST: usize = 32;

/// A name has at most 253 characters. Text of this length is not shortened.
const TEXT: usize = 256;

/// The content of a field with more bytes may be a packed list of numbers, if a message has such a list.
const LONG: usize = 1024;

/// The bytes of a packed list that count as one value. A number that is not a valid group has at least five bytes.
const RUN: usize = 8;

/// The fields of a name of a field manager: `metadata`, `managedFields` and `manager` (apimachinery's
/// `pkg/apis/meta/v1/generated.proto`).
const MANAGER: [i32; 3] = [1, 17, 1];

/// How a sample is drawn.
struct Sampler<'d> {
    draw: &'d Draw,
    sure: usize,
    next: Number,
    /// Whether a message may have a list of numbers, which a decoder accepts as one field.
    may_be_packed: bool,
}

/// The number of fields in a message, including those of its messages, if it is above `limit`. `may_be_packed` says
/// whether the message may have lists of numbers.
pub fn values_above(limit: usize, message: &[u8], may_be_packed: bool) -> Option<Counts> {
    if message.len() / 2 <= limit {
        return None;
    }
    let draw = Draw::all();
    let mut sampler = Sampler { draw: &draw, sure: 0, next: Number::default(), may_be_packed };
    sampler.message(message, 0)?;
    Some(Counts { values: sampler.next.value, scalars: sampler.next.scalar }).filter(|counts| counts.sum() > limit)
}

/// Draws a sample of a message. `None` if no decoder can read the message.
pub fn sample(message: &[u8], draw: &Draw, may_be_packed: bool) -> Option<Vec<u8>> {
    Sampler { draw, sure: draw.sure, next: Number::default(), may_be_packed }.message(message, 0)
}

/// Whether the managed fields of an object contain the name of a field manager that is too long.
pub fn has_long_manager(object: &[u8]) -> bool {
    find_long_manager(object, &MANAGER)
}

fn find_long_manager(message: &[u8], path: &[i32]) -> bool {
    let Some((number, inner)) = path.split_first() else { return message.len() > MAX_MANAGER };
    fields(message)
        .any(|field| field.number == *number && field.content.is_some_and(|content| find_long_manager(content, inner)))
}

/// The fields up to the end of the message, or to where a decoder fails.
fn fields(message: &[u8]) -> impl Iterator<Item = Field<'_>> {
    let mut rest = message;
    std::iter::from_fn(move || {
        let (field, behind) = next(rest)?;
        rest = behind;
        Some(field)
    })
}

/// The number of a field that Kubernetes may have.
fn known(field: &Field<'_>) -> Option<usize> {
    let number = usize::try_from(field.number).ok()?;
    (!field.is_group && number < FIELDS).then_some(number)
}

/// Whether this is a name, or other short text. Few messages consist of letters.
fn is_short_text(content: &[u8]) -> bool {
    content.len() <= TEXT && content.iter().all(|byte| (b' '..=b'~').contains(byte))
}

// === impl Sampler ===

impl Sampler<'_> {
    /// `None` if this is no message. Then nothing of it has been counted.
    fn message(&mut self, message: &[u8], depth: usize) -> Option<Vec<u8>> {
        let mut occurrences = [0_usize; FIELDS];
        let mut rest = message;
        while !rest.is_empty() {
            let (field, behind) = next(rest)?;
            match known(&field) {
                Some(number) => occurrences[number] += 1,
                // No kind has this field, so it may be a list of numbers that looks like a message.
                None if self.may_be_packed && depth > 0 && message.len() > LONG => return None,
                None => {}
            }
            rest = behind;
        }
        let mut sample = Writer::new();
        let mut seen = [0_usize; FIELDS];
        for field in fields(message) {
            let Some(number) = known(&field) else { continue };
            seen[number] += 1;
            let is_first = seen[number] <= OCCURRENCES || seen[number] == occurrences[number];
            match field.content {
                None => {
                    let first = self.next;
                    self.next.scalar += 1;
                    if self.is_kept(first, is_first) {
                        sample.raw(field.head);
                    }
                }
                Some(content) => {
                    if let Some(content) = self.content(content, is_first, depth) {
                        sample.raw(field.head);
                        sample.raw_varint(content.len() as u64);
                        sample.raw(&content);
                    }
                }
            }
        }
        Some(sample.into_bytes())
    }

    /// The sample of the content of a field; `None` if the sample does not have the field.
    fn content(&mut self, content: &[u8], is_first: bool, depth: usize) -> Option<Vec<u8>> {
        let first = self.next;
        self.next.value += 1;
        let before = self.sure;
        let is_sure = is_first && self.sure > 0;
        if is_sure {
            self.sure -= 1;
        } else {
            self.sure += GROWTH;
        }
        // Some room is kept for what follows.
        let reserve = self.sure / 3;
        self.sure -= reserve;
        let message = if depth >= DEEPEST || is_short_text(content) { None } else { self.message(content, depth + 1) };
        let sample = message.unwrap_or_else(|| self.text(content));
        self.sure += reserve;
        if is_sure {
            return Some(sample);
        }
        self.sure = self.sure.min(before);
        self.draw.has_any(first..self.next).then_some(sample)
    }

    /// Text, or a packed list of numbers.
    fn text(&mut self, content: &[u8]) -> Vec<u8> {
        if !self.may_be_packed || content.len() <= LONG {
            return content.to_vec();
        }
        let mut kept = Vec::new();
        for (run, bytes) in content.chunks(RUN).enumerate() {
            let first = self.next;
            self.next.scalar += 1;
            if run < TEXT / RUN || self.draw.has_any(first..self.next) {
                // Such a byte ends a number, and a character of text.
                let is_end = |byte: &u8| byte.is_ascii();
                let behind = &content[(run * RUN + bytes.len())..];
                let start = match run {
                    0 => 0,
                    _ if content[run * RUN - 1].is_ascii() => 0,
                    _ => bytes.iter().position(is_end).map_or(bytes.len(), |end| end + 1),
                };
                let more = match bytes.last() {
                    Some(last) if !last.is_ascii() => {
                        behind.iter().take(2 * RUN).position(is_end).map_or(0, |end| end + 1)
                    }
                    _ => 0,
                };
                kept.extend_from_slice(&bytes[start..]);
                kept.extend_from_slice(&behind[..more]);
            }
        }
        kept
    }

    fn is_kept(&mut self, first: Number, is_first: bool) -> bool {
        if is_first && self.sure > 0 {
            self.sure -= 1;
            return true;
        }
        self.draw.has_any(first..self.next)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sample::tests::drawn;

    fn field(number: u32, content: &[u8]) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.bytes(number, content);
        writer.into_bytes()
    }

    /// A PodSpec with this content of its security context, in a Pod.
    fn pod(security_context: &[u8]) -> Vec<u8> {
        let container = [field(1, b"name"), field(2, b"image")].concat();
        field(2, &[field(2, &container), field(14, security_context)].concat())
    }

    fn counts(message: &[u8]) -> Counts {
        values_above(0, message, true).unwrap_or_default()
    }

    fn sampled(message: &[u8], size: usize, sure: usize) -> Vec<u8> {
        sample(message, &drawn(size, counts(message), sure, 1), true).unwrap()
    }

    fn is_message(content: &[u8]) -> bool {
        let mut rest = content;
        while let Some((_, behind)) = next(rest) {
            rest = behind;
        }
        rest.is_empty()
    }

    #[test]
    fn lists_become_shorter_and_names_do_not() {
        let name = "0".repeat(253);
        let label = |label: u32| field(11, &[field(1, format!("k{label}").as_bytes()), field(2, b"")].concat());
        let labels: Vec<u8> = (0..5000).flat_map(label).collect();
        let whole = [field(1, &[field(1, name.as_bytes()), labels].concat()), pod(b"")].concat();
        assert!(counts(&whole).values > 10_000);
        let sample = sampled(&whole, 0, 10_000);
        let kept = [field(1, name.as_bytes()), label(0), label(1), label(2), label(3), label(4999)].concat();
        assert_eq!(sample, [field(1, &kept), pod(b"")].concat());
        let size = counts(&sampled(&whole, 100, 100)).values;
        assert!((150..400).contains(&size), "{size}");
    }

    #[test]
    fn what_is_drawn_stays_with_all_that_contains_it() {
        let mut deep = field(1, b"\x07invalid");
        for _ in 0..15 {
            deep = field(3, &deep);
        }
        let whole = field(2, &field(2, &deep).repeat(2000));
        let sample = sampled(&whole, 64, 0);
        let kept = sample.windows(b"invalid".len()).filter(|window| window == b"invalid").count();
        assert!(kept >= 20, "{kept}");
    }

    #[test]
    fn numbers_become_fewer_in_each_form() {
        let number = [&[0xff; 9][..], &[1]].concat();
        let apart = pod(&[&[4 << 3], &number[..]].concat().repeat(3000));
        let packed = pod(&field(4, &number.repeat(3000)));
        let spaces = pod(&field(4, &b" ".repeat(50_000)));
        // Go takes the low 32 bits of the number of a field.
        let wide = [0xa0, 0x80, 0x80, 0x80, 0x80, 0x40];
        let wide = pod(&[&wide[..], &number].concat().repeat(3000));
        for whole in [apart, packed, spaces, wide] {
            assert!(counts(&whole).scalars >= 3000, "{:?}", counts(&whole));
            let sample = sampled(&whole, 64, 10);
            assert!((150..3000).contains(&sample.len()), "{:?}: {}", counts(&whole), sample.len());
        }
    }

    #[test]
    fn packed_numbers_stay_whole() {
        let number = [&[0xff; 9][..], &[1]].concat();
        let sample = sampled(&pod(&field(4, &number.repeat(3000))), 200, 10);
        let packed = sample.windows(number.len()).filter(|window| **window == number).count();
        assert!((100..400).contains(&packed), "{packed}");
        assert_eq!(memchr::memchr_iter(0xff, &sample).count(), 9 * packed);
    }

    #[test]
    fn nothing_hides_a_list() {
        let containers = field(2, b"").repeat(3000);
        // A group, a field that no kind has, and a field without a number.
        for hidden in [&[0x0b, 0x08, 1, 0x0c][..], &field(20_000, b"x"), &[0xf8, 0xff, 0xff, 0xff, 0x0f, 0]] {
            let whole = field(2, &[hidden, &containers, hidden].concat());
            let counts = values_above(0, &whole, false).unwrap();
            assert!(counts.values >= 3000, "{hidden:?}: {counts:?}");
            let sample = sample(&whole, &drawn(0, counts, 1000, 1), false).unwrap();
            assert!(sample.len() < 20, "{hidden:?}: {}", sample.len());
        }
        // A list of numbers that looks like a message with fields that no kind has.
        let disguised = [&[0xa2, 0x06, 10][..], &[0xff; 9], &[1]].concat().repeat(3000);
        let sample = sampled(&pod(&field(4, &disguised)), 64, 0);
        let numbers = sample.windows(9).filter(|window| **window == [0xff; 9]).count();
        assert!(numbers >= 30, "{numbers}");
    }

    #[test]
    fn names_of_managers_are_short() {
        let manager = |length: usize| {
            let entry = |name: &str| field(17, &field(1, name.as_bytes()));
            [pod(b""), field(1, &[field(1, b"n"), entry("a"), entry(&"a".repeat(length))].concat())].concat()
        };
        assert!(!has_long_manager(&manager(MAX_MANAGER)));
        assert!(has_long_manager(&manager(MAX_MANAGER + 1)));
    }

    proptest! {
        #[test]
        fn a_sample_is_a_message_and_not_longer(
            bytes in prop::collection::vec(0..40_u8, 0..300),
            size in 0..5_usize,
            sure in 0..20_usize,
        ) {
            let counts = counts(&bytes);
            if let Some(sample) = sample(&bytes, &drawn(size, counts, sure, 1), true) {
                prop_assert!(is_message(&sample));
                prop_assert!(sample.len() <= bytes.len());
            } else {
                prop_assert!(!is_message(&bytes));
            }
        }

        #[test]
        fn without_a_limit_it_is_the_whole(bytes in prop::collection::vec(0..40_u8, 0..300)) {
            let whole = sample(&bytes, &Draw::all(), true);
            prop_assert!(whole.is_none_or(|whole| whole.len() <= bytes.len()));
        }
    }
}

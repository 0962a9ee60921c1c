//! Random samples of a protobuf message.
//!
//! A sample of a message is a smaller message of the same form: see [`json::sample`](crate::json::sample). The schema is not
//! known here, so everything that can be read as a message counts as one. Text that can be read so may become shorter.

use std::collections::HashMap;

use kube_wire::proto::Writer;

use super::lenient::next;

/// The number of occurrences of a field that a sample keeps.
const OCCURRENCES: usize = 4;

/// The content of deeper messages is not sampled. No message of Kubernetes with a protobuf form is nested as deeply, except
/// in the schema of a CustomResourceDefinition.
const DEEPEST: usize = 32;

/// The highest number of a field that a sample keeps. Kubernetes has none above 50. A decoder skips the others.
const LAST: i32 = 999;

/// A name has at most 253 characters. Text of this length is not shortened.
const TEXT: usize = 256;

/// The content of a field with more bytes may be a packed list of numbers, if a message has such a list.
const LONG: usize = 1024;

/// How a sample is drawn.
struct Sampler<K> {
    keep: K,
    /// How many more fields the sample keeps without drawing.
    sure: usize,
    /// The number of bytes that it keeps of what may be a packed list of numbers, if there is such a list.
    longest: Option<usize>,
}

/// The number of fields in a message, including those of its messages, if it is above `limit`. If `may_be_packed`, the bytes of long text count, too:
/// a decoder accepts a list of numbers as one field, with one byte for each number.
pub fn values_above(limit: usize, message: &[u8], may_be_packed: bool) -> Option<usize> {
    let mut values = 0;
    let mut open = vec![message];
    while let Some(rest) = open.pop() {
        let Some((field, rest)) = next(rest) else { continue };
        values += 1;
        open.push(rest);
        let Some(content) = field.content else { continue };
        if open.len() < DEEPEST {
            open.push(content);
        }
        if may_be_packed && content.len() > LONG && !is_message(content) {
            values += content.len();
        }
    }
    Some(values).filter(|values| *values > limit)
}

/// Draws a sample of a message. It keeps the first occurrences of each field in each message while they are at most `sure`
/// altogether, and those of the others that `keep` is true for. If `may_be_packed`, it keeps `sure` bytes of long text. `None` if no decoder can read the message.
pub fn sample(message: &[u8], sure: usize, may_be_packed: bool, keep: impl FnMut() -> bool) -> Option<Vec<u8>> {
    let longest = may_be_packed.then_some(sure.max(TEXT));
    Sampler { keep, sure, longest }.message(message, 0)
}

fn is_message(content: &[u8]) -> bool {
    let mut rest = content;
    while let Some((_, behind)) = next(rest) {
        rest = behind;
    }
    rest.is_empty()
}

/// Whether this is a name, or other short text. Few messages consist of letters.
fn is_short_text(content: &[u8]) -> bool {
    content.len() <= TEXT && content.iter().all(|byte| (b' '..=b'~').contains(byte))
}

// === impl Sampler ===

impl<K: FnMut() -> bool> Sampler<K> {
    fn message(&mut self, message: &[u8], depth: usize) -> Option<Vec<u8>> {
        let mut sample = Writer::new();
        let mut seen = HashMap::<i32, usize>::new();
        let mut rest = message;
        while !rest.is_empty() {
            let (field, behind) = next(rest)?;
            rest = behind;
            let occurrences = seen.entry(field.number).or_default();
            *occurrences += 1;
            if field.is_group || field.number > LAST || !self.keeps(*occurrences) {
                continue;
            }
            sample.raw(field.head);
            if let Some(content) = field.content {
                let inner =
                    if depth >= DEEPEST || is_short_text(content) { None } else { self.message(content, depth + 1) };
                let content = inner.as_deref().unwrap_or_else(|| self.cut(content));
                sample.raw_varint(content.len() as u64);
                sample.raw(content);
            }
        }
        Some(sample.into_bytes())
    }

    /// The beginning of what may be a packed list.
    fn cut<'c>(&self, content: &'c [u8]) -> &'c [u8] {
        match self.longest {
            Some(longest) if content.len() > LONG.max(longest) => {
                // Such a byte ends a number, and a character of text.
                let end = content[..longest].iter().rposition(u8::is_ascii);
                &content[..end.map_or(longest, |end| end + 1)]
            }
            _ => content,
        }
    }

    /// Whether the sample keeps the occurrence with this number, counted from one.
    fn keeps(&mut self, occurrence: usize) -> bool {
        if occurrence <= OCCURRENCES && self.sure > 0 {
            self.sure -= 1;
            return true;
        }
        (self.keep)()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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

    fn count(message: &[u8]) -> usize {
        values_above(0, message, false).unwrap_or_default()
    }

    #[test]
    fn lists_become_shorter_and_names_do_not() {
        let name = "0".repeat(253);
        let label = |label: u32| field(11, &[field(1, format!("k{label}").as_bytes()), field(2, b"")].concat());
        let labels: Vec<u8> = (0..5000).flat_map(label).collect();
        let whole = [field(1, &[field(1, name.as_bytes()), labels].concat()), pod(b"")].concat();
        assert!(values_above(1000, &whole, true).unwrap() > 10_000);
        let sample = sample(&whole, usize::MAX, true, || false).unwrap();
        let label = |number| label(number);
        let kept = [field(1, name.as_bytes()), label(0), label(1), label(2), label(3)].concat();
        assert_eq!(sample, [field(1, &kept), pod(b"")].concat());
    }

    #[test]
    fn numbers_become_fewer_in_each_form() {
        let number = [&[0xff; 9][..], &[1]].concat();
        let apart = pod(&[&[4 << 3], &number[..]].concat().repeat(3000));
        let packed = pod(&field(4, &number.repeat(3000)));
        let spaces = pod(&field(4, &b" ".repeat(5000)));
        // Go takes the low 32 bits of the number of a field.
        let wide = [0xa0, 0x80, 0x80, 0x80, 0x80, 0x40];
        let wide = pod(&[&wide[..], &number].concat().repeat(3000));
        for whole in [apart, packed, spaces, wide] {
            assert!(values_above(1000, &whole, true).is_some());
            let sample = sample(&whole, 100, true, || false).unwrap();
            assert!(sample.len() < 400, "{}", sample.len());
        }
    }

    #[test]
    fn nothing_hides_a_list() {
        let containers = field(2, b"").repeat(3000);
        // A group, a field that no kind has, and a field without a number.
        for hidden in [&[0x0b, 0x08, 1, 0x0c][..], &field(20_000, b"x"), &[0xf8, 0xff, 0xff, 0xff, 0x0f, 0]] {
            let whole = field(2, &[hidden, &containers, hidden].concat());
            let sample = sample(&whole, usize::MAX, true, || false).unwrap();
            assert!(count(&sample) < 10, "{hidden:?}: {}", count(&sample));
        }
    }

    proptest! {
        #[test]
        fn a_sample_is_a_message_and_not_longer(bytes in prop::collection::vec(0..40_u8, 0..300), sure in 0..20_usize) {
            if let Some(sample) = sample(&bytes, sure, true, || false) {
                prop_assert!(is_message(&sample));
                prop_assert!(sample.len() <= bytes.len());
                prop_assert!(count(&sample) <= count(&bytes));
            } else {
                prop_assert!(!is_message(&bytes));
            }
        }
    }
}

//! Estimates the memory of a decoded protobuf message.
//!
//! An empty message in a list takes two bytes, and a Go structure of hundreds of bytes when it is decoded. Which fields are
//! messages only the schema says. So each field whose content could be a message counts as one, and so does what is in it.
//! Text ends such a count after a few bytes in most cases.

use super::lenient::next;
/// A message counts like an object in JSON. This is also about the size of a Container in Go (`k8s.io/api/core/v1`).
use crate::json::OBJECT as MESSAGE;

/// A string, and its place in a list.
const TEXT: usize = 64;

/// The content of deeper messages is not parsed. Of the kinds of Kubernetes, only CustomResourceDefinitions have more
/// than a dozen levels, and they have no protobuf form here.
const DEEPEST: usize = 100;

/// A rough upper estimate of the memory of the decoded message, in bytes. For bytes that are no message, it counts what
/// a decoder would decode before the error.
pub fn weight(message: &[u8]) -> usize {
    let mut weight = message.len();
    let mut open = vec![message];
    while let Some(rest) = open.pop() {
        if rest.is_empty() {
            weight += MESSAGE;
        }
        let Some((field, rest)) = next(rest) else { continue };
        open.push(rest);
        let Some(field) = field.content else { continue };
        weight += TEXT;
        if open.len() < DEEPEST {
            open.push(field);
        } else {
            weight += field.len() / 2 * (MESSAGE + TEXT);
        }
    }
    weight
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn empty_messages_weigh_much_and_text_little() {
        let containers = [0x12, 0].repeat(1000);
        assert_eq!(weight(&containers), 2000 + 1000 * (MESSAGE + TEXT) + MESSAGE);
        let spec = [&[0x0a, 0xd0, 0x0f][..], &containers].concat();
        assert_eq!(weight(&spec), spec.len() + 1000 * (MESSAGE + TEXT) + TEXT + 2 * MESSAGE);
        // A group does not hide what follows it.
        assert_eq!(
            weight(&[&[0x0b, 0x08, 1, 0x0c][..], &containers].concat()),
            2004 + 1000 * (MESSAGE + TEXT) + MESSAGE
        );
        for text in [include_str!("../../Cargo.toml"), include_str!("weight.rs"), "0123456789abcdef", "0", "a", "YWJj"]
        {
            let text = text.repeat((1 << 20) / text.len());
            let mut field = vec![0x0a];
            let mut length = text.len();
            while length >= 0x80 {
                field.push(u8::try_from(length & 0x7f).unwrap() | 0x80);
                length >>= 7;
            }
            field.push(u8::try_from(length).unwrap());
            field.extend_from_slice(text.as_bytes());
            assert!(weight(&field) < 2 << 20, "{}: {}", &text[..1], weight(&field));
        }
    }

    proptest! {
        #[test]
        fn the_weight_of_any_bytes_is_bounded(bytes in prop::collection::vec(any::<u8>(), 0..4096)) {
            prop_assert!(weight(&bytes) <= bytes.len() * MESSAGE + MESSAGE);
        }
    }
}

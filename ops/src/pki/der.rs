//! The part of DER (X.690) that is needed to replace the outer fields of a certificate.
//!
//! It reads no certificate of a peer before webpki has verified it.

/// `INTEGER`.
pub(super) const INTEGER: u8 = 0x02;
/// `BIT STRING`.
pub(super) const BIT_STRING: u8 = 0x03;
/// `OBJECT IDENTIFIER`.
pub(super) const OBJECT_IDENTIFIER: u8 = 0x06;
/// `UTF8String`.
pub(super) const UTF8_STRING: u8 = 0x0c;
/// `SEQUENCE`, constructed.
pub(super) const SEQUENCE: u8 = 0x30;
/// `SET`, constructed.
pub(super) const SET: u8 = 0x31;

/// One tag-length-value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Element<'a> {
    /// The identifier octet; numbers above 30 do not occur in the outer fields of a certificate.
    pub(super) tag: u8,
    /// The value without its header.
    pub(super) content: &'a [u8],
    /// Header and value.
    pub(super) raw: &'a [u8],
}

/// Encodes an element whose value is `parts` one after the other.
pub(super) fn element(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let length = parts.iter().map(|part| part.len()).sum::<usize>();
    let mut out = Vec::with_capacity(length + 6);
    out.push(tag);
    if let Ok(short @ 0..0x80) = u8::try_from(length) {
        out.push(short);
    } else {
        let bytes = length.to_be_bytes();
        let significant = &bytes[length.leading_zeros() as usize / 8..];
        out.push(0x80 | u8::try_from(significant.len()).expect("a usize has at most eight bytes"));
        out.extend(significant);
    }
    for part in parts {
        out.extend(*part);
    }
    out
}

/// Splits the first element off; `None` if the input is not DER.
pub(super) fn split(input: &[u8]) -> Option<(Element<'_>, &[u8])> {
    let (&tag, rest) = input.split_first()?;
    let (&first, mut rest) = rest.split_first()?;
    let length = if first < 0x80 {
        usize::from(first)
    } else {
        let (bytes, after) = rest.split_at_checked(usize::from(first & 0x7f))?;
        if bytes.is_empty() || bytes.len() > size_of::<u32>() {
            return None;
        }
        rest = after;
        bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte))
    };
    let (content, after) = rest.split_at_checked(length)?;
    let raw = &input[..input.len() - after.len()];
    Some((Element { tag, content, raw }, after))
}

/// The elements of a constructed value; `None` if it is not DER.
pub(super) fn children(mut content: &[u8]) -> Option<Vec<Element<'_>>> {
    let mut found = Vec::new();
    while !content.is_empty() {
        let (element, rest) = split(content)?;
        found.push(element);
        content = rest;
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn written_elements_are_read_back(
            tag in 0_u8..31,
            content in proptest::collection::vec(any::<u8>(), 0..70_000),
            tail in proptest::collection::vec(any::<u8>(), 0..4),
        ) {
            let raw = element(tag, &[&content]);
            let input = [raw.as_slice(), &tail].concat();
            let expected = Element { tag, content: &content, raw: &raw };
            prop_assert_eq!(split(&input), Some((expected, tail.as_slice())));
        }

        #[test]
        fn no_input_panics(input in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = children(&input);
        }
    }
}

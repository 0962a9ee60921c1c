//! Strict percent-encoding (RFC 3986, section 2.1): text that does not decode to UTF-8 is an error.
//!
//! It is used for path segments and for query strings, which differ in the meaning of `+` and in the bytes that are not
//! escaped.

use std::borrow::Cow;

/// The text cannot be percent-decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PercentError {
    /// A `%` without two hexadecimal digits after it.
    #[error("a percent sign must be followed by two hexadecimal digits")]
    Escape,
    /// The decoded bytes are not UTF-8.
    #[error("the decoded text is not UTF-8")]
    NotUtf8,
}

/// Decodes one path segment. `+` has no special meaning.
pub(crate) fn decode_segment(raw: &str) -> Result<Cow<'_, str>, PercentError> {
    decode(raw, false)
}

/// Decodes a key or a value of a query string; `+` is a space (WHATWG URL, `application/x-www-form-urlencoded`, which
/// is also what Go's `url.ParseQuery` reads).
pub(crate) fn decode_query(raw: &str) -> Result<Cow<'_, str>, PercentError> {
    decode(raw, true)
}

/// Appends `text` as one path segment. All bytes except RFC 3986's `pchar` are encoded.
pub(crate) fn encode_segment(out: &mut String, text: &str) {
    encode(out, text, |byte| is_unreserved(byte) || b"!$&'()*+,;=:@".contains(&byte));
}

/// Appends `text` as a query key or value. All bytes except the unreserved ones are encoded, so that no parser reads them as
/// delimiters.
pub(crate) fn encode_query(out: &mut String, text: &str) {
    encode(out, text, is_unreserved);
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

fn decode(raw: &str, plus_is_space: bool) -> Result<Cow<'_, str>, PercentError> {
    let special = |byte: u8| byte == b'%' || (plus_is_space && byte == b'+');
    let Some(first) = raw.bytes().position(special) else {
        return Ok(Cow::Borrowed(raw));
    };
    let (clean, coded) = raw.split_at(first);
    let mut decoded = Vec::with_capacity(raw.len());
    decoded.extend_from_slice(clean.as_bytes());
    let mut bytes = coded.bytes();
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => {
                let high = bytes.next().and_then(hex_digit).ok_or(PercentError::Escape)?;
                let low = bytes.next().and_then(hex_digit).ok_or(PercentError::Escape)?;
                high << 4 | low
            }
            b'+' if plus_is_space => b' ',
            other => other,
        });
    }
    String::from_utf8(decoded).map(Cow::Owned).map_err(|_| PercentError::NotUtf8)
}

fn hex_digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

fn encode(out: &mut String, text: &str, bare: impl Fn(u8) -> bool) {
    const HEX: [char; 16] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F'];
    // Nearly all names.
    if text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.')) {
        return out.push_str(text);
    }
    let mut rest = text;
    // An unescaped byte is ASCII, so a cut next to it never splits a character.
    while let Some(position) = rest.bytes().position(|byte| !byte.is_ascii() || !bare(byte)) {
        let (clean, coded) = rest.split_at(position);
        out.push_str(clean);
        let character = coded.chars().next().expect("a byte is at this position");
        let (character, after) = coded.split_at(character.len_utf8());
        for byte in character.bytes() {
            out.extend(['%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        }
        rest = after;
    }
    out.push_str(rest);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn malformed_text_is_an_error() {
        for bad in ["%", "a%2", "%zz", "%+1", "%é1"] {
            assert_eq!(decode_segment(bad), Err(PercentError::Escape), "{bad}");
        }
        assert_eq!(decode_segment("%ff"), Err(PercentError::NotUtf8));
        assert_eq!(decode_segment("%C3"), Err(PercentError::NotUtf8));
    }

    #[test]
    fn plus_is_a_space_only_in_a_query() {
        assert_eq!(decode_segment("a+b").unwrap(), "a+b");
        assert_eq!(decode_query("a+b%2B").unwrap(), "a b+");
    }

    proptest! {
        #[test]
        fn encoding_has_an_inverse(text in any::<String>()) {
            let mut segment = String::new();
            encode_segment(&mut segment, &text);
            prop_assert!(segment.is_ascii() && !segment.contains('/') && !segment.contains('?'));
            prop_assert_eq!(decode_segment(&segment).unwrap(), text.as_str());
            let mut query = String::new();
            encode_query(&mut query, &text);
            prop_assert!(!query.contains(['&', '=', ';', '+', '#']));
            prop_assert_eq!(decode_query(&query).unwrap(), text);
        }
    }
}

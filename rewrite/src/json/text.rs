//! An undecoded string of the text.

use std::borrow::Cow;
use std::ops::Range;

use bytes::Bytes;

/// The inside of a JSON string, not yet decoded.
#[derive(Clone, Copy, Debug)]
pub struct Text<'a> {
    /// The text between the quotes, with valid escapes.
    pub raw: &'a [u8],
    /// The offset of its first byte in the scanned text.
    pub start: usize,
    /// Whether there are escapes in it.
    pub(super) escapes: Escapes,
}

/// Whether there is a backslash in a string.
///
/// It is as wide as a word. A `bool` would end a `Text` with padding, and a `Result<Text, _>` would be copied by two stores
/// of different width. The wider load that follows would have to wait until both have left the store buffer, for each string
/// of a text. [`Defect`](super::Defect) has the same width for the same reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(super) enum Escapes {
    /// Each byte stands for itself.
    None,
    /// At least one.
    Some,
}

// === impl Text ===

impl<'a> Text<'a> {
    /// The range of the content in the scanned text.
    pub fn range(&self) -> Range<usize> {
        self.start..self.start + self.raw.len()
    }

    /// Whether there is a backslash in it.
    #[inline]
    pub fn has_escapes(&self) -> bool {
        self.escapes == Escapes::Some
    }

    /// Whether the decoded string is equal to `other`: `"n\u0061me"` is `name`, as for Go.
    pub fn is(&self, other: &str) -> bool {
        if self.has_escapes() { self.decode() == other } else { self.raw == other.as_bytes() }
    }

    /// Whether Go's `encoding/json` matches this key with a field `name`, which ignores case (`foldRune` in
    /// encoding/json/fold.go).
    pub fn folds_to(&self, name: &str) -> bool {
        let fold = |character| match character {
            '\u{17f}' => 's',
            '\u{212a}' => 'k',
            _ => character.to_ascii_lowercase(),
        };
        self.decode().chars().map(fold).eq(name.chars().map(fold))
    }

    /// The string as Go reads it: lone surrogates and invalid UTF-8 become U+FFFD (`unquote` in `decode.go`).
    pub fn decode(&self) -> Cow<'a, str> {
        if !self.has_escapes() {
            // Almost all text is valid, and to find only that takes less time.
            return str::from_utf8(self.raw).map_or_else(|_| String::from_utf8_lossy(self.raw), Cow::Borrowed);
        }
        let mut out = String::with_capacity(self.raw.len());
        let mut rest = self.raw;
        while let Some(at) = memchr::memchr(b'\\', rest) {
            out.push_str(&String::from_utf8_lossy(&rest[..at]));
            let (decoded, length) = escape(&rest[at..]);
            out.push(decoded);
            rest = &rest[at + length..];
        }
        out.push_str(&String::from_utf8_lossy(rest));
        Cow::Owned(out)
    }

    /// Whether the decoded string begins with `prefix`, which is ASCII.
    pub fn starts_with(&self, prefix: &str) -> bool {
        if self.has_escapes() { self.decode().starts_with(prefix) } else { self.raw.starts_with(prefix.as_bytes()) }
    }

    /// The decoded string as bytes, without a copy if it has no escapes. Invalid UTF-8 stays as it is then, so compare it
    /// only with valid text.
    pub fn bytes(&self) -> Cow<'a, [u8]> {
        if self.has_escapes() { Cow::Owned(self.decode().into_owned().into_bytes()) } else { Cow::Borrowed(self.raw) }
    }
}

/// The character of a valid escape at the start of `raw`, and the length of the escape in bytes.
fn escape(raw: &[u8]) -> (char, usize) {
    let simple = match raw.get(1) {
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(b'u') => return unicode_escape(raw),
        Some(&byte) => char::from(byte),
        None => char::REPLACEMENT_CHARACTER,
    };
    (simple, 2)
}

/// `\uXXXX`, or a surrogate pair of them (RFC 8259, section 7).
fn unicode_escape(raw: &[u8]) -> (char, usize) {
    let first = code_unit(raw);
    if (0xd800..0xdc00).contains(&first)
        && let low @ 0xdc00..0xe000 = raw.get(6..).map_or(0, code_unit)
    {
        let joined = 0x1_0000 + ((first - 0xd800) << 10 | (low - 0xdc00));
        return (char::from_u32(joined).unwrap_or(char::REPLACEMENT_CHARACTER), 12);
    }
    (char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER), 6)
}

/// The number in `\uXXXX` at the start of `raw`, or 0 if there is none.
fn code_unit(raw: &[u8]) -> u32 {
    let Some([b'\\', b'u', digits @ ..]) = raw.first_chunk::<6>() else {
        return 0;
    };
    digits.iter().fold(0, |sum, &digit| sum << 4 | char::from(digit).to_digit(16).unwrap_or(0))
}

/// The content of a JSON string for `text`.
pub(crate) fn unquoted(text: &str) -> Bytes {
    let mut quoted = Bytes::from(quoted(text)).slice(1..);
    quoted.truncate(quoted.len() - 1);
    quoted
}

/// `text` as a JSON string with quotes, with only the escapes that RFC 8259 requires.
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    let mut copied = 0;
    for (at, byte) in text.bytes().enumerate() {
        let simple = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0..b' ' => "\\u00",
            _ => continue,
        };
        out.push_str(&text[copied..at]);
        out.push_str(simple);
        if simple == "\\u00" {
            let code = u32::from(byte);
            out.extend([code >> 4, code & 15].map(|digit| char::from_digit(digit, 16).expect("four bits")));
        }
        copied = at + 1;
    }
    out.push_str(&text[copied..]);
    out.push('"');
    out
}

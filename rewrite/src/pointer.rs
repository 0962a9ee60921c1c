//! Overlays that are stored beside their object.
//!
//! Kubernetes limits the annotations of one object to 256 KiB in all (`TotalAnnotationSizeLimitB` in apimachinery's
//! `api/validation/objectmeta.go`). All virtual clusters and the operator share this limit, so an annotation holds only
//! a small overlay. A larger one is stored elsewhere, and its annotation is a [`Pointer`].
//!
//! [`Pointers`] finds the pointers of one virtual cluster in responses of the host, so that the overlays can replace them
//! before anything else reads the objects.

use std::fmt;
use std::ops::Range;

use bytes::Bytes;
use memchr::memmem;

use crate::ClusterName;
use crate::name::OVERLAY_PREFIX;

/// The prefix of a pointer. An inline overlay is a JSON object.
const MARK: &str = "stored:";

/// The digits of an identifier: 128 bits.
const DIGITS: usize = 32;

/// The maximum length of a pointer with its quotes: the mark, the identifier, and a digest of 256 bits.
const MAX_POINTER: usize = MARK.len() + DIGITS + 1 + 64 + 2;

/// The maximum white space around a colon. The host writes at most one space.
const MAX_SPACE: usize = 8;

/// Where an overlay is stored.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StoredId(String);

/// The value of an annotation whose overlay is stored elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pointer {
    /// Where the overlay is.
    pub id: StoredId,
    /// The digest of the virtual cluster's pending change. Other clusters compare it with theirs, so it stays in the
    /// annotation.
    pub pending_change: Option<String>,
}

/// Finds pointers in JSON that arrives in chunks.
#[derive(Debug)]
pub struct Pointers {
    /// The key of the annotation, with its quotes.
    key: Vec<u8>,
    /// The end of the last chunk, if a pointer may begin in it.
    held: Vec<u8>,
}

/// A piece of the JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// As it is.
    Text(Bytes),
    /// A pointer in quotes.
    Pointer(StoredId),
}

/// The value after a key.
enum Value {
    Pointer(Range<usize>, StoredId),
    Other,
    /// The rest is in the next chunk.
    Cut,
}

// === impl StoredId ===

impl StoredId {
    /// An identifier of these bits.
    pub fn new(bits: u128) -> Self {
        Self(format!("{bits:032x}"))
    }

    /// The identifier in a text of 32 hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        (text.len() == DIGITS && is_hex(text)).then(|| Self(text.to_owned()))
    }
}

impl fmt::Display for StoredId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

// === impl Pointer ===

impl Pointer {
    /// The pointer in the value of an annotation, if it is one.
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix(MARK)?;
        let (id, pending_change) = match rest.split_once(':') {
            Some((id, digest)) => (id, Some(digest)),
            None => (rest, None),
        };
        let is_digest = pending_change.is_none_or(|digest| digest.len() <= 64 && is_hex(digest));
        Some(Self { id: StoredId::parse(id)?, pending_change: pending_change.map(str::to_owned) }).filter(|_| is_digest)
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{MARK}{}", self.id)?;
        match &self.pending_change {
            Some(digest) => write!(f, ":{digest}"),
            None => Ok(()),
        }
    }
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

// === impl Pointers ===

impl Pointers {
    /// Finds the pointers of this virtual cluster.
    pub fn of(cluster: &ClusterName) -> Self {
        Self { key: format!("\"{OVERLAY_PREFIX}{cluster}\"").into_bytes(), held: Vec::new() }
    }

    /// Takes the next chunk, and passes on all pieces that are complete. It holds back at most the longest key with its
    /// pointer.
    pub fn push(&mut self, chunk: &Bytes, mut found: impl FnMut(Piece)) {
        let text = if self.held.is_empty() {
            chunk.clone()
        } else {
            self.held.extend_from_slice(chunk);
            Bytes::from(std::mem::take(&mut self.held))
        };
        let give = |range: Range<usize>, found: &mut dyn FnMut(Piece)| {
            if !range.is_empty() {
                found(Piece::Text(text.slice(range)));
            }
        };
        let (mut given, mut at) = (0, 0);
        while let Some(key) = memmem::find(&text[at..], &self.key).map(|found| at + found) {
            at = key + self.key.len();
            match value(&text[at..]) {
                Value::Other => {}
                Value::Cut => {
                    give(given..key, &mut found);
                    self.held = text[key..].to_vec();
                    return;
                }
                Value::Pointer(range, id) => {
                    give(given..at + range.start, &mut found);
                    given = at + range.end;
                    at = given;
                    found(Piece::Pointer(id));
                }
            }
        }
        let end = text.len() - self.begun(&text[at..]);
        give(given..end, &mut found);
        self.held = text[end..].to_vec();
    }

    /// The rest of the text that was held back.
    pub fn finish(&mut self) -> Bytes {
        std::mem::take(&mut self.held).into()
    }

    /// How many bytes at the end of a text may be the beginning of the key.
    fn begun(&self, text: &[u8]) -> usize {
        let longest = text.len().min(self.key.len() - 1);
        (1..=longest).rev().find(|length| text.ends_with(&self.key[..*length])).unwrap_or_default()
    }
}

/// Parses the value after a key in JSON.
fn value(text: &[u8]) -> Value {
    let Some(colon) = behind_space(text) else { return cut_or_other(text) };
    if text[colon] != b':' {
        return Value::Other;
    }
    let rest = &text[colon + 1..];
    let Some(quote) = behind_space(rest) else { return cut_or_other(rest) };
    if rest[quote] != b'"' {
        return Value::Other;
    }
    let start = colon + 1 + quote;
    let inside = &text[start + 1..];
    let window = &inside[..inside.len().min(MAX_POINTER)];
    let Some(end) = memchr::memchr(b'"', window) else {
        let is_begun = window.len() < MAX_POINTER && begins_like_pointer(window);
        return if is_begun { Value::Cut } else { Value::Other };
    };
    let pointer = std::str::from_utf8(&window[..end]).ok().and_then(Pointer::parse);
    pointer.map_or(Value::Other, |pointer| Value::Pointer(start..start + 1 + end + 1, pointer.id))
}

/// Whether an incomplete value may become a pointer.
fn begins_like_pointer(value: &[u8]) -> bool {
    let compared = value.len().min(MARK.len());
    value[..compared] == MARK.as_bytes()[..compared]
}

/// Where the leading white space of a text ends; `None` if the text ends with it, or if it is too long.
fn behind_space(text: &[u8]) -> Option<usize> {
    text.iter().take(MAX_SPACE + 1).position(|byte| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r'))
}

/// Of a text of nothing but white space.
fn cut_or_other(text: &[u8]) -> Value {
    if text.len() <= MAX_SPACE { Value::Cut } else { Value::Other }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef";

    /// The text with each pointer replaced by `<ID>`.
    fn replaced(chunks: impl IntoIterator<Item = Bytes>) -> String {
        let mut pointers = Pointers::of(&"ke".parse().unwrap());
        let mut all = Vec::new();
        for chunk in chunks {
            pointers.push(&chunk, |piece| match piece {
                Piece::Text(text) => all.extend_from_slice(&text),
                Piece::Pointer(id) => all.extend_from_slice(format!("<{id}>").as_bytes()),
            });
            assert!(pointers.held.len() <= pointers.key.len() + 2 * MAX_SPACE + MAX_POINTER + 2);
        }
        all.extend_from_slice(&pointers.finish());
        String::from_utf8(all).unwrap()
    }

    fn sample() -> String {
        let digest = "ab".repeat(32);
        format!(
            r#"{{"a":{{"overlay.atoll.dev/ke":"stored:{ID}","overlay.atoll.dev/hz":"stored:{ID}"}},
                "b":{{"overlay.atoll.dev/ke" : "stored:{ID}:{digest}"}},"c":"\"overlay.atoll.dev/ke\":\"stored:{ID}\"",
                "d":{{"overlay.atoll.dev/ke":"{{\"labels\":{{}}}}"}},"overlay.atoll.dev/ke":"stored:{}"}}"#,
            &ID[1..]
        )
    }

    fn expected() -> String {
        let digest = "ab".repeat(32);
        let all = sample()
            .replace(&format!(r#""overlay.atoll.dev/ke":"stored:{ID}""#), &format!(r#""overlay.atoll.dev/ke":<{ID}>"#));
        all.replace(&format!(r#""stored:{ID}:{digest}""#), &format!("<{ID}>"))
    }

    #[test]
    fn pointers_of_one_cluster_are_found() {
        assert_eq!(replaced([Bytes::from(sample())]), expected());
        assert!(expected().matches('<').count() == 2);
    }

    #[test]
    fn pointers_are_written_as_they_are_read() {
        for text in [format!("stored:{ID}"), format!("stored:{ID}:ab12")] {
            assert_eq!(Pointer::parse(&text).unwrap().to_string(), text);
        }
        for text in ["{}", "stored:", "stored:x", &format!("stored:{ID}:\"")] {
            assert_eq!(Pointer::parse(text), None, "{text}");
        }
        assert_eq!(StoredId::new(0x2a).to_string(), format!("{}2a", "0".repeat(30)));
    }

    proptest! {
        #[test]
        fn chunking_makes_no_difference(sizes in proptest::collection::vec(1_usize..60, 1..80)) {
            let mut rest = Bytes::from(sample());
            let mut chunks = Vec::new();
            for size in sizes {
                chunks.push(rest.split_to(size.min(rest.len())));
            }
            chunks.push(rest);
            prop_assert_eq!(replaced(chunks), expected());
        }

        #[test]
        fn other_text_is_unchanged(text in "[\"overlay.atoll.dev/ke:{} stored0]{0,200}", cut in 0_usize..200) {
            let text = Bytes::from(text);
            let cut = cut.min(text.len());
            prop_assert_eq!(replaced([text.slice(..cut), text.slice(cut..)]), String::from_utf8(text.to_vec()).unwrap());
        }
    }
}

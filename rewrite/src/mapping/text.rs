//! Names in messages.
//!
//! A message is free text of a component of the host: `pods "a" is forbidden: User "vc:ke:eve" cannot get resource "pods" in API
//! group "" in the namespace "edge-ke"`. Words that are host namespaces of this virtual cluster are replaced by their virtual
//! names, `vc:<cluster>:` is removed, and parked labels get their original keys. A word is a maximal run of letters, digits, `-`
//! and `_`, so `edge-ke-7d4f` is not mistaken for `edge-ke`.

use std::ops::Range;

use bytes::Bytes;
use memchr::memmem;

use super::identity::Identities;
use super::namespaces::Namespaces;
use super::object::CustomObjects;
use crate::json::{Edits, Text, quoted};
use crate::parked::PARKED_INFIX;

/// The names that are replaced in messages.
#[derive(Clone, Copy)]
pub(crate) struct Messages<'m> {
    pub(super) namespaces: &'m Namespaces,
    pub(super) identities: &'m Identities,
    pub(super) objects: &'m CustomObjects,
}

// === impl Messages ===

impl Messages<'_> {
    /// Records the edits that make the message in a string of a body readable for the virtual cluster.
    pub(crate) fn edit(&self, message: &Text<'_>, edits: &mut Edits) {
        if !self.may_name(message.raw) {
            return;
        }
        if message.has_escapes() && has_hidden_word_byte(message.raw) {
            // `\u0065dge` is not a run of word bytes, so the text is decoded, which copies it. Go writes no such text,
            // so this is rare.
            let decoded = message.decode();
            if let Some(changed) = self.readable(&decoded) {
                let changed = quoted(&changed);
                edits.replace(message.range(), Bytes::copy_from_slice(&changed.as_bytes()[1..changed.len() - 1]));
            }
            return;
        }
        self.each_name(message.raw, message.has_escapes(), |range, new| {
            let old = &message.raw[range.clone()];
            edits.rename(message.start + range.start..message.start + range.end, old, new);
        });
    }

    /// The message for the virtual cluster. `None` if it does not change.
    pub(super) fn readable(&self, message: &str) -> Option<String> {
        let mut out = String::new();
        let mut kept = 0;
        self.each_name(message.as_bytes(), false, |range, new| {
            // Names are ASCII, so their ends are character boundaries.
            out.push_str(&message[kept..range.start]);
            out.push_str(&String::from_utf8_lossy(new));
            kept = range.end;
        });
        (kept > 0).then(|| out + &message[kept..])
    }

    /// Calls `found` for every range of `message` to replace, in order. With `escaped`, `message` is the content of a JSON
    /// string, in which the text after a backslash is not a word.
    fn each_name(&self, message: &[u8], escaped: bool, mut found: impl FnMut(Range<usize>, &Bytes)) {
        let nothing = Bytes::new();
        let mut at = 0;
        while at < message.len() {
            if escaped && message[at] == b'\\' {
                at += if message.get(at + 1) == Some(&b'u') { 6 } else { 2 };
                continue;
            }
            if message[at..].starts_with(PARKED_INFIX) {
                found(at..at + PARKED_INFIX.len() - 1, &nothing);
                at += PARKED_INFIX.len();
                continue;
            }
            let length = message[at..].iter().take_while(|byte| is_word_byte(**byte)).count();
            let word = &message[at..at + length];
            if word == b"vc" && message[at..].starts_with(self.identities.prefix()) {
                let end = at + self.identities.prefix().len();
                found(at..end, &nothing);
                at = end;
                continue;
            }
            if let Some((host, name)) = self.objects.requested()
                && is_alone(message, at, host)
            {
                found(at..at + host.len(), name);
                at += host.len();
                continue;
            }
            if let Some(name) = self.namespaces.word(word) {
                found(at..at + length, &name.to_bytes());
            }
            at += length.max(1);
        }
    }

    /// Whether `text` can contain a name of the host.
    fn may_name(&self, text: &[u8]) -> bool {
        // Every host name of this cluster contains a hyphen, and few messages do, so this check saves time.
        self.objects.requested().is_some()
            || memchr::memchr(b'-', text).is_some()
            || memmem::find(text, self.identities.prefix()).is_some()
            || memmem::find(text, PARKED_INFIX).is_some()
    }
}

/// Whether `host` is at `at` of a message, and not part of another name. A dot may end a sentence.
fn is_alone(message: &[u8], at: usize, host: &[u8]) -> bool {
    let before = message[..at].last();
    let Some(rest) = message[at..].strip_prefix(host) else { return false };
    let ends = match rest {
        [b'.', next, ..] | [next, ..] => !is_word_byte(*next),
        [] => true,
    };
    ends && before.is_none_or(|byte| !is_word_byte(*byte) && *byte != b'.')
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'
}

/// Whether a `\uXXXX` of a string is a byte of words.
fn has_hidden_word_byte(raw: &[u8]) -> bool {
    memmem::find_iter(raw, b"\\u00").any(|at| {
        let digits = raw.get(at + 4..at + 6).and_then(|digits| std::str::from_utf8(digits).ok());
        // `\\u0041` is an escaped backslash and plain text. Treating it as an escape only costs a copy.
        digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()).is_some_and(is_word_byte)
    })
}

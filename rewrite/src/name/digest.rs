//! Shortens the host name of a namespace that is too long for a label.

use sha2::{Digest as _, Sha256};

use super::label::MAX_LABEL;

/// The digits of the digest that ends a shortened name.
#[derive(Clone, Copy)]
pub(super) struct Digits {
    /// One digit for each value of a group of bits of the digest.
    alphabet: &'static [u8],
    bits: usize,
    count: usize,
}

/// 100 bits: nobody can construct a collision. The alphabet is base32 of RFC 4648, so that a name keeps as many of its
/// own characters as possible.
pub(super) const DIGITS: Digits = Digits { alphabet: b"abcdefghijklmnopqrstuvwxyz234567", bits: 5, count: 20 };

/// 40 bits, which a client can search exhaustively, so no new namespace gets such a name. The two forms differ: in the
/// new one, the last 20 characters contain no hyphen.
pub(super) const FORMER_DIGITS: Digits = Digits { alphabet: b"0123456789abcdef", bits: 4, count: 10 };

// === impl Digits ===

impl Digits {
    /// `<name>-<cluster>`, shortened with a digest of these digits if it is too long for a label. `role` distinguishes
    /// names of the same text.
    pub(super) fn join(self, name: &str, cluster: &str, role: &str) -> String {
        let whole = format!("{name}-{cluster}");
        if !is_long(name, cluster) {
            return whole;
        }
        let mut digest = Sha256::new();
        digest.update(name);
        digest.update([0]);
        digest.update(cluster);
        digest.update(role);
        let digest = digest.finalize();

        let mut short = String::with_capacity(MAX_LABEL);
        short.push_str(whole[..MAX_LABEL - 1 - self.count].trim_end_matches('-'));
        short.push('-');
        short.extend(self.of(&digest));
        short
    }

    /// Whether a name ends as a shortened one does.
    pub(super) fn may_end(self, name: &[u8]) -> bool {
        let Some(hyphen) = name.len().checked_sub(self.count + 1) else { return false };
        name[hyphen] == b'-' && name[hyphen + 1..].iter().all(|digit| self.alphabet.contains(digit))
    }

    /// The first bits of a digest.
    fn of(self, digest: &[u8]) -> impl Iterator<Item = char> {
        let is_set = |bit: usize| digest[bit / 8] >> (7 - bit % 8) & 1 == 1;
        let value =
            move |first: usize| (first..first + self.bits).fold(0, |value, bit| value << 1 | usize::from(is_set(bit)));
        (0..self.count).map(move |digit| char::from(self.alphabet[value(digit * self.bits)]))
    }
}

/// Whether the two together are too long for a label.
pub(super) fn is_long(name: &str, cluster: &str) -> bool {
    name.len() + 1 + cluster.len() > MAX_LABEL
}

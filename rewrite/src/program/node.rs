//! One level of a program.

use super::place::Place;
use crate::json::Text;

/// One level of a [`Program`](super::Program).
#[derive(Clone, Default)]
pub(crate) struct Node {
    pub(super) place: Option<Place>,
    pub(super) members: Vec<(Box<str>, Self)>,
    /// Bit `n` is set if a member has a key of `n` bytes. The last bit stands for all longer keys.
    pub(super) lengths: u64,
    /// The content of the elements, if this is an array.
    pub(super) element: Option<Box<Self>>,
    /// The content of values under other keys, if this is a map.
    pub(super) any: Option<Box<Self>>,
}

// === impl Node ===

impl Node {
    /// The maximum number of members of one node, so that a set of them fits into a word.
    pub(super) const MAX_MEMBERS: usize = 64;

    /// The place of this node.
    pub(crate) fn place(&self) -> Option<Place> {
        self.place
    }

    /// Whether this place is at this node or below, outside of arrays and maps.
    pub(super) fn has(&self, place: Place) -> bool {
        self.place == Some(place) || self.members.iter().any(|(_, member)| member.has(place))
    }

    /// The path from this node to a place outside of arrays and maps.
    pub(super) fn path_to(&self, place: Place) -> Option<String> {
        self.members.iter().find_map(|(key, member)| match member.path_to(place) {
            Some(rest) => Some(format!("{key}.{rest}")),
            None => (member.place == Some(place)).then(|| key.to_string()),
        })
    }

    /// The members and their keys.
    pub(crate) fn members(&self) -> impl Iterator<Item = (&str, &Self)> {
        self.members.iter().map(|(key, member)| (&**key, member))
    }

    /// The content of the elements, if this is an array.
    pub(crate) fn element(&self) -> Option<&Self> {
        self.element.as_deref()
    }

    /// The member with this key, and its number.
    #[inline]
    pub(super) fn member(&self, key: &Text<'_>) -> Option<(usize, &Self)> {
        if !key.has_escapes() && self.lengths & length_bit(key.raw.len()) == 0 {
            return None;
        }
        let number = self.members.iter().position(|(name, _)| key.is(name))?;
        Some((number, &self.members[number].1))
    }

    /// The key of the member that Go matches with this key.
    pub(crate) fn folded(&self, key: &Text<'_>) -> Option<&str> {
        self.members.iter().map(|(name, _)| &**name).find(|name| key.folds_to(name))
    }
}

pub(super) fn length_bit(length: usize) -> u64 {
    1 << length.min(63)
}

//! The last bytes of a body, as the dictionary of its next block.

use std::sync::Arc;

/// The bytes that a history keeps. An object of Kubernetes seldom has more than 8 KiB, so the next event or item finds a similar one
/// here.
pub(super) const MAX: usize = 8 * 1024;

/// Each dictionary begins with this byte, so it cannot begin with the magic number of a formatted dictionary (RFC 8878, section
/// 5). zstd then treats all of it as raw content.
const FIRST: u8 = 0;

/// The last bytes of a body. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct History(Option<Arc<[u8]>>);

// === impl History ===

impl History {
    /// The history after these bytes.
    pub(super) fn of(bytes: &[u8]) -> Self {
        Self::default().followed_by(bytes)
    }

    /// The dictionary for the next block.
    pub(super) fn dictionary(&self) -> &[u8] {
        self.0.as_deref().unwrap_or(&[FIRST])
    }

    /// The history after a block of these bytes.
    pub(super) fn followed_by(&self, bytes: &[u8]) -> Self {
        let bytes = &bytes[bytes.len().saturating_sub(MAX)..];
        let before = &self.dictionary()[1..];
        let before = &before[(before.len() + bytes.len()).saturating_sub(MAX)..];
        Self(Some([&[FIRST], before, bytes].concat().into()))
    }

    /// Whether both are empty, or clones of one.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, None) => true,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_history_is_the_end_of_the_body(blocks in prop::collection::vec(0..40_000_usize, 0..6)) {
            let (mut history, mut body) = (History::default(), Vec::new());
            for (number, length) in (1..).zip(blocks) {
                let block = vec![number; length];
                history = history.followed_by(&block);
                body.extend(block);
                let end = &body[body.len().saturating_sub(MAX)..];
                prop_assert_eq!(history.dictionary(), [&[FIRST], end].concat());
            }
        }
    }
}

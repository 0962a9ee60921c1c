//! The last bytes of a body, as the dictionary of its next block.

/// The bytes that a history keeps. An object of Kubernetes seldom has more than 8 KiB, so the next event or item finds a similar one
/// here. Each body that is compressed has a history at both ends of the tunnel.
const MAX: usize = 8 * 1024;

/// Each dictionary begins with this byte, so it cannot begin with the magic number of a formatted dictionary (RFC 8878, section
/// 5). zstd then treats all of it as raw content.
const FIRST: u8 = 0;

/// The last bytes of a body.
#[derive(Debug)]
pub(super) struct History(Vec<u8>);

// === impl History ===

impl Default for History {
    fn default() -> Self {
        Self(vec![FIRST])
    }
}

impl History {
    /// The dictionary for the next block.
    pub(super) fn dictionary(&self) -> &[u8] {
        &self.0
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        // An empty history needs no new allocation.
        if self.0.len() > 1 {
            *self = Self::default();
        }
    }

    /// The bytes of a block.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let bytes = &bytes[bytes.len().saturating_sub(MAX)..];
        let excess = (self.0.len() - 1 + bytes.len()).saturating_sub(MAX);
        self.0.drain(1..=excess);
        self.0.extend_from_slice(bytes);
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
                history.push(&block);
                body.extend(block);
                let end = &body[body.len().saturating_sub(MAX)..];
                prop_assert_eq!(history.dictionary(), [&[FIRST], end].concat());
            }
        }
    }
}

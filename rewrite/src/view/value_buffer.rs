//! A value that arrives in several chunks.

use bytes::Bytes;

use crate::json::Boundary;

/// Collects one value. It scans each byte once to find the end, for chunks of any size.
#[derive(Debug)]
pub(super) struct ValueBuffer {
    bytes: Vec<u8>,
    /// How far it has searched for the end. `None` while a guess may make that unnecessary.
    boundary: Option<Boundary>,
}

/// The minimum length of a guess: most objects are shorter.
const GUESS: usize = 4 << 10;

// === impl ValueBuffer ===

impl ValueBuffer {
    /// Begins with the end of a chunk, which is the start of a value.
    pub(super) fn begin(bytes: &[u8]) -> Self {
        Self { bytes: bytes.to_vec(), boundary: None }
    }

    /// The collected bytes, and as much of the next chunk as probably contains the rest. Try it once, before
    /// [`fill`](Self::fill): a value that is short compared to the chunks can then be read without a search for its end.
    pub(super) fn guess(&self, chunk: &[u8]) -> Option<Bytes> {
        if self.boundary.is_some() {
            return None;
        }
        let more = chunk.len().min(self.bytes.len().max(GUESS));
        Some(Bytes::from([&self.bytes[..], &chunk[..more]].concat()))
    }

    /// Adds what the value needs of a chunk. `Some(n)`: it is whole now, and the chunk is consumed up to `n`.
    pub(super) fn fill(&mut self, chunk: &[u8]) -> Option<usize> {
        let boundary = self.boundary.get_or_insert_with(|| {
            let mut boundary = Boundary::default();
            // If the value seems complete here, a reader has already found that it is malformed, and no more bytes are
            // needed.
            let _ = boundary.find(&self.bytes);
            boundary
        });
        let end = boundary.find(chunk);
        self.bytes.extend_from_slice(&chunk[..end.unwrap_or(chunk.len())]);
        end
    }

    /// The number of collected bytes.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn into_bytes(self) -> Bytes {
        Bytes::from(self.bytes)
    }
}

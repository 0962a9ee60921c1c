//! A value that arrives in several chunks.

use bytes::Bytes;

use crate::json::Boundary;

/// Collects one value. Each byte is looked at once to find the end, however small the chunks are.
#[derive(Debug)]
pub(super) struct Carry {
    bytes: Vec<u8>,
    /// How far the end has been looked for; `None` as long as there is hope that a guess makes that unnecessary.
    boundary: Option<Boundary>,
}

/// A guess is at least this long: most objects are shorter.
const GUESS: usize = 4 << 10;

// === impl Carry ===

impl Carry {
    /// Begins with what a chunk ends with: the start of a value, and no more.
    pub(super) fn begin(bytes: &[u8]) -> Self {
        Self { bytes: bytes.to_vec(), boundary: None }
    }

    /// What was collected and as much of the next chunk as is likely to hold the rest, and more. To be tried before
    /// [`fill`](Self::fill), and once only: a value that is short beside the chunks is then read without having been
    /// searched for its end.
    pub(super) fn guess(&self, chunk: &[u8]) -> Option<Bytes> {
        if self.boundary.is_some() {
            return None;
        }
        let more = chunk.len().min(self.bytes.len().max(GUESS));
        Some(Bytes::from([&self.bytes[..], &chunk[..more]].concat()))
    }

    /// Takes what the value needs of a chunk. `Some(n)`: it is whole now, and the chunk is used up to `n`.
    pub(super) fn fill(&mut self, chunk: &[u8]) -> Option<usize> {
        let boundary = self.boundary.get_or_insert_with(|| {
            let mut boundary = Boundary::default();
            // If this says that the value is whole, a reader has found it malformed, and nothing more is taken.
            let _ = boundary.find(&self.bytes);
            boundary
        });
        let end = boundary.find(chunk);
        self.bytes.extend_from_slice(&chunk[..end.unwrap_or(chunk.len())]);
        end
    }

    /// Bytes collected.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn into_bytes(self) -> Bytes {
        Bytes::from(self.bytes)
    }
}

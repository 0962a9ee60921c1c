//! The output of the engine.

use std::ops::Range;

use bytes::{Bytes, BytesMut};

/// Receives the output of the engine, piece by piece and in order.
pub trait Sink {
    /// Receives the next piece. Pieces are never empty.
    fn emit(&mut self, piece: Bytes);

    /// Receives a range of `text` as the next piece. A sink that copies does not need to share `text`, which takes two
    /// atomic operations.
    fn emit_range(&mut self, text: &Bytes, range: Range<usize>) {
        self.emit(text.slice(range));
    }
}

/// Collects pieces, and joins short ones by copying.
///
/// Each piece becomes an HTTP/2 frame (nine bytes, and about the cost of a system call), but copying a few kilobytes has no
/// measurable cost. So only long pieces are forwarded without a copy.
#[derive(Debug)]
pub struct Coalesce {
    room: usize,
    out: Vec<Bytes>,
    open: BytesMut,
}

/// Pieces at least this long are not copied. Half of HTTP/2's default frame (RFC 9113, section 4.2).
const WORTH_A_PIECE: usize = 8 << 10;
/// The length of the buffer that copies share: one allocation for this many bytes of output.
const ROOM: usize = 64 << 10;

// === impl Sink ===

impl Sink for Vec<Bytes> {
    fn emit(&mut self, piece: Bytes) {
        self.push(piece);
    }
}

impl<S: Sink + ?Sized> Sink for &mut S {
    fn emit(&mut self, piece: Bytes) {
        (**self).emit(piece);
    }

    fn emit_range(&mut self, text: &Bytes, range: Range<usize>) {
        (**self).emit_range(text, range);
    }
}

// === impl Coalesce ===

impl Coalesce {
    /// An empty collector for much output, such as that of a list.
    pub fn new() -> Self {
        Self::with_room(ROOM)
    }

    /// An empty collector with buffers of this length. It keeps the rest of its last buffer, so one that exists for a
    /// long time, such as that of a watch, needs short ones.
    pub fn with_room(room: usize) -> Self {
        Self { room, out: Vec::new(), open: BytesMut::new() }
    }

    /// All collected pieces.
    pub fn drain(&mut self) -> impl Iterator<Item = Bytes> + '_ {
        self.close();
        self.out.drain(..)
    }

    /// Copies a short piece.
    fn join(&mut self, piece: &[u8]) {
        if self.open.len() + piece.len() > self.room {
            self.close();
        }
        if self.open.capacity() - self.open.len() < piece.len() {
            self.open.reserve(self.room.max(piece.len()));
        }
        self.open.extend_from_slice(piece);
    }

    fn forward(&mut self, piece: Bytes) {
        self.close();
        self.out.push(piece);
    }

    fn close(&mut self) {
        if !self.open.is_empty() {
            self.out.push(self.open.split().freeze());
        }
    }
}

impl Default for Coalesce {
    fn default() -> Self {
        Self::new()
    }
}

impl Sink for Coalesce {
    fn emit(&mut self, piece: Bytes) {
        if piece.len() >= WORTH_A_PIECE {
            self.forward(piece);
        } else {
            self.join(&piece);
        }
    }

    fn emit_range(&mut self, text: &Bytes, range: Range<usize>) {
        if range.len() >= WORTH_A_PIECE {
            self.forward(text.slice(range));
        } else {
            self.join(&text[range]);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn joining_pieces_does_not_change_the_bytes(
            lengths in proptest::collection::vec(prop_oneof![4 => 1..500_usize, 1 => 1..40_000_usize], 0..200),
        ) {
            let pieces: Vec<_> =
                lengths.iter().zip((0..=u8::MAX).cycle()).map(|(length, byte)| Bytes::from(vec![byte; *length])).collect();
            let long = pieces.iter().filter(|piece| piece.len() >= WORTH_A_PIECE).count();
            let short: usize = pieces.iter().map(Bytes::len).filter(|length| *length < WORTH_A_PIECE).sum();
            for room in [1, 4096, ROOM] {
                let mut coalesced = Coalesce::with_room(room);
                for (number, piece) in pieces.iter().enumerate() {
                    match number % 2 {
                        0 => coalesced.emit(piece.clone()),
                        _ => coalesced.emit_range(piece, 0..piece.len()),
                    }
                }
                let joined: Vec<_> = coalesced.drain().collect();
                prop_assert_eq!(joined.concat(), pieces.concat());
                prop_assert!(room < ROOM || joined.len() <= 2 * long + 1 + short / (ROOM - WORTH_A_PIECE));
                prop_assert!(coalesced.open.capacity() <= room.max(WORTH_A_PIECE));
                prop_assert!(coalesced.drain().next().is_none());
            }
        }
    }
}

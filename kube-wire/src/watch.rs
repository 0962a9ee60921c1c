//! Splits a watch into events.
//!
//! The body of a watch is a stream of frames: in JSON, objects one after the other (`application/json;stream=watch`);
//! in protobuf, messages with a length before each. [`JsonFrames`] and [`ProtobufFrames`] take chunks and return whole
//! frames. The boundaries of chunks have no effect, and the memory is bounded by the limit of a frame plus one chunk. Neither
//! parses a frame.
//!
//! Call `push` with a chunk, then `next_frame` until it returns `None`, then `push` again. When the stream has ended, call
//! `finish`, which distinguishes a clean end from a truncated stream.

mod event;
mod json;
mod protobuf;
#[cfg(test)]
mod tests;

pub use event::{EventType, error_event};
pub use json::JsonFrames;
pub use protobuf::ProtobufFrames;

/// Why a stream cannot be split any further. The splitter must not be used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// A frame beyond the limit, or a chunk pushed on top of frames that were not taken.
    #[error("a watch frame is larger than {limit} bytes")]
    TooLarge {
        /// The limit, in bytes.
        limit: usize,
    },
    /// Something that is no JSON object stands where a frame should begin.
    #[error("a watch frame begins with byte {byte:#04x}, not with an object")]
    NotAnObject {
        /// What stands there.
        byte: u8,
    },
    /// The stream ended within a frame.
    #[error("the watch was cut off within a frame")]
    Truncated,
}

/// Bytes that came and were not given out yet. The front moves over given frames; they are dropped at the next push.
#[derive(Debug, Default)]
struct Buffer {
    bytes: Vec<u8>,
    front: usize,
}

// === impl Buffer ===

impl Buffer {
    fn push(&mut self, chunk: &[u8], limit: usize) -> Result<(), FrameError> {
        if self.pending().len() > limit {
            return Err(FrameError::TooLarge { limit });
        }
        self.bytes.drain(..self.front);
        self.front = 0;
        self.bytes.extend_from_slice(chunk);
        Ok(())
    }

    fn pending(&self) -> &[u8] {
        &self.bytes[self.front..]
    }

    fn skip(&mut self, length: usize) {
        self.front += length;
    }

    fn take(&mut self, length: usize) -> &[u8] {
        let start = self.front;
        self.front += length;
        &self.bytes[start..self.front]
    }
}

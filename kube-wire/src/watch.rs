//! Splits a watch into events.
//!
//! The body of a watch is a stream of frames. In JSON, frames are objects, one after the other
//! (`application/json;stream=watch`). In protobuf, they are messages, each after its length. [`JsonFrames`] and
//! [`ProtobufFrames`] take chunks and return whole frames, without parsing them. The boundaries of chunks have no
//! effect, and the memory is bounded by the maximum size of a frame plus one chunk.
//!
//! Call `push` with a chunk, then `next_frame` until it returns `None`, then `push` again. When the stream has ended,
//! call `finish`, which distinguishes a clean end from a truncated stream.

mod event;
mod json;
mod protobuf;
#[cfg(test)]
mod tests;

pub use event::{EventType, error_event};
pub use json::JsonFrames;
pub use protobuf::ProtobufFrames;

/// The stream cannot be split any further. Do not use the splitter again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// A frame exceeds the limit, or a chunk was pushed before the pending frames were taken.
    #[error("a watch frame is larger than {limit} bytes")]
    TooLarge {
        /// The limit, in bytes.
        limit: usize,
    },
    /// A frame does not begin with a JSON object.
    #[error("a watch frame begins with byte {byte:#04x}, not with an object")]
    NotAnObject {
        /// Its first byte.
        byte: u8,
    },
    /// The stream ended within a frame.
    #[error("the watch was cut off within a frame")]
    Truncated,
}

/// The capacity that a buffer keeps between frames, in bytes. Most frames are shorter.
const KEPT: usize = 4096;

/// Received bytes that were not returned yet. `front` is the end of the returned frames, which the next push removes.
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

    fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Removes returned frames when no whole frame is left. Otherwise, the memory of a long frame would be kept until
    /// the watch ends.
    fn release(&mut self) {
        if self.front > 0 {
            self.bytes.drain(..self.front);
            self.front = 0;
            self.bytes.shrink_to(KEPT);
        }
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

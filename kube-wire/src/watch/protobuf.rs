//! Frames of a protobuf watch.

use super::{Buffer, FrameError};

/// Splits a stream of messages, each after its length in four bytes, big-endian (apimachinery's `pkg/util/framer`). A
/// frame is a `metav1.WatchEvent` without an envelope. The object inside it has the usual envelope.
#[derive(Debug)]
pub struct ProtobufFrames {
    buffer: Buffer,
    limit: usize,
}

const PREFIX: usize = 4;

// === impl ProtobufFrames ===

impl ProtobufFrames {
    /// Frames of at most `limit` bytes, without the length.
    pub fn new(limit: usize) -> Self {
        Self { buffer: Buffer::default(), limit }
    }

    /// Adds a chunk. All frames of the previous chunk must have been consumed.
    pub fn push(&mut self, chunk: &[u8]) -> Result<(), FrameError> {
        self.buffer.push(chunk, self.limit.saturating_add(PREFIX))
    }

    /// The next whole frame without its length. `None` if it is incomplete. A length beyond the limit is an error at
    /// once, before the bytes of the frame arrive.
    pub fn next_frame(&mut self) -> Result<Option<&[u8]>, FrameError> {
        let Some((prefix, rest)) = self.buffer.pending().split_first_chunk::<PREFIX>() else {
            self.buffer.release();
            return Ok(None);
        };
        let limit = self.limit;
        let length = usize::try_from(u32::from_be_bytes(*prefix)).map_err(|_| FrameError::TooLarge { limit })?;
        if length > limit {
            return Err(FrameError::TooLarge { limit });
        }
        if rest.len() < length {
            self.buffer.release();
            return Ok(None);
        }
        self.buffer.skip(PREFIX);
        Ok(Some(self.buffer.take(length)))
    }

    /// The memory for incomplete frames, in bytes.
    pub fn held(&self) -> usize {
        self.buffer.capacity()
    }

    /// Checks that the stream ended between frames.
    pub fn finish(&self) -> Result<(), FrameError> {
        if self.buffer.pending().is_empty() { Ok(()) } else { Err(FrameError::Truncated) }
    }

    /// One frame, ready to send.
    pub fn encode(message: &[u8]) -> Result<Vec<u8>, FrameError> {
        let limit = u32::MAX as usize;
        let length = u32::try_from(message.len()).map_err(|_| FrameError::TooLarge { limit })?;
        Ok([&length.to_be_bytes(), message].concat())
    }
}

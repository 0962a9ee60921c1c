//! Encodes a body.

use std::cell::RefCell;

use bytes::{Bytes, BytesMut};
use zstd_safe::CCtx;

use super::header::{Coding, HEADER, Header, MAX, MAX_RAW};
use super::history::History;

/// The level of zstd. Higher levels take several times as long to save a few per cent.
const LEVEL: zstd_safe::CompressionLevel = 3;

/// Shorter chunks are copied behind their header, because a DATA frame costs more than the copy.
const SHORT: usize = 4 * 1024;

thread_local! {
    /// Compression needs about 1 MB of memory, so the bodies of a thread share it. It keeps nothing between two blocks.
    static CONTEXT: RefCell<CCtx<'static>> = RefCell::new(CCtx::create());
}

/// The sending end of a body.
#[derive(Debug, Default)]
pub struct Encoder {
    history: History,
    /// What is left of the last chunk.
    chunk: Bytes,
    /// How many bytes of the chunk are the content of a block whose header has left.
    begun: usize,
}

// === impl Encoder ===

impl Encoder {
    /// The next chunk of the body. The last one must have left.
    pub fn push(&mut self, chunk: Bytes) {
        self.chunk = chunk;
    }

    /// Whether all chunks have left.
    pub fn is_empty(&self) -> bool {
        self.chunk.is_empty()
    }

    /// The next bytes to send, compressed or as they are. `None` if the last chunk has left.
    pub fn encode(&mut self, compress: bool) -> Option<Bytes> {
        if self.begun > 0 {
            return Some(self.chunk.split_to(std::mem::take(&mut self.begun)));
        }
        if self.chunk.is_empty() {
            return None;
        }
        Some(if compress { self.compressed() } else { self.raw() })
    }

    fn compressed(&mut self) -> Bytes {
        let bytes = self.chunk.split_to(self.chunk.len().min(MAX));
        let content = compress(&bytes, self.history.dictionary());
        self.history.push(&bytes);
        match content {
            Some(content) => block(Coding::Zstd, &content),
            None => block(Coding::Stored, &bytes),
        }
    }

    fn raw(&mut self) -> Bytes {
        self.history.clear();
        let length = self.chunk.len().min(MAX_RAW);
        if length <= SHORT {
            return block(Coding::Raw, &self.chunk.split_to(length));
        }
        self.begun = length;
        Bytes::copy_from_slice(&Header { coding: Coding::Raw, length }.write())
    }
}

fn block(coding: Coding, content: &[u8]) -> Bytes {
    let mut block = BytesMut::with_capacity(HEADER + content.len());
    block.extend_from_slice(&Header { coding, length: content.len() }.write());
    block.extend_from_slice(content);
    block.freeze()
}

/// Compresses bytes. `None` if that does not make them shorter.
fn compress(bytes: &[u8], dictionary: &[u8]) -> Option<Vec<u8>> {
    let mut content = Vec::with_capacity(bytes.len());
    // An error means that the result is longer than the capacity.
    CONTEXT
        .with_borrow_mut(|context| context.compress_using_dict(&mut content, bytes, dictionary, LEVEL))
        .ok()
        .filter(|length| *length < bytes.len())
        .map(|_| content)
}

//! Encodes a body.

use std::cell::RefCell;

use bytes::{Bytes, BytesMut};
use zstd_safe::CCtx;

use super::header::{HEADER, Header, MAX};
use super::histories::{Histories, Permit};
use super::history::History;
use super::recent::Recent;

/// The level of zstd. Higher levels take several times as long to save a few per cent.
const LEVEL: zstd_safe::CompressionLevel = 3;

thread_local! {
    /// Compression needs about 1 MB of memory, so the bodies of a thread share it. It keeps nothing between two blocks.
    static CONTEXT: RefCell<CCtx<'static>> = RefCell::new(CCtx::create());
    static RECENT: RefCell<Recent> = RefCell::default();
}

/// The sending end of a body.
#[derive(Debug)]
pub struct Encoder {
    histories: Histories,
    /// Held while there is a history.
    permit: Option<Permit>,
    history: History,
    /// The bytes of the current chunk that are not encoded yet.
    chunk: Bytes,
}

// === impl Encoder ===

impl Encoder {
    /// The encoder of a body of a tunnel.
    pub fn new(histories: &Histories) -> Self {
        Self { histories: histories.clone(), permit: None, history: histories.initial(), chunk: Bytes::new() }
    }

    /// Adds the next chunk of the body. The current chunk must be encoded completely.
    pub fn push(&mut self, chunk: Bytes) {
        self.chunk = chunk;
    }

    /// The number of bytes of the current chunk that are not encoded yet.
    pub fn remaining(&self) -> usize {
        self.chunk.len()
    }

    /// The next block to send. `None` if the current chunk is encoded completely.
    pub fn encode(&mut self) -> Option<Bytes> {
        if self.chunk.is_empty() {
            return None;
        }
        let bytes = self.chunk.split_to(self.chunk.len().min(MAX));
        if !self.histories.permit(&mut self.permit) {
            return Some(block(&bytes, &self.histories.initial(), false));
        }
        let make = || block(&bytes, &self.history, true);
        let (block, history) = RECENT.with_borrow_mut(|recent| recent.block(&self.history, &bytes, make));
        self.history = history;
        Some(block)
    }
}

fn block(bytes: &[u8], history: &History, is_kept: bool) -> Bytes {
    let content = compress(bytes, history.dictionary());
    let (is_compressed, content) = match &content {
        Some(content) => (true, &content[..]),
        None => (false, bytes),
    };
    let mut block = BytesMut::with_capacity(HEADER + content.len());
    block.extend_from_slice(&Header { is_compressed, is_kept, length: content.len() }.write());
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

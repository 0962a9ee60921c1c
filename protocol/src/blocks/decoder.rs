//! Decodes a body.

use std::cell::RefCell;

use bytes::{Buf, Bytes, BytesMut};
use zstd_safe::DCtx;

use super::header::{HEADER, Header, InvalidHeader, MAX};
use super::histories::{Histories, Permit};
use super::history::History;

thread_local! {
    /// Decompression needs more than 100 KB of memory, so the bodies of a thread share it. It keeps nothing between two blocks.
    static CONTEXT: RefCell<DCtx<'static>> = RefCell::new(DCtx::create());
}

/// The receiving end of a body.
#[derive(Debug)]
pub struct Decoder {
    histories: Histories,
    /// Held while there is a history.
    permit: Option<Permit>,
    history: History,
    /// What has arrived and was not decoded yet.
    arrived: Bytes,
    /// The beginning of an incomplete block.
    incomplete: BytesMut,
}

/// A body is not a sequence of blocks.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// The header of a block is invalid.
    #[error(transparent)]
    Header(#[from] InvalidHeader),
    /// The content of a block is invalid, or decodes to more bytes than a block may have.
    #[error("cannot decompress a block: {0}")]
    Content(&'static str),
    /// More bodies than the protocol allows keep a history.
    #[error("too many bodies have a history")]
    TooManyHistories,
    /// The body ends within a block.
    #[error("the body ends within a block")]
    Incomplete,
    /// The body is not as long as its head says.
    #[error("the length of the body differs from the length in the head of the response")]
    Length,
}

// === impl Decoder ===

impl Decoder {
    /// The decoder of a body of a tunnel.
    pub fn new(histories: &Histories) -> Self {
        Self {
            histories: histories.clone(),
            permit: None,
            history: histories.initial(),
            arrived: Bytes::new(),
            incomplete: BytesMut::new(),
        }
    }

    /// The next bytes of the body. [`decode`](Self::decode) must have returned `None`.
    pub fn push(&mut self, bytes: Bytes) {
        self.arrived = bytes;
    }

    /// Whether the body may end here.
    pub fn is_between_blocks(&self) -> bool {
        self.arrived.is_empty() && self.incomplete.is_empty()
    }

    /// The next decoded bytes, which are never empty. `None` if the decoder needs more bytes. Do not use it again after an error.
    pub fn decode(&mut self) -> Result<Option<Bytes>, DecodeError> {
        let Some((header, content)) = self.block()? else { return Ok(None) };
        let bytes = if header.is_compressed { decompress(&content, self.history.dictionary())? } else { content };
        if !header.is_kept {
            (self.history, self.permit) = (self.histories.initial(), None);
        } else if self.histories.permit(&mut self.permit) {
            self.history = self.history.followed_by(&bytes);
        } else {
            return Err(DecodeError::TooManyHistories);
        }
        Ok(Some(bytes))
    }

    /// The next block. `None` if it has not arrived completely.
    fn block(&mut self) -> Result<Option<(Header, Bytes)>, DecodeError> {
        // Most blocks arrive in one piece.
        if self.incomplete.is_empty()
            && let Some(header) = self.arrived.first_chunk()
        {
            let header = Header::read(*header)?;
            if self.arrived.len() >= HEADER + header.length {
                self.arrived.advance(HEADER);
                return Ok(Some((header, self.arrived.split_to(header.length))));
            }
        }
        if !self.collect(HEADER) {
            return Ok(None);
        }
        let header = Header::read(*self.incomplete.first_chunk().expect("it was collected"))?;
        if !self.collect(HEADER + header.length) {
            return Ok(None);
        }
        let mut content = std::mem::take(&mut self.incomplete).freeze();
        content.advance(HEADER);
        Ok(Some((header, content)))
    }

    /// Collects what has arrived, up to this length of the current block. Whether that is all of it.
    fn collect(&mut self, length: usize) -> bool {
        let missing = length.saturating_sub(self.incomplete.len()).min(self.arrived.len());
        self.incomplete.extend_from_slice(&self.arrived.split_to(missing));
        self.incomplete.len() >= length
    }
}

fn decompress(content: &[u8], dictionary: &[u8]) -> Result<Bytes, DecodeError> {
    let length = zstd_safe::get_frame_content_size(content).ok().flatten();
    let length = length.and_then(|length| usize::try_from(length).ok()).filter(|length| (1..=MAX).contains(length));
    let mut bytes = Vec::with_capacity(length.ok_or(DecodeError::Content("invalid length"))?);
    let decompressed = CONTEXT
        .with_borrow_mut(|context| context.decompress_using_dict(&mut bytes, content, dictionary))
        .map_err(|code| DecodeError::Content(zstd_safe::get_error_name(code)))?;
    if decompressed == 0 { Err(DecodeError::Content("no bytes")) } else { Ok(bytes.into()) }
}

//! Decodes a body.

use std::cell::RefCell;

use bytes::{Buf, Bytes, BytesMut};
use zstd_safe::DCtx;

use super::header::{Coding, HEADER, Header, InvalidHeader, MAX};
use super::history::History;

thread_local! {
    /// Decompression needs more than 100 KB of memory, so the bodies of a thread share it. It keeps nothing between two blocks.
    static CONTEXT: RefCell<DCtx<'static>> = RefCell::new(DCtx::create());
}

/// The receiving end of a body.
#[derive(Debug, Default)]
pub struct Decoder {
    history: History,
    /// What has arrived and was not decoded yet.
    arrived: Bytes,
    /// The beginning of an incomplete block.
    incomplete: BytesMut,
    /// How many bytes of a raw block have not been decoded yet.
    raw: usize,
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
    /// The body ends within a block.
    #[error("the body ends within a block")]
    Incomplete,
}

// === impl Decoder ===

impl Decoder {
    /// The next bytes of the body. [`decode`](Self::decode) must have returned `None`.
    pub fn push(&mut self, bytes: Bytes) {
        self.arrived = bytes;
    }

    /// Whether the body may end here.
    pub fn is_between_blocks(&self) -> bool {
        self.arrived.is_empty() && self.incomplete.is_empty() && self.raw == 0
    }

    /// The next decoded bytes, which are never empty. `None` if the decoder needs more bytes.
    pub fn decode(&mut self) -> Result<Option<Bytes>, DecodeError> {
        loop {
            if self.raw > 0 {
                let length = self.raw.min(self.arrived.len());
                self.raw -= length;
                return Ok(Some(self.arrived.split_to(length)).filter(|bytes| !bytes.is_empty()));
            }
            let Some(header) = self.header()? else { return Ok(None) };
            if header.coding == Coding::Raw {
                self.history.clear();
                self.incomplete.clear();
                self.raw = header.length;
                continue;
            }
            if !self.collect(HEADER + header.length) {
                return Ok(None);
            }
            let mut content = self.incomplete.split().freeze();
            content.advance(HEADER);
            let bytes = match header.coding {
                Coding::Zstd => decompress(&content, self.history.dictionary())?,
                Coding::Stored | Coding::Raw => content,
            };
            self.history.push(&bytes);
            return Ok(Some(bytes));
        }
    }

    /// The header of the current block. `None` if it has not arrived completely.
    fn header(&mut self) -> Result<Option<Header>, DecodeError> {
        if self.incomplete.len() < HEADER && !self.collect(HEADER) {
            return Ok(None);
        }
        let header = self.incomplete.first_chunk::<HEADER>().expect("it was collected");
        Ok(Some(Header::read(*header)?))
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

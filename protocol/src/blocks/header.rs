//! The format of a block.
//!
//! ```text
//!  1 bit        1 bit   30 bits, big-endian       the given number of bytes
//! +------------+------+-------------------------+----------------------------+
//! | compressed | kept | length of the content   | content                    |
//! +------------+------+-------------------------+----------------------------+
//! ```
//!
//! The content is a Zstandard frame (RFC 8878) with its content size, or the bytes themselves if compression would not make them
//! shorter. The dictionary of a frame is a zero byte and the history, as raw content. If the block is *kept*, its decoded bytes become
//! part of the history. Otherwise, the history is empty afterwards.
//!
//! The receiver buffers a whole block, so its content, and what it decodes to, has 1 to 65,536 bytes.

/// The length of the header.
pub(super) const HEADER: usize = 4;

/// The maximum length of the content, and of what it decodes to.
pub(super) const MAX: usize = 64 * 1024;

const COMPRESSED: u32 = 1 << 31;
const KEPT: u32 = 1 << 30;

/// The header of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// Whether the content is a Zstandard frame.
    pub(super) is_compressed: bool,
    /// Whether the history contains the block afterwards.
    pub(super) is_kept: bool,
    /// The length of the content.
    pub(super) length: usize,
}

/// The length in a header is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid header of a block: {0:#010x}")]
pub struct InvalidHeader(u32);

// === impl Header ===

impl Header {
    pub(super) fn read(bytes: [u8; HEADER]) -> Result<Self, InvalidHeader> {
        let word = u32::from_be_bytes(bytes);
        let length = usize::try_from(word & !(COMPRESSED | KEPT)).ok();
        let length = length.filter(|length| (1..=MAX).contains(length)).ok_or(InvalidHeader(word))?;
        Ok(Self { is_compressed: word & COMPRESSED != 0, is_kept: word & KEPT != 0, length })
    }

    /// The length must be valid.
    pub(super) fn write(self) -> [u8; HEADER] {
        let length = u32::try_from(self.length).expect("a block has at most 64 KiB");
        let flag = |is_set, flag| if is_set { flag } else { 0 };
        (length | flag(self.is_compressed, COMPRESSED) | flag(self.is_kept, KEPT)).to_be_bytes()
    }
}

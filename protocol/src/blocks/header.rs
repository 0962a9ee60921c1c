//! The format of a block.
//!
//! ```text
//!  2 bits   30 bits, big-endian       the given number of bytes
//! +--------+-------------------------+----------------------------+
//! | coding | length of the content   | content                    |
//! +--------+-------------------------+----------------------------+
//! ```
//!
//! | coding | content | the history afterwards |
//! |---|---|---|
//! | 0 | a Zstandard frame (RFC 8878) with its content size | with the decoded bytes |
//! | 1 | the bytes themselves, because compression would not make them shorter | with the bytes |
//! | 2 | the bytes themselves, because the link is fast | empty |
//!
//! The dictionary of a frame is a zero byte and the history, as raw content. The receiver buffers a whole block of coding 0 or 1, so
//! its content, and what it decodes to, has 1 to 65,536 bytes. A block of coding 2 has 1 to 2^30 - 1 bytes.

/// The length of the header.
pub(super) const HEADER: usize = 4;

/// The maximum length of the content that the receiver collects, and of what it decodes to.
pub(super) const MAX: usize = 64 * 1024;

const LENGTH: u32 = (1 << 30) - 1;

/// How the content of a block is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    Zstd,
    Stored,
    Raw,
}

/// The header of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) coding: Coding,
    /// The length of the content.
    pub(super) length: usize,
}

/// The header has an unknown coding or an invalid length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid header of a block: {0:#010x}")]
pub struct InvalidHeader(u32);

// === impl Header ===

impl Header {
    pub(super) fn read(bytes: [u8; HEADER]) -> Result<Self, InvalidHeader> {
        let word = u32::from_be_bytes(bytes);
        let coding = match word >> 30 {
            0 => Coding::Zstd,
            1 => Coding::Stored,
            2 => Coding::Raw,
            _ => return Err(InvalidHeader(word)),
        };
        let length = usize::try_from(word & LENGTH).map_err(|_| InvalidHeader(word))?;
        let is_valid = length > 0 && (length <= MAX || coding == Coding::Raw);
        if is_valid { Ok(Self { coding, length }) } else { Err(InvalidHeader(word)) }
    }

    /// The length must be valid.
    pub(super) fn write(self) -> [u8; HEADER] {
        let coding = match self.coding {
            Coding::Zstd => 0,
            Coding::Stored => 1,
            Coding::Raw => 2,
        };
        let length = u32::try_from(self.length).unwrap_or(u32::MAX) & LENGTH;
        (coding << 30 | length).to_be_bytes()
    }
}

/// The longest content of a [`Coding::Raw`] block.
pub(super) const MAX_RAW: usize = LENGTH as usize;

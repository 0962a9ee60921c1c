//! The encoding `blocks`: how the body of a response is compressed.
//!
//! A body is a sequence of *blocks*. The receiver can decode each block when it has arrived completely, such as an event of a
//! watch. So that similar events and items compress well, the last 8 KiB of the body, its *history*, are the dictionary of the
//! next block. Both ends keep the history. A context of zstd is much larger, but has no state between blocks, so all bodies of a
//! thread share one.
//!
//! The blocks of a body depend on this body alone. Otherwise, somebody who observes the network could learn from the lengths of
//! responses what callers of another virtual cluster read (as in CVE-2013-3587).
//!
//! Reading order: `header` (the format of a block), `history`, `primed` (the initial history of a watch), [`Histories`],
//! [`Encoder`], `recent` (equal blocks of several bodies), [`Decoder`].

mod decoder;
mod encoder;
mod header;
mod histories;
mod history;
mod primed;
mod recent;
#[cfg(test)]
mod tests;

pub use decoder::{DecodeError, Decoder};
pub use encoder::Encoder;
pub use header::InvalidHeader;
pub use histories::Histories;

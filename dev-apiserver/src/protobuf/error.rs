//! The error of a decoder.

use kube_wire::proto::WireError;

/// A body cannot be decoded.
#[derive(Debug, thiserror::Error)]
pub(super) enum DecodeError {
    #[error(transparent)]
    Wire(#[from] WireError),
    #[error("unknown field {number} of {message}")]
    Field { message: &'static str, number: u32 },
    #[error("invalid {0}")]
    Special(&'static str),
}

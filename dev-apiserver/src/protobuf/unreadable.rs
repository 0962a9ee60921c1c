//! The error of the reader.

use kube_wire::proto::WireError;

/// Why a body cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unreadable {
    #[error(transparent)]
    Wire(#[from] WireError),
    #[error("field {number} of {message} is not known")]
    Field { message: &'static str, number: u32 },
    #[error("{0} cannot be read")]
    Special(&'static str),
}

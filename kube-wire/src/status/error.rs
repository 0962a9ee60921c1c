//! Errors of the decoding of a `Status`.

use crate::envelope::EnvelopeError;
use crate::proto::WireError;

/// The bytes are not a `Status`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotAStatus {
    /// Not JSON, or a field of another type.
    #[error("malformed JSON")]
    Json(#[from] serde_json::Error),
    /// Not protobuf, or a field of another type.
    #[error("malformed protobuf")]
    Protobuf(#[from] EnvelopeError),
    /// Another kind of object.
    #[error("not a Status but {kind:?} of {api_version:?}")]
    Kind {
        /// Its `apiVersion`.
        api_version: String,
        /// Its `kind`.
        kind: String,
    },
}

impl From<WireError> for NotAStatus {
    fn from(error: WireError) -> Self {
        Self::Protobuf(error.into())
    }
}

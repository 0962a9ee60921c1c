//! Why a response cannot be shown.

use kube_wire::envelope::EnvelopeError;
use kube_wire::proto::WireError;
use kube_wire::watch::FrameError;

use crate::json::Malformed;

/// A list or watch cannot be shown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StreamError {
    /// The host did not send JSON.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// One item needs more memory than allowed.
    #[error("an item of the list is longer than {limit} bytes")]
    TooLong {
        /// The limit, in bytes.
        limit: usize,
    },
    /// The host did not send protobuf, or not the requested object.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    /// The mapped list needs more memory than allowed, in an encoding that must be held as a whole.
    #[error("the list is longer than {limit} bytes")]
    TooMuch {
        /// The limit, in bytes.
        limit: usize,
    },
    /// A watch ended within a frame.
    #[error("the watch was cut off within a frame")]
    Cut,
}

/// A body in protobuf cannot be decoded, so it cannot be shown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unreadable {
    /// Not an object in protobuf.
    #[error(transparent)]
    Envelope(#[from] EnvelopeError),
    /// It contains invalid JSON.
    #[error(transparent)]
    Json(#[from] Malformed),
    /// The envelope contains compressed data, or not protobuf.
    #[error("the envelope of the object has a content type or encoding other than plain protobuf")]
    Wrapped,
    /// Another kind of object than requested.
    #[error("the response is {kind:?} of {api_version:?}, which was not requested")]
    Kind {
        /// Its `apiVersion`.
        api_version: String,
        /// Its `kind`.
        kind: String,
    },
    /// The engine does not know a protobuf encoding of the kind.
    #[error("the protobuf schema of this kind is not known")]
    NoSchema,
}

// === impl StreamError ===

impl StreamError {
    /// The same for a whole list, which is never too long.
    pub(super) fn unreadable(self) -> Unreadable {
        match self {
            Self::Unreadable(unreadable) => unreadable,
            Self::Malformed(malformed) => malformed.into(),
            Self::TooLong { .. } | Self::TooMuch { .. } | Self::Cut => WireError::Truncated.into(),
        }
    }
}

impl From<FrameError> for StreamError {
    fn from(error: FrameError) -> Self {
        match error {
            FrameError::TooLarge { limit } => Self::TooLong { limit },
            _ => Self::Cut,
        }
    }
}

// === impl Unreadable ===

impl From<WireError> for Unreadable {
    fn from(error: WireError) -> Self {
        Self::Envelope(error.into())
    }
}

//! Why a call did not do what it should.

use kube_wire::Status;
use kube_wire::status::Reason;

use crate::{HostBodyError, HostError};

/// No object, no list.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ApiError {
    /// No answer.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The API server said no.
    #[error("the API server refused ({code}): {0}", code = .0.code)]
    Status(Box<Status>),
    /// The answer broke off.
    #[error(transparent)]
    Body(#[from] HostBodyError),
    /// An answer, or an event of a watch, beyond the limit.
    #[error("the answer is larger than {limit} bytes")]
    TooLarge {
        /// In bytes.
        limit: usize,
    },
    /// Not JSON, or not of the shape that was asked for.
    #[error("the answer cannot be understood")]
    Json(#[source] serde_json::Error),
    /// A watch that is not one object after the other.
    #[error("the watch cannot be understood")]
    Frames(#[from] kube_wire::watch::FrameError),
    /// It took too long; whether it was done is unknown.
    #[error("no answer in time")]
    TimedOut,
    /// A bug of ours.
    #[error("{0:?} is no path")]
    Path(String),
}

// === impl ApiError ===

impl ApiError {
    /// The refusal, if it is one.
    pub fn status(&self) -> Option<&Status> {
        match self {
            Self::Status(status) => Some(status),
            _ => None,
        }
    }

    /// 404: there is no such object.
    pub fn is_not_found(&self) -> bool {
        self.is(404)
    }

    /// 409, whether the name is taken or somebody else was faster: look at [`Status::reason`].
    pub fn is_conflict(&self) -> bool {
        self.is(409)
    }

    /// 410: the resource version or the continue token is too old. Lists must begin anew.
    pub fn is_expired(&self) -> bool {
        self.is(410) || self.status().is_some_and(|status| status.reason == Reason::Expired)
    }

    fn is(&self, code: u16) -> bool {
        self.status().is_some_and(|status| status.code == code)
    }
}

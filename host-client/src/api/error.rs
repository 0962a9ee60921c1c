//! Errors of calls.

use std::fmt;

use kube_wire::Status;
use kube_wire::status::Reason;

use crate::{HostBodyError, HostError};

/// A call failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ApiError {
    /// The API server did not respond.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The API server refused the request.
    #[error("the API server refused ({code}): {0}", code = .0.code)]
    Status(Box<Status>),
    /// The response ended early.
    #[error(transparent)]
    Body(#[from] HostBodyError),
    /// A response, or an event of a watch, is too long.
    #[error("the response is larger than {limit} bytes")]
    TooLarge {
        /// The limit, in bytes.
        limit: usize,
    },
    /// The response is not JSON, or does not have the expected form.
    #[error("the response cannot be parsed")]
    Json(#[source] serde_json::Error),
    /// The body of a watch is not a sequence of objects.
    #[error("the watch cannot be parsed")]
    Frames(#[from] kube_wire::watch::FrameError),
    /// The call took too long. It may have had an effect.
    #[error("no response in time")]
    TimedOut,
    /// The path is invalid, which is a bug of ours.
    #[error("{0:?} is not a path")]
    Path(String),
}

// === impl ApiError ===

impl ApiError {
    /// A response, or a part of it, does not have the expected form.
    pub fn unreadable(why: impl fmt::Display) -> Self {
        Self::Json(serde::de::Error::custom(why))
    }

    /// Why the API server has ended a watch: `object` is that of an ERROR event, a Status in JSON.
    pub fn of_event(object: &[u8]) -> Self {
        match Status::from_json(object) {
            Ok(status) => Self::Status(Box::new(status)),
            Err(_) => Self::unreadable("an ERROR event without a Status"),
        }
    }

    /// The Status, if this is a refusal.
    pub fn status(&self) -> Option<&Status> {
        match self {
            Self::Status(status) => Some(status),
            _ => None,
        }
    }

    /// Whether this is a 404: the object does not exist.
    pub fn is_not_found(&self) -> bool {
        self.is(404)
    }

    /// Whether this is a 403: the agent does not have the right, or an admission plugin refuses the call.
    pub fn is_forbidden(&self) -> bool {
        self.is(403)
    }

    /// Whether this is a 409: the name is taken, or the object was changed concurrently. [`Status::reason`] says which.
    pub fn is_conflict(&self) -> bool {
        self.is(409)
    }

    /// Whether this is a 410: the resource version or the continue token is too old, so a list must be restarted.
    pub fn is_expired(&self) -> bool {
        self.is(410) || self.status().is_some_and(|status| status.reason == Reason::Expired)
    }

    fn is(&self, code: u16) -> bool {
        self.status().is_some_and(|status| status.code == code)
    }
}

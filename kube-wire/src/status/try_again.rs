//! Refusals of requests that the client may repeat unchanged.

use super::fields::Details;
use super::reason::Reason;
use super::refusal::Status;
use crate::gvr::GroupResource;

/// The message of an API server that cannot accept another request (`tooManyRequests` in apiserver's
/// `filters/maxinflight.go`).
pub const TOO_MANY_REQUESTS: &str = "Too many requests, please try again later.";

/// Why the client may repeat the request after some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TryAgain<'a> {
    /// 429, with this message.
    TooManyRequests(&'a str),
    /// 500: it timed out, and has no effect.
    ServerTimeout {
        /// The group and the plural of the object.
        resource: GroupResource<'a>,
        /// The operation, such as `POST`.
        operation: &'a str,
    },
}

// === impl TryAgain ===

impl TryAgain<'_> {
    /// The refusal, with a hint to wait so many seconds.
    pub fn after(self, seconds: u32) -> Status {
        let status = match self {
            Self::TooManyRequests(message) => Status::failure(429, Reason::TooManyRequests, message),
            Self::ServerTimeout { resource, operation } => {
                let message = format!(
                    "The {operation} operation against {resource} could not be completed at this time, please try again."
                );
                let details = Some(Details::of(resource, operation));
                Status { details, ..Status::failure(500, Reason::ServerTimeout, message) }
            }
        };
        status.with_retry_after(seconds)
    }
}

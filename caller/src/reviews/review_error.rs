//! Why there is no answer of the host to a review.

use std::sync::Arc;

use host_client::HostError;
use kube_wire::Status;
use kube_wire::status::TryAgain;

/// There is no answer of the host. All tasks that wait for one answer get the same error, so the sources are in `Arc`s.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReviewError {
    /// The agent did not ask the host, because the token has waited too long behind others.
    #[error("too many requests: earlier requests with new tokens wait for the API server")]
    Busy,
    /// It did not answer.
    #[error("the review cannot be sent to the host cluster")]
    Host(#[source] Arc<HostError>),
    /// It did not answer in time.
    #[error("the host cluster did not respond to the review in time")]
    Silent,
    /// It answered with an error: the agent's role lacks a right, or the host is overloaded.
    #[error("the host cluster refused the review: {code} {message}")]
    Refused {
        /// The HTTP status code.
        code: u16,
        /// The message of its `Status`, truncated.
        message: Arc<str>,
    },
    /// The answer ended early, is too large, or is not the requested object.
    #[error("the host cluster's response to the review cannot be read")]
    Unreadable(#[source] Arc<dyn std::error::Error + Send + Sync>),
}

/// 503, or 429 if the host was not asked: nothing was executed, so clients may repeat the request. The host's message is only for
/// the log.
impl From<&ReviewError> for Status {
    fn from(error: &ReviewError) -> Self {
        let message = match error {
            ReviewError::Busy => return TryAgain::TooManyRequests(&error.to_string()).after(1),
            ReviewError::Host(_) | ReviewError::Silent => {
                "the host cluster did not respond to a review of this request"
            }
            ReviewError::Refused { .. } | ReviewError::Unreadable(_) => {
                "the host cluster could not review this request"
            }
        };
        Self::service_unavailable(message).with_retry_after(1)
    }
}

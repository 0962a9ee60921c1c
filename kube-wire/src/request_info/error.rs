//! Refusals of a request line. They are always the client's fault, and a retry is useless.

use crate::percent::PercentError;
use crate::query::QueryError;
use crate::selector::FieldSelectorError;
use crate::status::Status;

/// The request is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// A path that is ambiguous or invalid.
    #[error("invalid request path: {0}")]
    Path(#[from] PathError),
    /// A query string that is ambiguous.
    #[error("invalid request: {0}")]
    Query(#[from] QueryError),
    /// An invalid field selector.
    #[error(transparent)]
    FieldSelector(#[from] FieldSelectorError),
    /// A method that is not served, or not on this path.
    #[error("the server does not allow this method on the requested resource")]
    Method,
}

/// The path is refused. Kubernetes (or Go's HTTP server before it) would clean, trim or ignore most of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// No slash at the beginning.
    #[error("it must begin with a slash")]
    NotAbsolute,
    /// `//`. One slash at the end is allowed.
    #[error("it must not contain an empty segment")]
    EmptySegment,
    /// `.` or `..`, also when encoded.
    #[error("it must not contain a dot segment")]
    DotSegment,
    /// `%2f` in a segment.
    #[error("it must not contain an encoded slash")]
    EncodedSlash,
    /// `%25` in a segment: no Kubernetes name contains a percent sign, and a second decoding would change the path.
    #[error("it must not contain an encoded percent sign")]
    EncodedPercent,
    /// A control character, a space, `?` or `#`, or one of the first two encoded.
    #[error("it must not contain control characters")]
    Control,
    /// An invalid percent escape, or text that is not UTF-8.
    #[error(transparent)]
    Percent(#[from] PercentError),
    /// Segments after a subresource other than `proxy`.
    #[error("nothing may follow the subresource")]
    TrailingSegments,
    /// `/namespaces/a/namespaces/b`: it does not exist, and names two namespaces.
    #[error("namespaces cannot be nested")]
    NestedNamespace,
    /// `/api/v1/watch` with nothing after it.
    #[error("unable to determine kind and namespace")]
    Incomplete,
    /// `/api/v1/proxy/...`, which Kubernetes has not served since 1.10.
    #[error("use the proxy subresource")]
    LegacyProxy,
}

// === impl RequestError ===

/// 405 for a method, 400 for the rest.
impl From<&RequestError> for Status {
    fn from(error: &RequestError) -> Self {
        match error {
            RequestError::Method => Self::method_not_allowed_here(),
            _ => Self::bad_request(error.to_string()),
        }
    }
}

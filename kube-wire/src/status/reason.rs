//! The reasons for programs: why a request failed, and why a field is invalid.

use std::borrow::Cow;

/// `metav1.StatusReason`. `Default` is the empty reason, which Kubernetes calls unknown.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The caller must authenticate. 401
    Unauthorized,
    /// The caller is not allowed to do this. 403
    Forbidden,
    /// No such object. 404
    NotFound,
    /// An object of that name exists. 409
    AlreadyExists,
    /// The object has changed in the meantime. 409
    Conflict,
    /// It no longer exists. 410
    Gone,
    /// The object is invalid; the causes tell where. 422
    Invalid,
    /// It timed out, and has no effect. 500
    ServerTimeout,
    /// Stored data cannot be read. 500
    StorageReadError,
    /// It timed out, but may still be executed. 504
    Timeout,
    /// The client must try again later. 429
    TooManyRequests,
    /// The request itself is invalid. 400
    BadRequest,
    /// The method is not supported. 405
    MethodNotAllowed,
    /// There is no representation that the client accepts. 406
    NotAcceptable,
    /// The body is too large. 413
    RequestEntityTooLarge,
    /// The encoding is not supported. 415
    UnsupportedMediaType,
    /// An internal error. 500
    InternalError,
    /// The resource version or the continue token is too old. 410
    Expired,
    /// Unavailable now. 503
    ServiceUnavailable,
    /// Any other text; the empty one is Kubernetes' unknown reason.
    Other(Cow<'static, str>),
}

/// `metav1.CauseType`: why a field is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CauseType {
    /// It names something that does not exist.
    NotFound,
    /// It is required.
    Required,
    /// It must be unique.
    Duplicate,
    /// Its value is invalid.
    Invalid,
    /// Its value is not supported.
    NotSupported,
    /// It must not be set, or not to this value.
    Forbidden,
    /// It is too long.
    TooLong,
    /// It has too many items.
    TooMany,
    /// An internal error.
    Internal,
}

const KNOWN: [Reason; 19] = [
    Reason::Unauthorized,
    Reason::Forbidden,
    Reason::NotFound,
    Reason::AlreadyExists,
    Reason::Conflict,
    Reason::Gone,
    Reason::Invalid,
    Reason::ServerTimeout,
    Reason::StorageReadError,
    Reason::Timeout,
    Reason::TooManyRequests,
    Reason::BadRequest,
    Reason::MethodNotAllowed,
    Reason::NotAcceptable,
    Reason::RequestEntityTooLarge,
    Reason::UnsupportedMediaType,
    Reason::InternalError,
    Reason::Expired,
    Reason::ServiceUnavailable,
];

// === impl Reason ===

impl Reason {
    /// The text on the wire.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Unauthorized => "Unauthorized",
            Self::Forbidden => "Forbidden",
            Self::NotFound => "NotFound",
            Self::AlreadyExists => "AlreadyExists",
            Self::Conflict => "Conflict",
            Self::Gone => "Gone",
            Self::Invalid => "Invalid",
            Self::ServerTimeout => "ServerTimeout",
            Self::StorageReadError => "StorageReadError",
            Self::Timeout => "Timeout",
            Self::TooManyRequests => "TooManyRequests",
            Self::BadRequest => "BadRequest",
            Self::MethodNotAllowed => "MethodNotAllowed",
            Self::NotAcceptable => "NotAcceptable",
            Self::RequestEntityTooLarge => "RequestEntityTooLarge",
            Self::UnsupportedMediaType => "UnsupportedMediaType",
            Self::InternalError => "InternalError",
            Self::Expired => "Expired",
            Self::ServiceUnavailable => "ServiceUnavailable",
            Self::Other(text) => text,
        }
    }
}

impl Default for Reason {
    fn default() -> Self {
        Self::Other(Cow::Borrowed(""))
    }
}

impl From<String> for Reason {
    fn from(text: String) -> Self {
        KNOWN.into_iter().find(|reason| reason.as_str() == text).unwrap_or(Self::Other(Cow::Owned(text)))
    }
}

// === impl CauseType ===

impl CauseType {
    /// The text on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotFound => "FieldValueNotFound",
            Self::Required => "FieldValueRequired",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::Internal => "InternalError",
        }
    }

    /// The beginning of a message about such a field (`field.ErrorType.String`).
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::NotFound => "Not found",
            Self::Required => "Required value",
            Self::Duplicate => "Duplicate value",
            Self::Invalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
            Self::Internal => "Internal error",
        }
    }
}

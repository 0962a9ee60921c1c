//! The words for programs: why a request failed, and why a field is wrong.

use std::borrow::Cow;

/// `metav1.StatusReason`. `Default` is the empty reason, which Kubernetes calls unknown.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The caller must say who it is. 401
    Unauthorized,
    /// The caller may not. 403
    Forbidden,
    /// No such object. 404
    NotFound,
    /// There is one of that name. 409
    AlreadyExists,
    /// The object has changed meanwhile. 409
    Conflict,
    /// No longer there. 410
    Gone,
    /// The object is wrong; the causes say where. 422
    Invalid,
    /// Could not be done in time, and was not. 500
    ServerTimeout,
    /// Stored data cannot be read. 500
    StorageReadError,
    /// Not done in time, and may yet be. 504
    Timeout,
    /// Come back later. 429
    TooManyRequests,
    /// The request itself is wrong. 400
    BadRequest,
    /// Not with this method. 405
    MethodNotAllowed,
    /// Not in a representation that the client accepts. 406
    NotAcceptable,
    /// Too large a body. 413
    RequestEntityTooLarge,
    /// Not in this encoding. 415
    UnsupportedMediaType,
    /// A fault of the server. 500
    InternalError,
    /// The resource version or the continue token is too old. 410
    Expired,
    /// Not now. 503
    ServiceUnavailable,
    /// Any other text; the empty one is Kubernetes' unknown reason.
    Other(Cow<'static, str>),
}

/// `metav1.CauseType`: why a field is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CauseType {
    /// It names something that is not there.
    NotFound,
    /// It must be given.
    Required,
    /// It must be unique.
    Duplicate,
    /// Its value is wrong.
    Invalid,
    /// Its value is none of the known ones.
    NotSupported,
    /// It must not be set (so).
    Forbidden,
    /// It is too long.
    TooLong,
    /// It has too many items.
    TooMany,
    /// A fault of the server.
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
    /// As it stands on the wire.
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
    /// As it stands on the wire.
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

    /// What a message about such a field begins with (`field.ErrorType.String`).
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

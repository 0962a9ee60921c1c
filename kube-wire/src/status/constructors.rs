//! One constructor for each refusal, with the messages of `k8s.io/apimachinery/pkg/api/errors`.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use super::{Cause, CauseType, Details, Outcome, Reason, Status};
use crate::go_quote::GoQuoted;
use crate::gvr::{GroupKind, GroupResource};
use crate::media::{NotAcceptable, UnsupportedMediaType};

/// The message of an API server that cannot accept another request (`tooManyRequests` in apiserver's
/// `filters/maxinflight.go`).
pub const TOO_MANY_REQUESTS: &str = "Too many requests, please try again later.";

/// What was denied to whom: the attributes of the authorisation, with the names that the caller uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied<'a> {
    /// A request for a resource.
    Resource {
        /// The user's name.
        user: &'a str,
        /// `get`, `list`...
        verb: &'a str,
        /// Group and plural.
        resource: GroupResource<'a>,
        /// `status`, `exec`...
        subresource: Option<&'a str>,
        /// `None` at the cluster scope.
        namespace: Option<&'a str>,
        /// `None` for collections.
        name: Option<&'a str>,
    },
    /// A request for a path that is not a resource.
    Path {
        /// The user's name.
        user: &'a str,
        /// The method in lower case.
        verb: &'a str,
        /// The path.
        path: &'a str,
    },
}

/// An error about one field of an object, as `field.Error` of apimachinery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// The type of the error.
    pub cause: CauseType,
    /// The field's JSON path: `spec.nodeSelector[location]`.
    pub field: String,
    /// The value, if the message contains it, in Go's quotes.
    pub value: Option<String>,
    /// What to do about it. Can be empty.
    pub detail: String,
}

impl Status {
    /// A failure of any kind, without details. Prefer the constructors below.
    pub fn failure(code: u16, reason: Reason, message: impl Into<String>) -> Self {
        Self { outcome: Outcome::Failure, code, reason, message: message.into(), ..Self::default() }
    }

    /// 400: the request itself is wrong.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::failure(400, Reason::BadRequest, message)
    }

    /// 401: the caller must authenticate. The message of an API server is only `Unauthorized`, so that it discloses
    /// nothing.
    pub fn unauthorized(message: impl Into<String>) -> Self {
        Self::failure(401, Reason::Unauthorized, message)
    }

    /// 403: the caller is not allowed to do this. `why` is the reason of the authoriser, and can be empty.
    pub fn forbidden(denied: Denied<'_>, why: &str) -> Self {
        let (resource, name) = match denied {
            Denied::Resource { resource, name, .. } => (resource, name.unwrap_or_default()),
            Denied::Path { .. } => (GroupResource { group: "", resource: "" }, ""),
        };
        // apiserver's `responsewriters/errors.go` escapes the sentence for HTML, but not the reason of the authoriser.
        let denied = Sanitised(&denied.to_string()).to_string();
        let sentence = if why.is_empty() { denied } else { format!("{denied}: {why}") };
        Self::forbidden_because(resource, name, &sentence)
    }

    /// 403 with any text after `pods "x" is forbidden: `. `name` can be empty, and so can all fields of `resource`.
    pub fn forbidden_because(resource: GroupResource<'_>, name: &str, sentence: &str) -> Self {
        let message = match (resource.resource, name) {
            ("", _) => format!("forbidden: {sentence}"),
            (_, "") => format!("{resource} is forbidden: {sentence}"),
            _ => format!("{resource} {} is forbidden: {sentence}", GoQuoted(name)),
        };
        Self::failure(403, Reason::Forbidden, message).about(resource, name)
    }

    /// 404: no such object.
    pub fn not_found(resource: GroupResource<'_>, name: &str) -> Self {
        let message = format!("{resource} {} not found", GoQuoted(name));
        Self::failure(404, Reason::NotFound, message).about(resource, name)
    }

    /// 404: no such path. The text is that of client-go for a 404 without a body.
    pub fn path_not_found() -> Self {
        Self::generic(404, Reason::NotFound, "the server could not find the requested resource")
    }

    /// 409: an object of that name exists. Clients that create objects which may exist treat this as success. If the existing
    /// object is *not* the one that the client means, use [`Status::conflict`].
    pub fn already_exists(resource: GroupResource<'_>, name: &str) -> Self {
        let message = format!("{resource} {} already exists", GoQuoted(name));
        Self::failure(409, Reason::AlreadyExists, message).about(resource, name)
    }

    /// 409: the object differs from what the writer expects.
    pub fn conflict(resource: GroupResource<'_>, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {resource} {}: {why}", GoQuoted(name));
        Self::failure(409, Reason::Conflict, message).about(resource, name)
    }

    /// 410: it no longer exists.
    pub fn gone(message: impl Into<String>) -> Self {
        Self::failure(410, Reason::Gone, message)
    }

    /// 410: the resource version or the continue token is too old. Informers then list again.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::failure(410, Reason::Expired, message)
    }

    /// 422: the object is invalid.
    pub fn invalid(kind: GroupKind<'_>, name: &str, errors: &[FieldError]) -> Self {
        // An object can have an error for each of its elements.
        let mut seen = HashSet::with_capacity(errors.len());
        let mut sentences: Vec<String> = errors.iter().map(ToString::to_string).collect();
        sentences.retain(|sentence| seen.insert(sentence.clone()));
        let subject = format!("{kind} {} is invalid", GoQuoted(name));
        let message = match sentences.as_slice() {
            [] => subject,
            [sentence] => format!("{subject}: {sentence}"),
            many => format!("{subject}: [{}]", many.join(", ")),
        };
        let causes = errors.iter().map(|error| Cause {
            cause_type: Cow::Borrowed(error.cause.as_str()),
            message: error.body(),
            field: error.field.clone(),
        });
        let mut status = Self::failure(422, Reason::Invalid, message);
        status.details = Some(Details {
            name: name.to_owned(),
            group: kind.group.to_owned(),
            kind: kind.kind.to_owned(),
            causes: causes.collect(),
            ..Details::default()
        });
        status
    }

    /// 405: the resource does not support this action.
    pub fn method_not_allowed(resource: GroupResource<'_>, action: &str) -> Self {
        let message = format!("{action} is not supported on resources of kind {}", GoQuoted(&resource.to_string()));
        Self::failure(405, Reason::MethodNotAllowed, message).about(resource, "")
    }

    /// 405: go-restful, the router of kube-apiserver, has no such method for this path.
    pub fn method_not_allowed_here() -> Self {
        Self::generic(405, Reason::MethodNotAllowed, "the server does not allow this method on the requested resource")
    }

    /// 422: a JSON patch that does not apply. An API server does not tell why (`applyJSPatch` in apiserver's
    /// `handlers/patch.go`).
    pub fn patch_does_not_apply() -> Self {
        Self::generic(422, Reason::Invalid, "the server rejected our request due to an error in our request")
    }

    /// 406: there is no representation that the client accepts.
    pub fn not_acceptable(error: NotAcceptable) -> Self {
        Self::failure(406, Reason::NotAcceptable, error.to_string())
    }

    /// 413: the body is too large.
    pub fn request_entity_too_large(message: &str) -> Self {
        Self::failure(413, Reason::RequestEntityTooLarge, format!("Request entity too large: {message}"))
    }

    /// 415: the encoding is not supported.
    pub fn unsupported_media_type(error: UnsupportedMediaType) -> Self {
        Self::failure(415, Reason::UnsupportedMediaType, error.to_string())
    }

    /// 429: the client can try again after so many seconds.
    pub fn too_many_requests(message: impl Into<String>, retry_after_seconds: u32) -> Self {
        Self::failure(429, Reason::TooManyRequests, message).with_retry_after(retry_after_seconds)
    }

    /// 500: an internal error.
    pub fn internal_error(what: &str) -> Self {
        let mut status = Self::failure(500, Reason::InternalError, format!("Internal error occurred: {what}"));
        let cause = Cause { message: what.to_owned(), ..Cause::default() };
        status.details = Some(Details { causes: vec![cause], ..Details::default() });
        status
    }

    /// 500: it was not done in time, and has no effect. The client may repeat it.
    pub fn server_timeout(resource: GroupResource<'_>, operation: &str, retry_after_seconds: u32) -> Self {
        let message = format!(
            "The {operation} operation against {resource} could not be completed at this time, please try again."
        );
        let status = Self::failure(500, Reason::ServerTimeout, message).about(resource, operation);
        status.with_retry_after(retry_after_seconds)
    }

    /// 503: it is unavailable now. Add [`Status::with_retry_after`] if the time is known.
    pub fn service_unavailable(message: impl Into<String>) -> Self {
        Self::failure(503, Reason::ServiceUnavailable, message)
    }

    /// 504: it was not done in time, but may still be done.
    pub fn timeout(message: &str, retry_after_seconds: u32) -> Self {
        let message = format!("Timeout: {message}");
        Self::failure(504, Reason::Timeout, message).with_retry_after(retry_after_seconds)
    }

    /// As `NewGenericServerResponse` without a resource: the details exist, but are empty.
    fn generic(code: u16, reason: Reason, message: &str) -> Self {
        Self { details: Some(Details::default()), ..Self::failure(code, reason, message) }
    }

    fn about(mut self, resource: GroupResource<'_>, name: &str) -> Self {
        self.details = Some(Details {
            name: name.to_owned(),
            group: resource.group.to_owned(),
            kind: resource.resource.to_owned(),
            ..Details::default()
        });
        self
    }
}

// === impl Denied ===

impl fmt::Display for Denied<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Denied::Path { user, verb, path } => {
                write!(f, "User {} cannot {verb} path {}", GoQuoted(user), GoQuoted(path))
            }
            Denied::Resource { user, verb, resource, subresource, namespace, .. } => {
                let (user, group) = (GoQuoted(user), GoQuoted(resource.group));
                let full = match subresource {
                    Some(subresource) => Cow::Owned(format!("{}/{subresource}", resource.resource)),
                    None => Cow::Borrowed(resource.resource),
                };
                let full = GoQuoted(&full);
                write!(f, "User {user} cannot {verb} resource {full} in API group {group} ")?;
                match namespace {
                    Some(namespace) => write!(f, "in the namespace {}", GoQuoted(namespace)),
                    None => f.write_str("at the cluster scope"),
                }
            }
        }
    }
}

// === impl FieldError ===

impl FieldError {
    /// An invalid value.
    pub fn invalid(field: impl Into<String>, value: impl Into<String>, detail: impl Into<String>) -> Self {
        let value = Some(value.into());
        Self { cause: CauseType::Invalid, field: field.into(), value, detail: detail.into() }
    }

    /// A field that must not be set, or not to this value.
    pub fn forbidden(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { cause: CauseType::Forbidden, field: field.into(), value: None, detail: detail.into() }
    }

    /// A field that must be set.
    pub fn required(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { cause: CauseType::Required, field: field.into(), value: None, detail: detail.into() }
    }

    /// A list, or the product of its entries, that is longer than `limit` (`TooMany` in apimachinery's
    /// `util/validation/field/errors.go`).
    pub fn too_many(field: impl Into<String>, actual: u64, limit: u64) -> Self {
        let items = if limit == 1 { "item" } else { "items" };
        let detail = format!("must have at most {limit} {items}");
        Self { cause: CauseType::TooMany, field: field.into(), value: Some(actual.to_string()), detail }
    }

    /// A text that is longer than `limit`, in bytes (`TooLong` in the same file).
    pub fn too_long(field: impl Into<String>, limit: usize) -> Self {
        let detail = format!("may not be more than {limit} bytes");
        Self { cause: CauseType::TooLong, field: field.into(), value: None, detail }
    }

    /// Without the field's path.
    fn body(&self) -> String {
        let mut body = self.cause.text().to_owned();
        if let Some(value) = &self.value {
            body = match self.cause {
                // A number, which Go prints without quotes.
                CauseType::TooMany => format!("{body}: {value}"),
                _ => format!("{body}: {}", GoQuoted(value)),
            };
        }
        if !self.detail.is_empty() {
            body = format!("{body}: {}", self.detail);
        }
        body
    }
}

/// With the field's path.
impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.body())
    }
}

/// Text without HTML tags.
struct Sanitised<'a>(&'a str);

impl fmt::Display for Sanitised<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                other => write!(f, "{other}")?,
            }
        }
        Ok(())
    }
}

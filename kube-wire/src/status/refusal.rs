//! One constructor for each refusal, with the messages of `k8s.io/apimachinery/pkg/api/errors`.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use super::denied::Denied;
use super::error::NotAStatus;
use super::field_error::FieldError;
use super::fields::{Cause, Details, Fields, ListMeta, Outcome};
use super::reason::Reason;
use super::{json, protobuf};
use crate::go_quote::GoQuoted;
use crate::gvr::{GroupKind, GroupResource};
use crate::media::{NotAcceptable, UnsupportedMediaType};

/// The outcome of a request, nearly always a failure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Usually empty; an expired `continue` token comes back with a fresh one here.
    pub metadata: ListMeta,
    /// Whether the request succeeded.
    pub outcome: Outcome,
    /// For people.
    pub message: String,
    /// For programs.
    pub reason: Reason,
    /// The object and the individual errors. `None` and an empty value differ on the wire.
    pub details: Option<Details>,
    /// The HTTP status code. 0 if it is unknown.
    pub code: u16,
}

// === impl Status ===

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
        about(resource, name, Self::failure(403, Reason::Forbidden, message))
    }

    /// 404: no such object.
    pub fn not_found(resource: GroupResource<'_>, name: &str) -> Self {
        let message = format!("{resource} {} not found", GoQuoted(name));
        about(resource, name, Self::failure(404, Reason::NotFound, message))
    }

    /// 404: no such path. The text is that of client-go for a 404 without a body.
    pub fn path_not_found() -> Self {
        generic(404, Reason::NotFound, "the server could not find the requested resource")
    }

    /// 409: an object of that name exists. Clients that create objects which may exist treat this as success. If the existing
    /// object is *not* the one that the client means, use [`Status::conflict`].
    pub fn already_exists(resource: GroupResource<'_>, name: &str) -> Self {
        let message = format!("{resource} {} already exists", GoQuoted(name));
        about(resource, name, Self::failure(409, Reason::AlreadyExists, message))
    }

    /// 409: the object differs from what the writer expects.
    pub fn conflict(resource: GroupResource<'_>, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {resource} {}: {why}", GoQuoted(name));
        about(resource, name, Self::failure(409, Reason::Conflict, message))
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

    /// 405: go-restful, the router of kube-apiserver, has no such method for this path.
    pub fn method_not_allowed_here() -> Self {
        generic(405, Reason::MethodNotAllowed, "the server does not allow this method on the requested resource")
    }

    /// 422: a JSON patch that does not apply. An API server does not tell why (`applyJSPatch` in apiserver's
    /// `handlers/patch.go`).
    pub fn patch_does_not_apply() -> Self {
        generic(422, Reason::Invalid, "the server rejected our request due to an error in our request")
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

    /// 500: an internal error.
    pub fn internal_error(what: &str) -> Self {
        let mut status = Self::failure(500, Reason::InternalError, format!("Internal error occurred: {what}"));
        let cause = Cause { message: what.to_owned(), ..Cause::default() };
        status.details = Some(Details { causes: vec![cause], ..Details::default() });
        status
    }

    /// 503: it is unavailable now. Add [`Status::with_retry_after`] if the time is known.
    pub fn service_unavailable(message: impl Into<String>) -> Self {
        Self::failure(503, Reason::ServiceUnavailable, message)
    }

    /// 504: it timed out, but may still be executed.
    pub fn timeout(message: &str, retry_after_seconds: u32) -> Self {
        let message = format!("Timeout: {message}");
        Self::failure(504, Reason::Timeout, message).with_retry_after(retry_after_seconds)
    }

    /// The same with the time after which to try again, in seconds. Clients repeat a request that failed with a code of
    /// 429 or 5xx and such a time.
    #[must_use]
    pub fn with_retry_after(mut self, seconds: u32) -> Self {
        let seconds = i32::try_from(seconds).unwrap_or(i32::MAX);
        self.details.get_or_insert_default().retry_after_seconds = seconds;
        self
    }

    /// The time after which to try again, in seconds.
    pub fn retry_after(&self) -> Option<u32> {
        let seconds = self.details.as_ref()?.retry_after_seconds;
        u32::try_from(seconds).ok().filter(|seconds| *seconds > 0)
    }

    /// The body of a response or the object of a watch's ERROR event, in JSON, with the newline that the API server
    /// puts at the end.
    pub fn to_json(&self) -> Vec<u8> {
        json::write(&self.into())
    }

    /// The same in protobuf, inside its [`crate::envelope::Envelope`].
    pub fn to_protobuf(&self) -> Vec<u8> {
        protobuf::write(&self.into())
    }

    /// Parses the `Status` of an API server. As in Go, unknown fields are ignored, and absent ones are empty.
    pub fn from_json(bytes: &[u8]) -> Result<Self, NotAStatus> {
        json::read(bytes).map(Self::from)
    }

    /// The same in protobuf, inside its [`crate::envelope::Envelope`].
    pub fn from_protobuf(bytes: &[u8]) -> Result<Self, NotAStatus> {
        protobuf::read(bytes).map(Self::from)
    }
}

/// The message.
impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Status {}

impl<'a> From<&'a Status> for Fields<'a> {
    fn from(status: &'a Status) -> Self {
        Self {
            metadata: Cow::Borrowed(&status.metadata),
            outcome: status.outcome,
            message: Cow::Borrowed(&status.message),
            reason: Cow::Borrowed(&status.reason),
            details: status.details.as_ref().map(Cow::Borrowed),
            code: status.code,
        }
    }
}

impl From<Fields<'_>> for Status {
    fn from(fields: Fields<'_>) -> Self {
        Self {
            metadata: fields.metadata.into_owned(),
            outcome: fields.outcome,
            message: fields.message.into_owned(),
            reason: fields.reason.into_owned(),
            details: fields.details.map(Cow::into_owned),
            code: fields.code,
        }
    }
}

fn about(resource: GroupResource<'_>, name: &str, status: Status) -> Status {
    Status { details: Some(Details::of(resource, name)), ..status }
}

/// As `NewGenericServerResponse` without a resource: the details exist, but are empty.
fn generic(code: u16, reason: Reason, message: &str) -> Status {
    Status { details: Some(Details::default()), ..Status::failure(code, reason, message) }
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

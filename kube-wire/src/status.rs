//! `metav1.Status`: the refusals of the Kubernetes API.
//!
//! Each refusal has a named constructor, whose code, reason, details and message are those of
//! `k8s.io/apimachinery/pkg/api/errors`, so that client-go's `IsNotFound`, `IsConflict`, `IsForbidden`... understand it.
//! [`Status::to_json`] and [`Status::to_protobuf`] write the same bytes as kube-apiserver;
//! [`Status::from_json`] and [`Status::from_protobuf`] read them.
//!
//! What is not here: which error becomes which refusal, and HTTP headers such as `Retry-After`.

mod constructors;
mod json;
mod protobuf;
mod reason;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::envelope::EnvelopeError;
use crate::proto::WireError;

pub use constructors::{Denied, FieldError, TOO_MANY_REQUESTS};
pub use reason::{CauseType, Reason};

/// The outcome of a request, nearly always a failure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Usually empty; an expired `continue` token comes back with a fresh one here.
    pub metadata: ListMeta,
    /// Whether it worked.
    pub outcome: Outcome,
    /// For people.
    pub message: String,
    /// For programs.
    pub reason: Reason,
    /// What it is about. `None` and an empty value differ on the wire.
    pub details: Option<Details>,
    /// The HTTP status code; 0 if not said.
    pub code: u16,
}

/// The `status` field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It did not work.
    #[default]
    Failure,
    /// It worked; the answer to some deletes.
    Success,
}

/// `metav1.ListMeta`, as far as a `Status` uses it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ListMeta {
    /// Opaque.
    #[serde(skip_serializing_if = "str::is_empty", deserialize_with = "json::null_is_default")]
    pub resource_version: String,
    /// Opaque.
    #[serde(rename = "continue", skip_serializing_if = "str::is_empty", deserialize_with = "json::null_is_default")]
    pub continue_token: String,
    /// How many items the next pages hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remaining_item_count: Option<i64>,
}

/// `metav1.StatusDetails`: what a refusal is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Details {
    /// The object's name.
    #[serde(skip_serializing_if = "str::is_empty", deserialize_with = "json::null_is_default")]
    pub name: String,
    /// Its API group.
    #[serde(skip_serializing_if = "str::is_empty", deserialize_with = "json::null_is_default")]
    pub group: String,
    /// Its resource (`pods`), or its kind (`Pod`) when the object is invalid.
    #[serde(skip_serializing_if = "str::is_empty", deserialize_with = "json::null_is_default")]
    pub kind: String,
    /// Its UID.
    #[serde(skip_serializing_if = "str::is_empty", deserialize_with = "json::null_is_default")]
    pub uid: String,
    /// One by one what is wrong.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "json::null_is_default")]
    pub causes: Vec<Cause>,
    /// When to come back, in seconds; 0 says nothing.
    #[serde(skip_serializing_if = "is_zero", deserialize_with = "json::null_is_default")]
    pub retry_after_seconds: i32,
}

/// `metav1.StatusCause`: one thing that is wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cause {
    /// For programs; JSON calls it `reason`.
    #[serde(rename = "reason", skip_serializing_if = "str::is_empty", deserialize_with = "json::null_is_default")]
    pub cause_type: Cow<'static, str>,
    /// For people.
    #[serde(skip_serializing_if = "str::is_empty", deserialize_with = "json::null_is_default")]
    pub message: String,
    /// The field's JSON path: `spec.nodeName`.
    #[serde(skip_serializing_if = "str::is_empty", deserialize_with = "json::null_is_default")]
    pub field: String,
}

/// Why bytes are no `Status`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotAStatus {
    /// Not JSON, or a field of another type.
    #[error("malformed JSON")]
    Json(#[from] serde_json::Error),
    /// Not protobuf, or a field of another type.
    #[error("malformed protobuf")]
    Protobuf(#[from] EnvelopeError),
    /// Another kind of object.
    #[error("not a Status but {kind:?} of {api_version:?}")]
    Kind {
        /// Its `apiVersion`.
        api_version: String,
        /// Its `kind`.
        kind: String,
    },
}

// === impl Status ===

impl Status {
    /// The same with a hint when to come back, in seconds. Clients repeat a request that failed with a code of 429 or
    /// 5xx and such a hint.
    #[must_use]
    pub fn with_retry_after(mut self, seconds: u32) -> Self {
        let seconds = i32::try_from(seconds).unwrap_or(i32::MAX);
        self.details.get_or_insert_default().retry_after_seconds = seconds;
        self
    }

    /// When to come back, in seconds.
    pub fn retry_after(&self) -> Option<u32> {
        let seconds = self.details.as_ref()?.retry_after_seconds;
        u32::try_from(seconds).ok().filter(|seconds| *seconds > 0)
    }

    /// The body of a response or the object of a watch's ERROR event, in JSON, with the newline that the API server
    /// puts at the end.
    pub fn to_json(&self) -> Vec<u8> {
        json::write(self)
    }

    /// The same in protobuf, inside its [`crate::envelope::Envelope`].
    pub fn to_protobuf(&self) -> Vec<u8> {
        protobuf::write(self)
    }

    /// Reads what an API server wrote. Unknown fields are passed over, absent ones are empty, as in Go.
    pub fn from_json(bytes: &[u8]) -> Result<Self, NotAStatus> {
        json::read(bytes)
    }

    /// The same in protobuf, inside its [`crate::envelope::Envelope`].
    pub fn from_protobuf(bytes: &[u8]) -> Result<Self, NotAStatus> {
        protobuf::read(bytes)
    }
}

impl From<WireError> for NotAStatus {
    fn from(error: WireError) -> Self {
        Self::Protobuf(error.into())
    }
}

/// The message.
impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Status {}

// === impl Outcome ===

impl Outcome {
    fn as_str(self) -> &'static str {
        match self {
            Self::Failure => "Failure",
            Self::Success => "Success",
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_zero(number: &i32) -> bool {
    *number == 0
}

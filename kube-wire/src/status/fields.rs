//! The fields of a `Status`.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize};

use super::reason::Reason;
use crate::gvr::GroupResource;

/// The fields of a `Status`, for its encodings.
pub(super) struct Fields<'a> {
    pub(super) metadata: Cow<'a, ListMeta>,
    pub(super) outcome: Outcome,
    pub(super) message: Cow<'a, str>,
    pub(super) reason: Cow<'a, Reason>,
    pub(super) details: Option<Cow<'a, Details>>,
    pub(super) code: u16,
}

/// The `status` field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The request failed.
    #[default]
    Failure,
    /// The request succeeded: the response to some deletes.
    Success,
}

/// The fields of `metav1.ListMeta` that a `Status` uses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ListMeta {
    /// Opaque.
    #[serde(skip_serializing_if = "str::is_empty", deserialize_with = "null_is_default")]
    pub resource_version: String,
    /// Opaque.
    #[serde(rename = "continue", skip_serializing_if = "str::is_empty", deserialize_with = "null_is_default")]
    pub continue_token: String,
    /// The number of items on further pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remaining_item_count: Option<i64>,
}

/// `metav1.StatusDetails`: the object of a refusal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Details {
    /// The object's name.
    #[serde(skip_serializing_if = "str::is_empty", deserialize_with = "null_is_default")]
    pub name: String,
    /// Its API group.
    #[serde(skip_serializing_if = "str::is_empty", deserialize_with = "null_is_default")]
    pub group: String,
    /// Its resource (`pods`), or its kind (`Pod`) if the object is invalid.
    #[serde(skip_serializing_if = "str::is_empty", deserialize_with = "null_is_default")]
    pub kind: String,
    /// Its UID.
    #[serde(skip_serializing_if = "str::is_empty", deserialize_with = "null_is_default")]
    pub uid: String,
    /// The individual errors.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub causes: Vec<Cause>,
    /// The time after which to try again, in seconds. 0 means unknown.
    #[serde(skip_serializing_if = "is_zero", deserialize_with = "null_is_default")]
    pub retry_after_seconds: i32,
}

/// `metav1.StatusCause`: one error.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cause {
    /// For programs; JSON calls it `reason`.
    #[serde(rename = "reason", skip_serializing_if = "str::is_empty", deserialize_with = "null_is_default")]
    pub cause_type: Cow<'static, str>,
    /// For people.
    #[serde(skip_serializing_if = "str::is_empty", deserialize_with = "null_is_default")]
    pub message: String,
    /// The field's JSON path: `spec.nodeName`.
    #[serde(skip_serializing_if = "str::is_empty", deserialize_with = "null_is_default")]
    pub field: String,
}

// === impl Details ===

impl Details {
    /// The details of a refusal of a request for this object. `name` can be empty.
    pub fn of(resource: GroupResource<'_>, name: &str) -> Self {
        Self {
            name: name.to_owned(),
            group: resource.group.to_owned(),
            kind: resource.resource.to_owned(),
            ..Self::default()
        }
    }
}

// === impl Outcome ===

impl Outcome {
    pub(super) fn as_str(self) -> &'static str {
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

/// Go does not change a field if the value is null.
pub(super) fn null_is_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Option::<T>::deserialize(deserializer).map(Option::unwrap_or_default)
}

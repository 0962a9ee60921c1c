//! Answers to reviews: those of the host, unless the agent decides.

mod answer;
pub(crate) mod protobuf;

use bytes::Bytes;
use rewrite::Mapping;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

pub(crate) use answer::{ReviewAnswer, Ruling};

/// Every review, with its fields in Go's order. Fields that the agent does not need pass unchanged.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Review<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    kind: Option<&'a RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    api_version: Option<&'a RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    spec: Option<&'a RawValue>,
    #[serde(default)]
    status: Value,
}

/// The host's answer with the `status` for the virtual cluster. Its names are still those of the host, except for the user
/// of a token.
pub(crate) fn apply(answer: &ReviewAnswer, mapping: &Mapping, body: &[u8]) -> serde_json::Result<Bytes> {
    let mut review: Review<'_> = serde_json::from_slice(body)?;
    answer.judge(mapping, &mut review.status)?;
    serde_json::to_vec(&review).map(Bytes::from)
}

#[cfg(test)]
mod tests;

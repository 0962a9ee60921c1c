//! The JSON encoding, byte for byte as Go's `encoding/json` writes the struct.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::error::NotAStatus;
use super::fields::{Details, Fields, ListMeta, Outcome, null_is_default};
use super::reason::Reason;

/// The order of the fields is that of the Go struct.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Written<'a> {
    kind: &'static str,
    api_version: &'static str,
    metadata: &'a ListMeta,
    status: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    message: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    reason: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<&'a Details>,
    #[serde(skip_serializing_if = "is_zero")]
    code: u16,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Read {
    #[serde(deserialize_with = "null_is_default")]
    kind: String,
    #[serde(deserialize_with = "null_is_default")]
    api_version: String,
    #[serde(deserialize_with = "null_is_default")]
    metadata: ListMeta,
    #[serde(deserialize_with = "null_is_default")]
    status: String,
    #[serde(deserialize_with = "null_is_default")]
    message: String,
    #[serde(deserialize_with = "null_is_default")]
    reason: String,
    details: Option<Details>,
    #[serde(deserialize_with = "null_is_default")]
    code: i32,
}

pub(super) fn write(status: &Fields<'_>) -> Vec<u8> {
    let written = Written {
        kind: "Status",
        api_version: "v1",
        metadata: &status.metadata,
        status: status.outcome.as_str(),
        message: &status.message,
        reason: status.reason.as_str(),
        details: status.details.as_deref(),
        code: status.code,
    };
    let plain = serde_json::to_string(&written).expect("strings and numbers only");
    let mut out = String::with_capacity(plain.len() + 16);
    for character in plain.chars() {
        // Go escapes these so that HTML and JavaScript can contain the JSON. They occur only inside strings.
        match character {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            other => out.push(other),
        }
    }
    out.push('\n');
    out.into_bytes()
}

pub(super) fn read(bytes: &[u8]) -> Result<Fields<'static>, NotAStatus> {
    let read: Read = serde_json::from_slice(bytes)?;
    // Go's `FromObject` also accepts the group-qualified form.
    if read.kind != "Status" || !matches!(read.api_version.as_str(), "v1" | "meta.k8s.io/v1") {
        return Err(NotAStatus::Kind { api_version: read.api_version, kind: read.kind });
    }
    Ok(Fields {
        metadata: Cow::Owned(read.metadata),
        outcome: if read.status == "Success" { Outcome::Success } else { Outcome::Failure },
        message: Cow::Owned(read.message),
        reason: Cow::Owned(Reason::from(read.reason)),
        details: read.details.map(Cow::Owned),
        // Ignore invalid HTTP status codes.
        code: u16::try_from(read.code).ok().filter(|code| *code < 1000).unwrap_or_default(),
    })
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_zero(number: &u16) -> bool {
    *number == 0
}

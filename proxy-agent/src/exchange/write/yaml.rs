//! Bodies in YAML.

use bytes::Bytes;
use kube_wire::Status;
use kube_wire::query::WriteOptions;
use rewrite::yaml::{Duplicate, YamlError};

use crate::exchange::cost::admit_sent;
use crate::exchange::undecided::Undecided;
use crate::refusal::{DryRunScope, Refusal, Unmapped};

/// Converts an object from YAML to JSON. Duplicate keys are an error or a warning, by `fieldValidation` (KEP-2885).
pub(crate) fn read_yaml(call: &Undecided<'_>, body: &Bytes) -> Result<Bytes, Refusal> {
    let (json, duplicates) = converted(body)?;
    admit_sent(call, &json)?;
    let told = duplicates.iter().map(ToString::to_string);
    match &*WriteOptions::parse(call.api.info.query())?.field_validation {
        "Strict" if !duplicates.is_empty() => {
            let message = format!(
                "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n  {}",
                told.collect::<Vec<_>>().join("\n  ")
            );
            return Err(Unmapped::refusal(Status::bad_request(message), DryRunScope::KubeApiserver));
        }
        "Ignore" => {}
        _ => call.findings().warn(told),
    }
    Ok(json)
}

/// Converts an object from YAML to JSON. JSON is YAML, and passes unchanged. The first of several documents counts, as
/// in the decoder of an API server.
pub(crate) fn yaml_to_json(body: &Bytes) -> Result<Bytes, Refusal> {
    converted(body).map(|(json, _)| json)
}

/// The same, with the duplicate keys.
fn converted(body: &Bytes) -> Result<(Bytes, Vec<Duplicate>), Refusal> {
    if body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{')
        && serde_json::from_slice::<serde::de::IgnoredAny>(body).is_ok()
    {
        return Ok((body.clone(), Vec::new()));
    }
    let bad = |message: &dyn std::fmt::Display, scope| {
        Unmapped::refusal(Status::bad_request(format!("error decoding YAML: {message}")), scope)
    };
    let converted = rewrite::yaml::to_json(body).map_err(|error| match error {
        // The host might accept it.
        YamlError::Ambiguous(_) | YamlError::TooLarge => bad(&error, DryRunScope::Skip),
        error => bad(&error, DryRunScope::KubeApiserver),
    })?;
    if !converted.json.starts_with(b"{") {
        return Err(bad(&"the document is not an object", DryRunScope::KubeApiserver));
    }
    Ok((converted.json.into(), converted.duplicates))
}

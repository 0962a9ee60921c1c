//! The types of request bodies.

use super::{CBOR, Encoding, JSON, PROTOBUF, YAML, essence};

/// `application/json-patch+json` (RFC 6902)
const JSON_PATCH: &str = "application/json-patch+json";
/// `application/merge-patch+json` (RFC 7386)
const MERGE_PATCH: &str = "application/merge-patch+json";
/// Kubernetes' strategic merge, which uses the merge keys of lists.
const STRATEGIC_MERGE_PATCH: &str = "application/strategic-merge-patch+json";
/// Server-side apply (KEP-555).
const APPLY_YAML: &str = "application/apply-patch+yaml";
/// Server-side apply in CBOR (KEP-4222).
const APPLY_CBOR: &str = "application/apply-patch+cbor";

/// The meaning of a `Content-Type` in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BodyType {
    /// An object.
    Object(Encoding),
    /// A list of operations on paths.
    JsonPatch,
    /// A partial object, in which null removes a field.
    MergePatch,
    /// A partial object with directives.
    StrategicMergePatch,
    /// A partial object, applied by a field manager, in YAML or JSON.
    ApplyYaml,
    /// The same in CBOR.
    ApplyCbor,
}

/// A `Content-Type` that no API endpoint supports: 415. The text is that of the API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the body of the request was in an unknown format - accepted media types include: {accepted}")]
pub struct UnsupportedMediaType {
    accepted: &'static str,
}

// === impl BodyType ===

impl BodyType {
    /// Parses the header of a create or an update. Without it, Kubernetes assumes JSON (`negotiate.go`).
    pub fn of_object(content_type: Option<&str>) -> Result<Self, UnsupportedMediaType> {
        let essence = essence(content_type.unwrap_or_default());
        if essence.is_empty() {
            return Ok(Self::Object(Encoding::Json));
        }
        // The sequence form of CBOR is for responses.
        let known = [JSON, YAML, PROTOBUF, CBOR].iter().any(|known| essence.eq_ignore_ascii_case(known));
        match Encoding::of(essence) {
            Some(encoding) if known => Ok(Self::Object(encoding)),
            _ => Err(UnsupportedMediaType {
                accepted: "application/json, application/yaml, application/vnd.kubernetes.protobuf",
            }),
        }
    }

    /// Parses the header of a patch, which has no default (apiserver's `handlers/patch.go`).
    pub fn of_patch(content_type: Option<&str>) -> Result<Self, UnsupportedMediaType> {
        let essence = essence(content_type.unwrap_or_default());
        [Self::JsonPatch, Self::MergePatch, Self::StrategicMergePatch, Self::ApplyYaml, Self::ApplyCbor]
            .into_iter()
            .find(|patch| essence.eq_ignore_ascii_case(patch.media_type()))
            .ok_or(UnsupportedMediaType {
                accepted: "application/json-patch+json, application/merge-patch+json, \
                           application/strategic-merge-patch+json, application/apply-patch+yaml",
            })
    }

    /// The media type, without parameters.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Object(Encoding::Json) => JSON,
            Self::Object(Encoding::Yaml) => YAML,
            Self::Object(Encoding::Protobuf) => PROTOBUF,
            Self::Object(Encoding::Cbor) => CBOR,
            Self::JsonPatch => JSON_PATCH,
            Self::MergePatch => MERGE_PATCH,
            Self::StrategicMergePatch => STRATEGIC_MERGE_PATCH,
            Self::ApplyYaml => APPLY_YAML,
            Self::ApplyCbor => APPLY_CBOR,
        }
    }
}

//! Media types of the Kubernetes API: what a client accepts, and what a request body is.
//!
//! [`Accept`] is parsed as in apiserver's `pkg/endpoints/handlers/negotiation`. [`Accept::json_only`] is the header to send
//! upstream if an intermediary supports only JSON; [`Accept::protobuf_only`] is the header if the client does not support
//! JSON. The type of the result lists the possible representations. [`BodyType`] is the `Content-Type` of a request.
//!
//! This module does not know which representations an endpoint has: the API server skips those that it cannot serve.

mod accept;
mod body;
#[cfg(test)]
mod tests;

pub use accept::{Accept, AcceptClause, Form, NotAcceptable, Only, StatusFormat};
pub use body::{BodyType, UnsupportedMediaType};

/// `application/json`
pub const JSON: &str = "application/json";
/// `application/yaml`
pub const YAML: &str = "application/yaml";
/// `application/vnd.kubernetes.protobuf`
pub const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
/// `application/cbor` (KEP-4222)
pub const CBOR: &str = "application/cbor";
/// `application/cbor-seq`, the stream form of CBOR
pub const CBOR_SEQUENCE: &str = "application/cbor-seq";

/// The encoding of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// [`JSON`]
    Json,
    /// [`YAML`]
    Yaml,
    /// [`PROTOBUF`]
    Protobuf,
    /// [`CBOR`] or [`CBOR_SEQUENCE`]
    Cbor,
}

// === impl Encoding ===

impl Encoding {
    /// Recognises a bare media type, in any case (RFC 9110 section 8.3.1).
    fn of(essence: &str) -> Option<Self> {
        [
            (JSON, Self::Json),
            (YAML, Self::Yaml),
            (PROTOBUF, Self::Protobuf),
            (CBOR, Self::Cbor),
            (CBOR_SEQUENCE, Self::Cbor),
        ]
        .into_iter()
        .find_map(|(known, encoding)| essence.eq_ignore_ascii_case(known).then_some(encoding))
    }
}

/// The encoding of a *response*, by its `Content-Type`; parameters such as `charset` and `stream` are ignored. `None`
/// if the content is not an API object, such as logs, metrics, and OpenAPI's own protobuf.
pub fn response_encoding(content_type: &str) -> Option<Encoding> {
    Encoding::of(essence(content_type))
}

/// The text before the first `;`.
fn essence(media_type: &str) -> &str {
    media_type.split_once(';').map_or(media_type, |(essence, _)| essence).trim_matches([' ', '\t'])
}

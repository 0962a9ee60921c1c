//! Bodies of requests: bytes of bounded length, or a connection for an upgrade.

use bytes::Bytes;
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use kube_wire::Status;
use kube_wire::media::{BodyType, Encoding};
use serde_json::Value;

use crate::protobuf;

/// The maximum length of a body (`MaxRequestBodyBytes` in apiserver's `config.go`).
const MAX_BYTES: usize = 3 * 1024 * 1024;

/// The body of a request, and the connection below it if the client asks for an upgrade.
#[derive(Debug)]
pub(crate) struct RequestBody {
    body: Incoming,
    upgrade: Option<OnUpgrade>,
}

// === impl RequestBody ===

impl RequestBody {
    pub(crate) fn new(body: Incoming, upgrade: Option<OnUpgrade>) -> Self {
        Self { body, upgrade }
    }

    /// The connection after the response 101.
    pub(crate) fn upgrade(self) -> Option<OnUpgrade> {
        self.upgrade
    }

    /// Reads all bytes.
    pub(crate) async fn bytes(self) -> Result<Bytes, Status> {
        match Limited::new(self.body, MAX_BYTES).collect().await {
            Ok(whole) => Ok(whole.to_bytes()),
            Err(error) if error.is::<http_body_util::LengthLimitError>() => {
                Err(Status::request_entity_too_large(&format!("limit is {MAX_BYTES}")))
            }
            Err(_) => Err(Status::bad_request("the body of the request is incomplete")),
        }
    }

    /// Reads an object in JSON, YAML or protobuf. CBOR is refused (415).
    pub(crate) async fn object(self, content_type: Option<&str>) -> Result<Value, Status> {
        let body_type = BodyType::of_object(content_type).map_err(Status::unsupported_media_type)?;
        let value = match body_type {
            BodyType::Object(Encoding::Json) => parse_json(&self.bytes().await?)?,
            BodyType::Object(Encoding::Yaml) => parse_yaml(&self.bytes().await?)?,
            BodyType::Object(Encoding::Protobuf) => protobuf::object(&self.bytes().await?)?,
            _ => return Err(json_only()),
        };
        if value.is_object() {
            Ok(value)
        } else {
            Err(Status::bad_request("the body of the request must be an object"))
        }
    }
}

/// 415, with the types that this server can read.
pub(crate) fn json_only() -> Status {
    let message = "the body of the request was in an unknown format - accepted media types include: \
                   application/json, application/yaml, application/vnd.kubernetes.protobuf";
    Status::failure(415, kube_wire::status::Reason::UnsupportedMediaType, message)
}

pub(crate) fn parse_json(bytes: &[u8]) -> Result<Value, Status> {
    serde_json::from_slice(bytes).map_err(|error| {
        // The text of Go's encoding/json.
        let what = if error.is_eof() { "unexpected end of JSON input".to_owned() } else { error.to_string() };
        Status::bad_request(format!("couldn't get version/kind; json parse error: {what}"))
    })
}

pub(crate) fn parse_yaml(bytes: &[u8]) -> Result<Value, Status> {
    let text =
        std::str::from_utf8(bytes).map_err(|_| Status::bad_request("the body of the request is not valid UTF-8"))?;
    serde_saphyr::from_str(text)
        .map_err(|error| Status::bad_request(format!("error converting YAML to JSON: yaml: {error}")))
}

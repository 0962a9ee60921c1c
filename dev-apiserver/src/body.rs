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

    /// Reads an object in JSON, YAML or protobuf. CBOR is refused (415). Errors name the expected kind.
    pub(crate) async fn object(self, content_type: Option<&str>, kind: &str) -> Result<Value, Status> {
        let body_type = BodyType::of_object(content_type).map_err(Status::unsupported_media_type)?;
        let value = match body_type {
            BodyType::Object(Encoding::Json) => json_object(&self.bytes().await?, kind)?,
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
    serde_json::from_slice(bytes).map_err(|error| Status::bad_request(json_error(&error)))
}

pub(crate) fn parse_yaml(bytes: &[u8]) -> Result<Value, Status> {
    let text =
        std::str::from_utf8(bytes).map_err(|_| Status::bad_request("the body of the request is not valid UTF-8"))?;
    serde_saphyr::from_str(text)
        .map_err(|error| Status::bad_request(format!("error converting YAML to JSON: yaml: {error}")))
}

/// The text of Go's encoding/json where it is known.
fn json_error(error: &serde_json::Error) -> String {
    if error.is_eof() { "unexpected end of JSON input".to_owned() } else { error.to_string() }
}

/// Parses an object, with the errors of `transformDecodeError` in apiserver's `handlers/rest.go`.
fn json_object(bytes: &[u8], kind: &str) -> Result<Value, Status> {
    let error = match serde_json::from_slice(bytes) {
        Ok(object @ Value::Object(_)) => return Ok(object),
        Ok(value) => format!("json: cannot unmarshal {} into Go value of type {TYPE_META}", go_type(&value)),
        Err(error) => json_error(&error),
    };
    Err(Status::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; json parse error: {error} \
         ({})",
        summary(bytes)
    )))
}

/// The type in the errors of apimachinery's `SimpleMetaFactory`.
const TYPE_META: &str =
    r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The start of a body: text if it begins as an object does, else hexadecimal (`summarizeData`).
fn summary(bytes: &[u8]) -> String {
    const MAX_LENGTH: usize = 30;
    let start = &bytes[..bytes.len().min(MAX_LENGTH)];
    let shown = match start.first() {
        None => return "<empty>".to_owned(),
        Some(b'{') => String::from_utf8_lossy(start).into_owned(),
        Some(_) => start.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}")),
    };
    if bytes.len() > MAX_LENGTH { shown + " ..." } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_the_texts_of_kube_apiserver() {
        let message = |body: &str| json_object(body.as_bytes(), "ConfigMap").unwrap_err().message;
        let prefix = "the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json \
                      parse error: ";
        let end = "unexpected end of JSON input";
        let long = r#"{"apiVersion":"v1","kind":"ConfigMap""#;
        assert_eq!(message(long), format!(r#"{prefix}{end} ({{"apiVersion":"v1","kind":"Con ...)"#));
        assert_eq!(message(""), format!("{prefix}{end} (<empty>)"));
        assert_eq!(
            message("[]"),
            format!("{prefix}json: cannot unmarshal array into Go value of type {TYPE_META} (5b5d)")
        );
    }
}

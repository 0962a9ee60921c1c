//! The object in the body of a request.

use http::header;
use kube_wire::Status;
use serde_json::Value;

use super::request::ApiRequest;
use crate::body::RequestBody;
use crate::protobuf;
use crate::write::check_type;

/// Reads an object of the request's kind.
pub(super) async fn object(request: &ApiRequest<'_>, body: RequestBody) -> Result<Value, Status> {
    let mut object = body.object(request.header(header::CONTENT_TYPE)).await?;
    check_type(request.kind, &object)?;
    conform(request, &mut object)?;
    Ok(object)
}

/// Drops fields that the kind does not have, or refuses them with `fieldValidation=Strict`.
pub(super) fn conform(request: &ApiRequest<'_>, object: &mut Value) -> Result<(), Status> {
    let kind = request.kind;
    let unknown = protobuf::conform(&kind.api_version(), kind.kind, object)?;
    if unknown.is_empty() || request.write_options()?.field_validation != "Strict" {
        return Ok(());
    }
    let unknown: Vec<_> = unknown.iter().map(|field| format!("unknown field {field:?}")).collect();
    let message = format!(
        "{} in version {:?} cannot be handled as a {}: strict decoding error: {}",
        kind.kind,
        kind.version,
        kind.kind,
        unknown.join(", ")
    );
    Err(Status::bad_request(message))
}

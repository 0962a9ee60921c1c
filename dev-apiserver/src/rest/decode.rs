//! The object in the body of a request.

use http::header;
use kube_wire::Status;
use serde_json::Value;

use super::request::ApiRequest;
use crate::body::RequestBody;
use crate::kinds::api_version;
use crate::protobuf;
use crate::write::check_type;

/// Reads the object in the body. Its kind is that of the request, or that of the subresource if this has one of its own.
pub(super) async fn object(request: &ApiRequest<'_>, body: RequestBody) -> Result<Value, Status> {
    let (_, _, kind) = kind(request);
    let mut object = body.object(request.header(header::CONTENT_TYPE), kind).await?;
    conform(request, &mut object)?;
    Ok(object)
}

/// Checks the object against the schema of its kind. Unknown fields are dropped, or refused with
/// `fieldValidation=Strict`.
pub(super) fn conform(request: &ApiRequest<'_>, object: &mut Value) -> Result<(), Status> {
    let (group, version, kind) = kind(request);
    check_type(group, version, kind, object)?;
    let api_version = api_version(group, version);
    let unknown = protobuf::conform(&api_version, kind, object)?;
    if unknown.is_empty() || request.write_options()?.field_validation != "Strict" {
        return Ok(());
    }
    let unknown: Vec<_> = unknown.iter().map(|field| format!("unknown field {field:?}")).collect();
    let message = format!(
        "{kind} in version {version:?} cannot be handled as a {kind}: strict decoding error: {}",
        unknown.join(", ")
    );
    Err(Status::bad_request(message))
}

/// Group, version and kind of the body.
fn kind(request: &ApiRequest<'_>) -> (&'static str, &'static str, &'static str) {
    let subresource = request.resource.subresource().and_then(|name| request.kind.subresource(name));
    let own = (request.kind.group, request.kind.version, request.kind.kind);
    subresource.and_then(|subresource| subresource.kind).unwrap_or(own)
}

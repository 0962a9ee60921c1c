//! Paths that are not resources: discovery, health, version.

use std::net::SocketAddr;

use http::{HeaderMap, Response, StatusCode, header};
use kube_wire::Status;
use kube_wire::media::Form;
use kube_wire::request_info::NonResourceRequest;
use serde_json::json;

use crate::response::{self, Body};
use crate::{discovery, headers, openapi};

/// The media type of aggregated discovery (KEP-3352).
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Responds to a request for a path. Legacy discovery names `address`.
pub(super) fn respond(
    request: &NonResourceRequest<'_>,
    headers: &HeaderMap,
    address: SocketAddr,
) -> Result<Response<Body>, Status> {
    if !matches!(request.verb(), "get" | "head") {
        return Err(Status::method_not_allowed_here());
    }
    let path = request.path();
    let segments: Vec<_> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let document = match *segments.as_slice() {
        [] => discovery::paths(),
        ["healthz" | "livez" | "readyz", ..] => {
            return Ok(response::whole(StatusCode::OK, "text/plain; charset=utf-8", "ok"));
        }
        ["version"] => version(),
        ["api" | "apis"] if wants_aggregated(headers) => {
            let mut response = response::json(StatusCode::OK, &discovery::aggregated(segments == ["api"]));
            response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(AGGREGATED));
            response.headers_mut().insert(header::VARY, header::HeaderValue::from_static("Accept"));
            return Ok(response);
        }
        ["api"] => discovery::core_versions(address),
        ["apis"] => discovery::groups(),
        ["api", version] => discovery::resources("", version).ok_or_else(Status::path_not_found)?,
        ["apis", group] => discovery::group(group).ok_or_else(Status::path_not_found)?,
        ["apis", group, version] => discovery::resources(group, version).ok_or_else(Status::path_not_found)?,
        ["openapi", "v2"] => {
            let accept = headers::text(headers, header::ACCEPT).unwrap_or_default();
            // client-go accepts `spec.v2@v1.0`, which is not a token of RFC 9110. The response has `spec.v2.v1.0`.
            if accept.contains("proto-openapi.spec.v2") {
                return Ok(response::whole(StatusCode::OK, openapi::V2_PROTOBUF, openapi::v2_protobuf()));
            }
            openapi::v2()
        }
        ["openapi", "v3"] => openapi::index(),
        ["openapi", "v3", "api", version] => openapi::document("", version).ok_or_else(Status::path_not_found)?,
        ["openapi", "v3", "apis", group, version] => {
            openapi::document(group, version).ok_or_else(Status::path_not_found)?
        }
        _ => return Err(Status::path_not_found()),
    };
    Ok(response::json(StatusCode::OK, &document))
}

fn wants_aggregated(headers: &HeaderMap) -> bool {
    headers::accepted_forms(headers).is_ok_and(|forms| forms.first() == Some(&Form::ApiGroupDiscoveryList))
}

/// The version is that of the Kubernetes API that this server follows.
fn version() -> serde_json::Value {
    json!({
        "major": "1", "minor": "36", "gitVersion": "v1.36.0+dev-apiserver", "gitCommit": "", "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    })
}

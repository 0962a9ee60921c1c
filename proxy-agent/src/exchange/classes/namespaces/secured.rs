//! Sets the Pod Security labels after a write of a Namespace, if a level is enforced.
//!
//! Only the host knows the labels that result from patches and applies. So the agent checks the labels after the write,
//! and corrects them before it sends the response. Until then, the host enforces the previous level, which is never
//! less than the configured one.

use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use serde_json::{Value, json};

use crate::exchange::api_request::As;
use crate::exchange::call::Call;
use crate::exchange::findings::warning;
use crate::exchange::host::read::{JSON, collected, read_from_host};
use crate::exchange::host::sample::send;
use crate::exchange::upstream;
use crate::refusal::Refusal;
use crate::translate::Upstream;
use host_client::{HostBody, empty, full};
use virtual_cluster::pod_security::{self, correction};

const MERGE_PATCH: &str = "application/merge-patch+json";

/// Sets the labels of the namespace at `path`, which is in host names. The response is the updated object, in the
/// form that the client requested.
pub(crate) async fn secured(
    call: &Call<'_>,
    path: &str,
    response: Response<HostBody>,
) -> Result<Response<Upstream>, Refusal> {
    let is_dry = kube_wire::query::WriteOptions::parse(call.api.info.query())?.dry_run;
    if !response.status().is_success() || is_dry {
        return Ok(response.map(Upstream::Stream));
    }
    let live = read_from_host(call, path, JSON).await?;
    if live.status() != StatusCode::OK {
        // It was deleted in the meantime.
        return Ok(response.map(Upstream::Stream));
    }
    let live = collected(call, live).await?;
    let live: Value = serde_json::from_slice(&live).map_err(|error| Refusal::Unreadable(error.to_string()))?;
    let labels = &live["metadata"]["labels"];
    let mut response = response;
    if let Some(correction) = correction(labels, call.api.cluster.pod_security) {
        let patch = json!({"metadata": {"labels": correction}});
        let mut request = upstream::request(&call.api, Method::PATCH, path, As::Agent, full(patch.to_string()))?;
        for (name, value) in [(header::ACCEPT, JSON), (header::CONTENT_TYPE, MERGE_PATCH)] {
            request.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        // If this fails, the reconciler tries again.
        let corrected = send(call, request).await?;
        for warning in corrected.headers().get_all(header::WARNING) {
            response.headers_mut().append(header::WARNING, warning.clone());
        }
    }
    // The reconciler may have corrected them after the event of the write, so the object may be newer than the
    // response.
    let mut read = upstream::request(&call.api, Method::GET, path, As::Agent, empty())?;
    upstream::readable(&call.api, &mut read)?;
    let newest = send(call, read).await?;
    if newest.status() == StatusCode::OK {
        let (parts, body) = newest.into_parts();
        let (mut head, _) = response.into_parts();
        for name in [header::CONTENT_TYPE, header::CONTENT_LENGTH] {
            match parts.headers.get(&name) {
                Some(value) => drop(head.headers.insert(name, value.clone())),
                None => drop(head.headers.remove(name)),
            }
        }
        response = Response::from_parts(head, body);
    }
    warn_of_pod_security(call, labels, response.headers_mut());
    Ok(response.map(Upstream::Stream))
}

/// Warns a client that requests a lower level than the enforced one.
pub(crate) fn warn_of_pod_security(call: &Call<'_>, labels: &Value, headers: &mut HeaderMap) {
    let Some(level) = call.api.cluster.pod_security else { return };
    if let Some(warning) = pod_security::warning(labels, level).and_then(|text| warning(&text)) {
        headers.append(header::WARNING, warning);
    }
}

//! Sets the Pod Security labels after a write of a Namespace, if a level is enforced.
//!
//! Only the host knows the labels that result from patches and applies. So the agent checks the labels after the write,
//! and corrects them before it sends the response. Until then, the host enforces the previous level, which is never
//! less than the configured one.

use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use serde_json::{Value, json};

use super::plan::As;
use super::read::JSON;
use super::{ApiRequest, warning};
use crate::refusal::Refusal;
use crate::translate::Upstream;
use host_client::{HostBody, empty, full};
use virtual_cluster::pod_security::{self, correction};

const MERGE_PATCH: &str = "application/merge-patch+json";

impl ApiRequest<'_> {
    /// Sets the labels of the namespace at `path`, which is in host names. The response is the updated object, in the
    /// form that the client requested.
    pub(super) async fn secured(
        &self,
        path: &str,
        response: Response<HostBody>,
    ) -> Result<Response<Upstream>, Refusal> {
        let is_dry = kube_wire::query::WriteOptions::parse(self.info.query())?.dry_run;
        if !response.status().is_success() || is_dry {
            return Ok(response.map(Upstream::Stream));
        }
        let live = self.read_from_host(path, JSON).await?;
        if live.status() != StatusCode::OK {
            // It was deleted in the meantime.
            return Ok(response.map(Upstream::Stream));
        }
        let live = self.collected(live).await?;
        let live: Value = serde_json::from_slice(&live).map_err(|error| Refusal::Unreadable(error.to_string()))?;
        let labels = &live["metadata"]["labels"];
        let mut response = response;
        if let Some(correction) = correction(labels, self.cluster.pod_security) {
            let patch = json!({"metadata": {"labels": correction}});
            let mut request = self.upstream(Method::PATCH, path, As::Agent, full(patch.to_string()))?;
            for (name, value) in [(header::ACCEPT, JSON), (header::CONTENT_TYPE, MERGE_PATCH)] {
                request.headers_mut().insert(name, HeaderValue::from_static(value));
            }
            // If this fails, the reconciler tries again.
            let corrected = self.send(request).await?;
            for warning in corrected.headers().get_all(header::WARNING) {
                response.headers_mut().append(header::WARNING, warning.clone());
            }
        }
        // The reconciler may have corrected them after the event of the write, so the object may be newer than the
        // response.
        let mut read = self.upstream(Method::GET, path, As::Agent, empty())?;
        self.readable(&mut read)?;
        let newest = self.send(read).await?;
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
        self.warn_of_pod_security(labels, response.headers_mut());
        Ok(response.map(Upstream::Stream))
    }

    /// Warns a client that requests a lower level than the enforced one.
    pub(super) fn warn_of_pod_security(&self, labels: &Value, headers: &mut HeaderMap) {
        let Some(level) = self.cluster.pod_security else { return };
        if let Some(warning) = pod_security::warning(labels, level).and_then(|text| warning(&text)) {
            headers.append(header::WARNING, warning);
        }
    }
}

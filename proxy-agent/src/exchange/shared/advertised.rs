//! Discovery and OpenAPI documents for a cluster from which resources are hidden.

mod document;

use http::{HeaderMap, HeaderValue, Response, header};
use kube_wire::Status;
use kube_wire::media::Accept;
use kube_wire::request_info::NonResourceRequest;
use serde_json::Value;

use super::ApiRequest;
use crate::refusal::Refusal;
use crate::translate::{Collector, Upstream};
use document::{Document, Redaction};
use host_client::HostBody;

/// The maximum size of a document, in bytes. OpenAPI of a cluster with some hundred definitions has about 8 MB.
const MAX: usize = 64 * 1024 * 1024;

/// A document, and the resources to remove from it.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::exchange) struct Advertised {
    document: Document,
    hidden: Redaction,
}

impl ApiRequest<'_> {
    /// What must be removed from the response; `None` if it can pass unchanged.
    pub(in crate::exchange) async fn advertised(
        &self,
        request: &NonResourceRequest<'_>,
        headers: &mut HeaderMap,
    ) -> Result<Option<Advertised>, Refusal> {
        let Some(document) = Document::of(request.path()) else { return Ok(None) };
        self.known_definitions().await?;
        let unserved = self.services.discovery.hidden();
        let hidden = Redaction(self.services.definitions.hidden_from(self.cluster.name.as_str(), &unserved));
        if !hidden.concerns(&document) {
            return Ok(None);
        }
        if hidden.is_all_of(&document) {
            return Err(Status::path_not_found().into());
        }
        let accept = self.headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
        match Accept::parse(accept).json_only() {
            Ok(only) => {
                let value = HeaderValue::from_str(only.header());
                let value =
                    value.map_err(|_| Refusal::from(Status::bad_request("the Accept header cannot be read")))?;
                headers.insert(header::ACCEPT, value);
            }
            // This document has a protobuf form of its own.
            Err(_) if document == Document::Schemas(None) => {}
            Err(error) => return Err(Status::not_acceptable(error).into()),
        }
        // Other resources may have been removed from the document that the client has.
        headers.remove(header::IF_NONE_MATCH);
        headers.remove(header::IF_MODIFIED_SINCE);
        Ok(Some(Advertised { document, hidden }))
    }
}

// === impl Advertised ===

impl Advertised {
    /// The document without the hidden resources.
    pub(in crate::exchange) async fn cut(
        &self,
        response: Response<HostBody>,
        collector: Collector<'_>,
    ) -> Result<Response<Upstream>, Refusal> {
        if !response.status().is_success() {
            return Ok(response.map(Upstream::Stream));
        }
        let unreadable = |error: String| Refusal::Unreadable(error);
        let (mut parts, body) = response.into_parts();
        let body = collector.collect(body, MAX).await?;
        // Everything but protobuf is JSON: the index of OpenAPI is JSON with another media type.
        let media_type = parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let body = if media_type.is_some_and(|media_type| media_type.contains("protobuf")) {
            self.hidden.leave_out_of_protobuf(&body).map_err(|error| unreadable(error.to_string()))?
        } else {
            let mut found: Value = serde_json::from_slice(&body).map_err(|error| unreadable(error.to_string()))?;
            self.hidden.leave_out(&self.document, &mut found);
            found.to_string().into_bytes()
        };
        for name in [header::ETAG, header::CACHE_CONTROL, header::EXPIRES, header::LAST_MODIFIED] {
            parts.headers.remove(name);
        }
        parts.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(body.len()));
        Ok(Response::from_parts(parts, Upstream::Whole(collector.charged(body.into())?)))
    }
}

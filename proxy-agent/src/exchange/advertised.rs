//! Discovery and OpenAPI documents for a cluster from which resources are hidden.

pub(crate) mod document;

use http::{HeaderValue, Response, header};
use serde_json::Value;

use crate::exchange::advertised::document::gnostic;
use crate::refusal::Refusal;
use crate::translate::{Collector, Upstream};
use host_client::HostBody;

use document::{Document, Redaction};

/// The maximum size of a document, in bytes. OpenAPI of a cluster with some hundred definitions has about 8 MB.
const MAX: usize = 64 * 1024 * 1024;

/// A document, and the resources to remove from it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Advertised {
    pub(crate) document: Document,
    pub(crate) hidden: Redaction,
}

// === impl Advertised ===

impl Advertised {
    /// The document without the hidden resources.
    pub(crate) async fn cut(
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
            gnostic::without_hidden(&self.hidden, &body).map_err(|error| unreadable(error.to_string()))?
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

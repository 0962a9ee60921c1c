//! The response to an agent that is refused.

use bytes::Bytes;
use http::{HeaderValue, Response, header};
use http_body_util::Full;
use protocol::Refusal;

/// The response with a refusal.
pub(super) fn refused(refusal: &Refusal) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(refusal.encode()));
    *response.status_mut() = refusal.status();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(seconds) = refusal.retry_after_seconds {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

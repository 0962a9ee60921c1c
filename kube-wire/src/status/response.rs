//! The HTTP response of a refusal.

use http::{HeaderValue, Response, StatusCode, header};

use super::refusal::Status;
use crate::media::{Accept, JSON, PROTOBUF, StatusFormat};

/// The HTTP response of a refusal, as kube-apiserver sends it: in the media type that the client accepts. `accept` is the
/// header of the request.
pub fn http_response(status: &Status, accept: Option<&HeaderValue>) -> Response<Vec<u8>> {
    let accept = accept.and_then(|accept| accept.to_str().ok());
    let (media_type, body) = match Accept::parse(accept).status_format() {
        StatusFormat::Json => (JSON, status.to_json()),
        StatusFormat::Protobuf => (PROTOBUF, status.to_protobuf()),
    };
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    if let Some(seconds) = status.retry_after() {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::Reason;

    #[test]
    fn the_response_is_in_an_accepted_media_type() {
        let status = Status::service_unavailable("no agent").with_retry_after(3);
        let response = http_response(&status, None);
        assert_eq!(
            (response.status().as_u16(), &response.headers()[header::RETRY_AFTER]),
            (503, &"3".parse().unwrap())
        );
        assert_eq!(response.headers()[header::CONTENT_TYPE], JSON);
        assert_eq!(Status::from_json(response.body()).unwrap(), status);
        let response = http_response(&status, Some(&HeaderValue::from_static("application/vnd.kubernetes.protobuf")));
        assert_eq!(response.headers()[header::CONTENT_TYPE], PROTOBUF);
        assert_eq!(Status::from_protobuf(response.body()).unwrap(), status);
    }

    #[test]
    fn a_status_without_a_code_is_an_error_of_the_server() {
        let response = http_response(&Status::failure(0, Reason::default(), ""), None);
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert!(!response.headers().contains_key(header::RETRY_AFTER));
    }
}

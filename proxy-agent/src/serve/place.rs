//! Where a stream runs: on the worker of its tunnel, or on the main runtime.

use http::{HeaderValue, Method, Request, header};
use memchr::memmem::find;

/// Whether every step of the stream is short, so that it can run on a worker beside the streams of all virtual clusters.
///
/// These are byte streams, and reads of resources in JSON, which are mapped about as fast as they are copied. Writes are
/// parsed, patched and sampled, discovery documents are rewritten as a whole, and a list in protobuf is held as a whole.
/// This decides only where a request runs, never what it may do. So the request target does not have to be valid here.
pub(super) fn is_brief<B>(request: &Request<B>) -> bool {
    if *request.method() == Method::CONNECT {
        return true;
    }
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    is_read && is_resource(request.uri().path()) && request.headers().get_all(header::ACCEPT).iter().all(accepts_json)
}

/// `/api/VERSION/RESOURCE` or `/apis/GROUP/VERSION/RESOURCE`, and what is below them.
fn is_resource(path: &str) -> bool {
    let mut segments = path.split('/').skip(1);
    let before = match segments.next() {
        Some("api") => 1,
        Some("apis") => 2,
        _ => return false,
    };
    segments.nth(before).is_some_and(|resource| !resource.is_empty())
}

fn accepts_json(accept: &HeaderValue) -> bool {
    let accept = accept.as_bytes();
    accept.is_empty() || find(accept, b"json").is_some() || find(accept, b"*/*").is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(method: &Method, path: &str, accept: &str, expected: bool) {
        let request = Request::builder().method(method).uri(path).header(header::ACCEPT, accept).body(()).unwrap();
        assert_eq!(is_brief(&request), expected, "{method} {path} {accept}");
    }

    #[test]
    fn reads_of_resources_in_json_are_brief() {
        const JSON: &str = "application/json";
        const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
        for path in ["/api/v1/pods", "/api/v1/namespaces/a/pods/b/log", "/apis/apps/v1/deployments?watch=1"] {
            check(&Method::GET, path, JSON, true);
            check(&Method::HEAD, path, "*/*", true);
            check(&Method::GET, path, &format!("{PROTOBUF},{JSON}"), true);
            check(&Method::GET, path, PROTOBUF, false);
            check(&Method::PATCH, path, JSON, false);
            check(&Method::DELETE, path, JSON, false);
        }
        for path in ["/", "/api", "/api/v1", "/api/v1/", "/apis", "/apis/apps/v1", "/openapi/v2", "/version"] {
            check(&Method::GET, path, JSON, false);
        }
    }

    #[test]
    fn byte_streams_are_brief() {
        let request = Request::builder().method(Method::CONNECT).uri("10.0.0.1:6443").body(()).unwrap();
        assert!(is_brief(&request));
    }
}

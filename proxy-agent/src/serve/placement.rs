//! Chooses the runtime of a stream: the worker of its tunnel, or the main runtime.

use http::{HeaderMap, HeaderValue, Method, Request, header};
use kube_wire::media::Accept;

/// The maximum length of the head of a request that a worker serves, in bytes. A longer one, such as a selector with
/// thousands of requirements, takes milliseconds to parse, map and print. Most heads have less than 2 KiB.
const MAX_HEAD: usize = 8 * 1024;

/// The maximum length of an `Accept` header that is parsed here, in bytes. That of client-go for a Table has about 130.
const MAX_ACCEPT: usize = 1024;

/// The runtime of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Placement {
    /// The worker of the tunnel.
    Worker,
    /// The main runtime, because the stream may take long.
    Main,
    /// The main runtime, because the worker is late.
    LateWorker,
}

// === impl Placement ===

impl Placement {
    /// The runtime of a stream with this request. `is_late` is whether the tasks of the worker wait for too long.
    pub(super) fn of<B>(request: &Request<B>, is_late: bool) -> Self {
        match is_brief(request) {
            false => Self::Main,
            true if is_late => Self::LateWorker,
            true => Self::Worker,
        }
    }
}

/// Whether every step of the stream is short, so that it does not delay the other streams of a worker.
///
/// These are byte streams, and reads of resources in JSON with short heads, which are mapped about as fast as they are copied.
/// Writes are parsed, patched and sampled. Discovery documents and lists in protobuf are held and mapped as a whole. The
/// result decides only where a request runs, so the request target does not have to be valid.
fn is_brief<B>(request: &Request<B>) -> bool {
    if *request.method() == Method::CONNECT {
        return true;
    }
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    is_read && is_resource(request.uri().path()) && is_short(request) && accepts_json(request.headers())
}

fn is_short<B>(request: &Request<B>) -> bool {
    let target = request.uri().path().len() + request.uri().query().map_or(0, str::len);
    let headers = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len());
    target + headers.sum::<usize>() <= MAX_HEAD
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

/// Whether the agent asks the host for JSON, as `exchange` does if the client allows it.
fn accepts_json(headers: &HeaderMap) -> bool {
    let lines = || headers.get_all(header::ACCEPT).iter();
    lines().map(HeaderValue::len).sum::<usize>() <= MAX_ACCEPT
        && Accept::allows_json(lines().filter_map(|line| line.to_str().ok()))
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
            check(&Method::GET, path, "", true);
            check(&Method::GET, path, PROTOBUF, false);
            // These only look like JSON.
            check(&Method::GET, path, &format!("{PROTOBUF};x=json"), false);
            check(&Method::GET, path, &format!("{PROTOBUF},{JSON};q=0,*/*;q=0"), false);
            check(&Method::GET, path, &format!("{PROTOBUF},application/json-patch+json"), false);
            check(&Method::GET, path, &format!("{PROTOBUF},{JSON};as=Unknown;g=x;v=v1"), false);
            check(&Method::GET, path, &format!("{JSON};as=Table;v=v1;g=meta.k8s.io,{JSON}"), true);
            check(&Method::GET, path, &format!("{JSON}{}", ";".repeat(MAX_ACCEPT)), false);
            check(&Method::PATCH, path, JSON, false);
            check(&Method::DELETE, path, JSON, false);
        }
        for path in ["/", "/api", "/api/v1", "/api/v1/", "/apis", "/apis/apps/v1", "/openapi/v2", "/version"] {
            check(&Method::GET, path, JSON, false);
        }
    }

    /// The agent ignores a line that is not text.
    #[test]
    fn an_accept_line_that_is_not_text_is_ignored() {
        let request =
            Request::builder().uri("/api/v1/pods").header(header::ACCEPT, "application/vnd.kubernetes.protobuf");
        let request = request.header(header::ACCEPT, HeaderValue::from_bytes(b"application/json;x=\xff").unwrap());
        assert!(!is_brief(&request.body(()).unwrap()));
    }

    #[test]
    fn long_heads_are_not_brief() {
        let long = "x".repeat(MAX_HEAD / 2);
        let placement = |query: &str, groups: usize| {
            let mut request = Request::builder().uri(format!("/api/v1/pods?labelSelector={query}"));
            for _ in 0..groups {
                request = request.header("impersonate-group", &long[..MAX_HEAD / 4]);
            }
            Placement::of(&request.body(()).unwrap(), false)
        };
        assert_eq!([placement("a", 0), placement(&long, 0), placement("a", 3)], [Placement::Worker; 3]);
        assert_eq!(
            [placement(&(long.clone() + &long), 0), placement(&long, 2), placement("a", 4)],
            [Placement::Main; 3]
        );
    }

    #[test]
    fn a_worker_that_is_late_serves_no_new_stream() {
        let placement = |method: &Method, is_late| {
            Placement::of(&Request::builder().method(method).uri("/api/v1/pods").body(()).unwrap(), is_late)
        };
        assert_eq!(
            [false, true].map(|is_late| placement(&Method::GET, is_late)),
            [Placement::Worker, Placement::LateWorker]
        );
        assert_eq!([false, true].map(|is_late| placement(&Method::PATCH, is_late)), [Placement::Main; 2]);
    }

    #[test]
    fn byte_streams_are_brief() {
        let request = Request::builder().method(Method::CONNECT).uri("10.0.0.1:6443").body(()).unwrap();
        assert!(is_brief(&request));
    }
}

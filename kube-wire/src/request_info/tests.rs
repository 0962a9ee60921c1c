use proptest::prelude::*;
use serde::Deserialize;

use super::*;
use crate::name::SegmentName;

/// The results of `NewRequestInfo` of Kubernetes 1.36.3; see testdata/README.md.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Recorded {
    method: String,
    url: String,
    resource: bool,
    verb: String,
    group: String,
    version: String,
    namespace: String,
    resource_name: String,
    subresource: String,
    name: String,
    path: String,
}

fn parse<'a>(method: &str, url: &'a str) -> Result<RequestInfo<'a>, RequestError> {
    let (path, query) = match url.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (url, None),
    };
    RequestInfo::parse(&method.parse().unwrap(), path, query)
}

fn resource<'a>(method: &str, url: &'a str) -> ResourceRequest<'a> {
    match parse(method, url).unwrap().target {
        Target::Resource(resource) => resource,
        Target::NonResource(path) => panic!("{path:?}"),
    }
}

fn name(text: &str) -> SegmentName<'_> {
    SegmentName::new(text).unwrap()
}

#[test]
fn agrees_with_kubernetes_or_refuses() {
    let cases: Vec<Recorded> = serde_json::from_str(include_str!("../../testdata/request_info.json")).unwrap();
    let mut refused = Vec::new();
    for case in &cases {
        let info = match parse(&case.method, &case.url) {
            Ok(info) => info,
            Err(error) => {
                refused.push((case.method.as_str(), case.url.as_str(), error));
                continue;
            }
        };
        assert_eq!(info.verb(), case.verb, "{case:?}");
        match info.target() {
            Target::NonResource(path) => {
                assert!(!case.resource, "{case:?}");
                assert_eq!(path.path(), case.path, "{case:?}");
            }
            Target::Resource(resource) => {
                assert!(case.resource, "{case:?}");
                assert_eq!(resource.group(), case.group, "{case:?}");
                assert_eq!(resource.version(), case.version, "{case:?}");
                assert_eq!(resource.resource(), case.resource_name, "{case:?}");
                assert_eq!(resource.namespace().unwrap_or_default(), case.namespace, "{case:?}");
                assert_eq!(resource.subresource().unwrap_or_default(), case.subresource, "{case:?}");
                assert_eq!(resource.name().unwrap_or_default(), case.name, "{case:?}");
            }
        }
    }
    // The only cases in which this crate is stricter: a path below another subresource than proxy, and writes to the
    // watch prefix.
    for (method, url, error) in refused {
        match error {
            RequestError::Path(PathError::TrailingSegments) => {
                assert!(url.ends_with("/status/x"), "{url}");
            }
            RequestError::Method => {
                assert!(method != "GET" && url.contains("/watch/"), "{method} {url}");
            }
            other => panic!("{method} {url}: {other}"),
        }
    }
}

#[test]
fn ambiguous_paths_are_refused() {
    use PathError::*;
    for (path, expected) in [
        ("", NotAbsolute),
        ("api/v1/pods", NotAbsolute),
        ("*", NotAbsolute),
        ("//", EmptySegment),
        ("//api/v1/pods", EmptySegment),
        ("/api//v1/pods", EmptySegment),
        ("/api/v1/namespaces//pods", EmptySegment),
        ("/api/v1/pods//", EmptySegment),
        ("/api/v1/namespaces/a/../b/pods", DotSegment),
        ("/api/v1/namespaces/a/%2e%2E/pods", DotSegment),
        ("/api/v1/namespaces/.%2e", DotSegment),
        ("/api/v1/./pods", DotSegment),
        ("/healthz/..", DotSegment),
        ("/healthz/%2e%2e/api/v1/pods", DotSegment),
        ("/api%2fv1/pods", EncodedSlash),
        ("/api/v1/namespaces/a%2Fpods", EncodedSlash),
        ("/version%2f..", EncodedSlash),
        ("/api/v1/namespaces/a%252fb", EncodedPercent),
        ("/api/v1/pods/a%00", Control),
        ("/api/v1/pods/a%0d%0aX:", Control),
        ("/api/v1/pods/a%7f", Control),
        ("/api/v1/pods/a\nb", Control),
        ("/api/v1/pods/a b", Control),
        ("/api/v1/pods?x", Control),
        ("/api/v1/pods/%ff", Percent(crate::percent::PercentError::NotUtf8)),
        ("/api/v1/pods/%", Percent(crate::percent::PercentError::Escape)),
        ("/api/v1/pods/%zz", Percent(crate::percent::PercentError::Escape)),
        ("/api/v1/namespaces/n/pods/x/log/y", TrailingSegments),
        ("/api/v1/namespaces/n/status/y", TrailingSegments),
        ("/api/v1/namespaces/a/namespaces/b", NestedNamespace),
        ("/api/v1/namespaces/a/%6eamespaces", NestedNamespace),
        ("/api/v1/watch", Incomplete),
        ("/api/v1/watch/", Incomplete),
        ("/api/v1/proxy/nodes/n", LegacyProxy),
        ("/api/v1/namespaces/n/pods/x/proxy/../y", DotSegment),
        ("/api/v1/namespaces/n/pods/x/proxy/a%2f..%2f..", DotSegment),
        ("/api/v1/namespaces/n/pods/x/proxy/%2e%2e/y", DotSegment),
        ("/api/v1/namespaces/n/pods/x/proxy/..%5cy", DotSegment),
        ("/api/v1/namespaces/n/pods/x/proxy/a%00", Control),
        ("/api/v1/namespaces/n/pods/x/proxy/%f", Percent(crate::percent::PercentError::Escape)),
    ] {
        let refused = RequestInfo::parse(&Method::GET, path, None).map(|info| info.target);
        assert_eq!(refused.unwrap_err(), RequestError::Path(expected), "{path}");
    }
}

#[test]
fn ambiguous_queries_are_refused() {
    for url in [
        "/api/v1/pods?watch=1&watch=0",
        "/api/v1/pods?watch=1&%77atch=0",
        "/api/v1/pods?fieldSelector=a%3Db&fieldSelector=",
        "/api/v1/pods?continue=a&continue=b",
        "/api/v1/pods?labelSelector=a;b",
        "/api/v1/pods?x=%zz",
        "/api/v1/pods?fieldSelector=nonsense",
    ] {
        assert!(parse("GET", url).is_err(), "{url}");
    }
    assert!(parse("DELETE", "/api/v1/pods?labelSelector=a&labelSelector=b").is_err());
    // Below a proxy subresource, the query belongs to the backend.
    assert!(parse("GET", "/api/v1/namespaces/n/pods/x/proxy/?watch=1&watch=0&a;b&%zz").is_ok());
}

#[test]
fn unknown_methods_are_refused() {
    for method in ["OPTIONS", "TRACE", "CONNECT", "BREW", "get"] {
        let error = parse(method, "/api/v1/pods").map(|info| info.target).unwrap_err();
        assert_eq!(error, RequestError::Method, "{method}");
        assert_eq!(Status::from(&error).code, 405);
    }
    for path in ["/version", "/api/v1/namespaces/n/pods/x/log", "/apis/a.b/v1/namespaces/n/pods/x/proxy"] {
        assert_eq!(parse("OPTIONS", path).map(|info| info.target).unwrap_err(), RequestError::Method, "{path}");
    }
    let path = "/api/v1/namespaces/n/services/x/proxy/a";
    assert_eq!(parse("OPTIONS", path).unwrap().resource().map(|request| request.verb().as_str()), Some(""));
    assert_eq!(parse("TRACE", path).map(|info| info.target).unwrap_err(), RequestError::Method);
}

use crate::status::Status;

#[test]
fn refusals_are_bad_requests() {
    let error = parse("GET", "/api//v1").map(|info| info.target).unwrap_err();
    let status = Status::from(&error);
    assert_eq!(
        (status.code, status.message.as_str()),
        (400, "invalid request path: it must not contain an empty segment")
    );
}

#[test]
fn paths_are_built_from_requests() {
    for (url, namespace, new_name, expected) in [
        ("/api/v1/namespaces/a/pods/x", Some("b"), None, "/api/v1/namespaces/b/pods/x"),
        ("/api/v1/namespaces/a/pods/x", Some("b"), Some("y"), "/api/v1/namespaces/b/pods/y"),
        ("/api/v1/namespaces/a/pods/", None, None, "/api/v1/namespaces/a/pods"),
        ("/api/v1/pods", Some("b"), None, "/api/v1/namespaces/b/pods"),
        ("/api/v1/pods", Some("b"), Some("y"), "/api/v1/namespaces/b/pods/y"),
        ("/api/v1/namespaces/a", Some("b"), None, "/api/v1/namespaces/b"),
        ("/api/v1/namespaces/a/finalize", None, Some("b"), "/api/v1/namespaces/b/finalize"),
        ("/api/v1/watch/namespaces/a/pods", Some("b"), None, "/api/v1/watch/namespaces/b/pods"),
        (
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/x",
            None,
            Some("vc:a:x"),
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/vc:a:x",
        ),
        (
            "/api/v1/namespaces/a/services/http:w:80/proxy//x%2Fy/?",
            Some("b"),
            None,
            "/api/v1/namespaces/b/services/http:w:80/proxy//x%2Fy/",
        ),
        ("/api/v1/namespaces/a/services/w/proxy", Some("b"), Some("v w"), "/api/v1/namespaces/b/services/v%20w/proxy"),
        ("/apis/x.io/v1/things/%C3%A9%7E", None, None, "/apis/x.io/v1/things/%C3%A9~"),
    ] {
        let built = resource("GET", url).path_with(namespace.map(name).as_ref(), new_name.map(name).as_ref());
        assert_eq!(built, expected, "{url}");
    }
}

#[test]
fn connect_subresources_are_known() {
    assert!(resource("GET", "/api/v1/namespaces/a/pods/x/exec").is_connect());
    assert!(resource("POST", "/api/v1/nodes/n/proxy/metrics").is_connect());
    assert!(!resource("GET", "/api/v1/namespaces/a/pods/x/log").is_connect());
    assert!(!resource("GET", "/apis/x/v1/namespaces/a/pods/x/exec").is_connect());
    assert!(resource("GET", "/api/v1/namespaces/a/status").is_namespace());
    assert!(!resource("GET", "/api/v1/namespaces").is_namespace());
}

fn segment() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9:._~é*+ -]{1,8}".prop_filter("dots", |text| text != "." && text != "..")
}

proptest! {
    #[test]
    fn a_built_path_parses_to_its_parts(
        group in prop_oneof![Just(String::new()), "[a-z]{1,5}(\\.io)?"],
        first in prop::option::of(segment()),
        second in prop::option::of(segment()),
        subresource in prop::option::of("status|log|proxy|scale"),
        watch_prefix: bool,
        namespace in prop::option::of(segment().prop_filter("subresource", |text| text != "status")),
        new_name in prop::option::of(segment()),
    ) {
        let path = ResourcePath {
            watch_prefix,
            namespace: first.as_deref().map(name),
            name: second.as_deref().map(name),
            subresource: subresource.as_deref().filter(|_| second.is_some()),
            ..ResourcePath::new(&group, "v1", "pods")
        };
        let text = path.to_string();
        let request = resource("GET", &text);
        prop_assert_eq!(request.path(), path);
        let moved = request.path_with(namespace.as_deref().map(name).as_ref(), new_name.as_deref().map(name).as_ref());
        let moved = resource("GET", &moved);
        prop_assert_eq!(moved.namespace(), namespace.as_deref().or(first.as_deref()));
        prop_assert_eq!(moved.path_name(), new_name.as_deref().or(second.as_deref()));
        prop_assert_eq!(moved.subresource(), request.subresource());
        prop_assert_eq!(moved.has_watch_prefix(), watch_prefix);
    }

    #[test]
    fn accepted_paths_can_be_built_again(path in "(/(api|apis|v1|namespaces|watch|proxy|pods|status|x|%2e|%41|\\.|é|a%2fb)?){0,9}") {
        let Ok(info) = RequestInfo::parse(&Method::GET, &path, None) else { return Ok(()) };
        let Some(request) = info.resource() else { return Ok(()) };
        let built = request.path_with(None, None);
        let again = resource("GET", &built);
        prop_assert_eq!(again.path(), request.path());
        prop_assert_eq!(again.verb(), request.verb());
    }

    #[test]
    fn no_text_panics(path in any::<String>(), query in any::<String>()) {
        let _ = RequestInfo::parse(&Method::GET, &path, Some(&query));
        let _ = RequestInfo::parse(&Method::DELETE, &format!("/api/v1/namespaces/{path}"), Some(&query));
    }
}

#[test]
fn responses_that_may_last_are_long_running() {
    for (method, url, lasts) in [
        ("GET", "/api/v1/pods?watch=1", true),
        ("GET", "/api/v1/watch/pods", true),
        ("GET", "/api/v1/namespaces/a/pods/b/log?follow=true", true),
        ("POST", "/api/v1/namespaces/a/pods/b:80/proxy/upload", true),
        ("PUT", "/api/v1/namespaces/a/services/b/proxy/", true),
        ("POST", "/api/v1/namespaces/a/pods/b/exec?command=sh", true),
        ("GET", "/api/v1/pods", false),
        ("POST", "/api/v1/namespaces/a/pods/b/eviction", false),
        ("GET", "/version?watch=1", false),
        ("GET", "/readyz", false),
    ] {
        assert_eq!(parse(method, url).unwrap().is_long_running(), lasts, "{method} {url}");
    }
}

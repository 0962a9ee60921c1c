use http::HeaderValue;

use super::*;

fn read(target: &str, accept: &'static str) -> Result<WatchQuery, Bypass> {
    let mut headers = HeaderMap::new();
    if !accept.is_empty() {
        headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
    }
    WatchQuery::read(&Method::GET, &target.parse().unwrap(), &headers, ClusterId(3))
}

fn read_list(target: &str) -> Result<ListQuery, Bypass> {
    let mut headers = HeaderMap::new();
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    ListQuery::read(&Method::GET, &target.parse().unwrap(), &headers, ClusterId(3))
}

fn state(at_least: u64, initial_events_end: bool) -> Start {
    Start::State { at_least: ResourceVersion::new(at_least), initial_events_end }
}

#[test]
fn a_watch_begins_where_kube_apiserver_begins_it() {
    let after = Start::After(ResourceVersion::new(7));
    let ok = |start| Ok((start, false));
    let newest = |start| Ok((start, true));
    for (query, expected) in [
        ("resourceVersion=7", ok(after)),
        ("resourceVersion=7&allowWatchBookmarks=true&timeoutSeconds=32&timeout=32s", ok(after)),
        ("resourceVersion=0", ok(state(0, false))),
        ("", newest(state(0, false))),
        ("sendInitialEvents=true&resourceVersionMatch=NotOlderThan", newest(state(0, true))),
        ("sendInitialEvents=false&resourceVersionMatch=NotOlderThan", Err(Bypass::Newest)),
        ("sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=0", ok(state(0, true))),
        ("sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=7", ok(state(7, true))),
        ("sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion=0", ok(Start::Now)),
        ("sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion=7", ok(after)),
        // The host refuses these.
        ("sendInitialEvents=true&resourceVersion=7", Err(Bypass::Options)),
        ("sendInitialEvents=true&resourceVersionMatch=Exact&resourceVersion=7", Err(Bypass::Options)),
        ("resourceVersionMatch=NotOlderThan&resourceVersion=7", Err(Bypass::Options)),
        ("resourceVersion=seven", Err(Bypass::Options)),
        ("resourceVersion=7&timeoutSeconds=x", Err(Bypass::Options)),
        ("resourceVersion=7&labelSelector=a%3D%3D%3Db", Err(Bypass::Options)),
        ("resourceVersion=7&limit=5", Err(Bypass::Options)),
        ("resourceVersion=7&pretty=true", Err(Bypass::Options)),
        ("resourceVersion=7&fieldSelector=spec.nodeName%3Dn", Err(Bypass::Selector)),
        ("resourceVersion=7&fieldSelector=metadata.name%3Dn", ok(after)),
    ] {
        let found = read(&format!("/api/v1/pods?watch=true&{query}"), "application/json");
        assert_eq!(found.map(|query| (query.start, query.is_newest)), expected, "{query}");
    }
}

#[test]
fn long_selectors_go_to_the_host() {
    let read = |selector: &str| {
        read(&format!("/api/v1/pods?watch=1&resourceVersion=7&labelSelector={selector}"), "")
            .map(|query| query.selection)
    };
    for (length, expected) in [(MAX_SELECTORS, None), (MAX_SELECTORS + 1, Some(Bypass::Selector))] {
        let selector = "a,".repeat(length / 2) + if length % 2 == 0 { "" } else { "b" };
        let selector = if length % 2 == 0 { selector[..length - 1].to_owned() + "b" } else { selector };
        assert_eq!((selector.len(), read(&selector).err()), (length, expected));
    }
    let keys: Vec<_> = (0..=MAX_REQUIREMENTS).map(|number| format!("k{number}")).collect();
    assert_eq!(read(&keys.join(",")).unwrap_err(), Bypass::Selector);
    let allowed = [&keys[1..], &keys[1..]].concat().join(",");
    assert_eq!(read(&allowed).unwrap().labels.requirements().len(), MAX_REQUIREMENTS, "each requirement once");
}

#[test]
fn only_watches_of_collections_are_answered() {
    for target in [
        "/api/v1/pods?resourceVersion=7",
        "/api/v1/namespaces/a/pods/b?resourceVersion=7",
        "/api/v1/watch/pods?resourceVersion=7",
        "/api/v1/namespaces/a/pods/b/log?watch=true&resourceVersion=7",
        "/healthz?watch=true",
    ] {
        assert_eq!(read(target, "application/json").unwrap_err(), Bypass::Verb, "{target}");
    }
    let head = WatchQuery::read(
        &Method::HEAD,
        &"/api/v1/pods?watch=true&resourceVersion=7".parse().unwrap(),
        &HeaderMap::new(),
        ClusterId(3),
    );
    assert_eq!(head.unwrap_err(), Bypass::Verb);
}

#[test]
fn only_objects_in_json_are_answered() {
    const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
    for (accept, is_answered) in [
        ("application/json", true),
        ("", true),
        ("*/*", true),
        ("application/json;stream=watch", true),
        ("application/json;q=0.5,application/vnd.kubernetes.protobuf", false),
        (TABLE, false),
        ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", false),
        ("application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", false),
        ("application/yaml", false),
    ] {
        let found = read("/api/v1/pods?watch=true&resourceVersion=7", accept);
        assert_eq!(found.map(|_| ()), if is_answered { Ok(()) } else { Err(Bypass::Form) }, "{accept}");
    }
}

#[test]
fn the_selection_is_that_of_the_request() {
    let query = "watch=1&resourceVersion=7&labelSelector=a%3Db&fieldSelector=metadata.name!%3Dx&timeoutSeconds=0";
    let found = read(&format!("/apis/apps/v1/namespaces/ns-ke/deployments?{query}"), "application/json").unwrap();
    assert_eq!(found.selection.cluster, ClusterId(3));
    assert_eq!(found.selection.scope, Scope::Namespaces(vec!["ns-ke".into()]));
    assert_eq!(found.selection.labels.to_string(), "a=b");
    assert_eq!(found.selection.fields.to_string(), "metadata.name!=x");
    assert_eq!((found.bookmarks, found.timeout), (false, None));
    let found = read("/api/v1/pods?watch=1&resourceVersion=7&timeoutSeconds=32&allowWatchBookmarks=1", "").unwrap();
    assert_eq!((found.bookmarks, found.timeout), (true, Some(Duration::from_secs(32))));
    assert_eq!(found.selection.scope, Scope::All);
}

/// kube-apiserver answers these from its watch cache, whatever the version of the cache is.
#[test]
fn a_list_is_of_any_version() {
    for (query, expected) in [
        ("resourceVersion=0", Ok(())),
        ("resourceVersion=0&limit=500", Ok(())),
        ("resourceVersion=0&resourceVersionMatch=NotOlderThan&labelSelector=a%3Db&timeoutSeconds=5", Ok(())),
        ("resourceVersion=0&fieldSelector=metadata.name%3Dn", Ok(())),
        ("resourceVersion=0&fieldSelector=spec.nodeName%3Dn", Err(Bypass::Selector)),
        ("resourceVersion=0&continue=x", Err(Bypass::Options)),
        ("resourceVersion=0&limit=", Ok(())),
        ("resourceVersion=0&limit=x", Err(Bypass::Options)),
        ("resourceVersion=0&limit=-1", Err(Bypass::Options)),
        ("resourceVersion=0&timeout=5s", Err(Bypass::Options)),
        ("resourceVersion=0&pretty=true", Err(Bypass::Options)),
        ("resourceVersion=0&sendInitialEvents=true", Err(Bypass::Options)),
        ("resourceVersion=0&resourceVersionMatch=Exact", Err(Bypass::Options)),
        ("resourceVersion=00", Err(Bypass::Options)),
        ("resourceVersion=7", Err(Bypass::Options)),
        ("limit=500", Err(Bypass::Options)),
        ("", Err(Bypass::Options)),
        ("watch=true&resourceVersion=0", Err(Bypass::Verb)),
    ] {
        assert_eq!(read_list(&format!("/api/v1/pods?{query}")).map(|_| ()), expected, "{query}");
    }
    for (query, expected) in
        [("a=b&resourceVersion=0", true), ("resourceVersion=00", false), ("", false), ("resourceVersion=", false)]
    {
        assert_eq!(
            ListQuery::is_of_any_version(&format!("/api/v1/pods?{query}").parse().unwrap()),
            expected,
            "{query}"
        );
    }
    let namespaced = read_list("/api/v1/namespaces/a/pods?resourceVersion=0").unwrap();
    assert_eq!(namespaced.selection.scope, Scope::Namespaces(vec!["a".into()]));
    for target in
        ["/api/v1/namespaces/a/pods/b", "/api/v1/watch/pods", "/apis/apps/v1/namespaces/a/deployments/b/scale"]
    {
        assert_eq!(read_list(&format!("{target}?resourceVersion=0")).unwrap_err(), Bypass::Verb, "{target}");
    }
}

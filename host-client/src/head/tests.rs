use ops::secret::Secret;

use super::*;

fn address(text: &str) -> Address {
    text.parse().unwrap()
}

fn parts(request: request::Builder) -> request::Parts {
    request.body(()).unwrap().into_parts().0
}

#[test]
fn the_credential_and_the_authority_are_ours() {
    let request = Request::get("/api/v1/pods?limit=5")
        .header(AUTHORIZATION, "Bearer theirs")
        .header(HOST, "ke-beijing.atoll.internal")
        .header(CONNECTION, "close, x-private")
        .header("x-private", "1")
        .header("impersonate-user", "vc:a:edge")
        .header(TE, "gzip");
    let head = Head::plain(parts(request), &Kind::Empty).unwrap();
    let bearer = Bearer::read(&Secret::from("ours")).unwrap();
    let sent = head.http2(&address("https://10.0.0.1:6443"), Some(&bearer)).unwrap();
    assert_eq!(sent.uri(), "https://10.0.0.1:6443/api/v1/pods?limit=5");
    let names: Vec<_> = sent.headers().keys().map(HeaderName::as_str).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert_eq!(sent.headers()[AUTHORIZATION], "Bearer ours");
    assert_eq!(sent.headers()["impersonate-user"], "vc:a:edge");
    let anonymous = head.http2(&address("https://10.0.0.1"), None).unwrap();
    assert!(!anonymous.headers().contains_key(AUTHORIZATION));
}

#[test]
fn the_length_is_that_of_the_body_that_is_sent() {
    let with = |kind: &Kind| {
        let request = Request::post("/x").header(CONTENT_LENGTH, "7");
        let head = Head::plain(parts(request), kind).unwrap();
        head.headers.get(CONTENT_LENGTH).map(|value| value.to_str().unwrap().to_owned())
    };
    assert_eq!(with(&Kind::Empty), None);
    assert_eq!(with(&Kind::Full("abc".into())).as_deref(), Some("3"));
    assert_eq!(with(&Kind::Spent).as_deref(), Some("7"));
}

#[test]
fn an_upgrade_keeps_its_protocols() {
    let request = Request::get("/api/v1/namespaces/a/pods/b/exec?command=sh")
        .header(CONNECTION, "upgrade")
        .header(UPGRADE, "SPDY/3.1")
        .header("sec-websocket-key", "k");
    let head = Head::upgrade(parts(request)).unwrap();
    let sent = head.http1(&address("https://lb:8443/k8s/c-1"), None).unwrap();
    assert_eq!(sent.uri(), "/k8s/c-1/api/v1/namespaces/a/pods/b/exec?command=sh");
    assert_eq!(sent.headers()[HOST], "lb:8443");
    assert_eq!(sent.headers()[UPGRADE], "SPDY/3.1");
    assert_eq!(sent.headers()[CONNECTION], "Upgrade");
    assert_eq!(sent.headers()["sec-websocket-key"], "k");
}

#[test]
fn an_invalid_path_is_refused() {
    for target in ["*", "example.com:443"] {
        let request = Request::options(target);
        assert_eq!(Head::plain(parts(request), &Kind::Empty).unwrap_err(), InvalidRequest::Target);
    }
}

use std::pin::pin;

use http_body_util::BodyExt as _;
use serde_json::json;

use host_client::{empty, full};

use super::*;
use crate::expected::expect;

async fn send(host: &Host, request: http::request::Builder, body: Option<&str>) -> (u16, String) {
    let body = body.map_or_else(empty, |body| full(body.to_owned()));
    let response = host.send(request.body(body).unwrap()).await.unwrap();
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (code, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn the_expected_requests_get_their_responses() {
    let script = Script::new();
    let host = script.host();
    script
        .on(expect("GET", "/api/v1/pods?labelSelector=a=b").as_agent().bodiless(), Reply::json(200, &json!([1, 2])))
        .on(
            expect("POST", "/api/v1/pods").as_user("jane").in_groups(&["b", "a"]).with("/spec/nodeName", "n"),
            Reply::json(201, &json!({"a": "b"})).in_chunks(3),
        );
    let first = send(&host, Request::get("/api/v1/pods?labelSelector=a%3Db"), None).await;
    assert_eq!(first, (200, "[1,2]".to_owned()));
    let post = Request::post("/api/v1/pods").header("impersonate-user", "jane");
    let post = post.header("impersonate-group", "a").header("impersonate-group", "b");
    assert_eq!(send(&host, post, Some(r#"{"spec":{"nodeName":"n"}}"#)).await, (201, r#"{"a":"b"}"#.to_owned()));
    script.check();
    assert_eq!(script.transcript(), ["GET /api/v1/pods?labelSelector=a%3Db", "POST /api/v1/pods as jane"]);
}

/// The report of a script, which is also the message of its failure.
fn report(script: &Script) -> String {
    let mut state = script.lock();
    let report = state.report().unwrap_or_default();
    *state = State::default();
    report
}

#[tokio::test]
async fn an_unexpected_request_is_reported_with_what_differs() {
    let script = Script::new();
    let host = script.host();
    script.on(expect("PUT", "/a").as_agent().with("/x", 1).without_header("if-match"), Reply::empty(200));
    let put = Request::put("/a").header("impersonate-user", "jane").header("if-match", "1");
    assert_eq!(send(&host, put, Some(r#"{"x":2}"#)).await.0, 501);
    let first = report(&script);
    for part in [
        "did not expect:\n  PUT /a as jane",
        "it expected:\n  PUT /a as the agent",
        "identity: expected the agent, got jane",
        "body at /x: expected 1, got 2",
        r#"header if-match: expected [], got ["1"]"#,
        "did not get the request that it expected:\n  PUT /a as the agent",
    ] {
        assert!(first.contains(part), "{first}");
    }
    assert_eq!(send(&host, Request::get("/b"), None).await.0, 501);
    assert!(report(&script).contains("GET /b\nit expected nothing more"));
}

#[tokio::test]
async fn standing_answers_do_not_count() {
    let script = Script::new();
    let host = script.host();
    script.always(|received| (received.path() == "/a").then(|| Reply::empty(200)));
    script.on(expect("GET", "/b"), Reply::empty(200)).on(expect("GET", "/a"), Reply::empty(410));
    let mut codes = Vec::new();
    for path in ["/a", "/b", "/a", "/a"] {
        codes.push(send(&host, Request::get(path), None).await.0);
    }
    assert_eq!(codes, [200, 200, 410, 200]);
}

#[tokio::test]
async fn a_body_can_break() {
    let script = Script::new();
    script.on(expect("GET", "/a"), Reply::json(200, &json!({"a": 1})).broken());
    let response = script.host().send(Request::get("/a").body(empty()).unwrap()).await.unwrap();
    assert!(response.into_body().collect().await.is_err());
}

#[tokio::test]
async fn a_request_without_a_response_waits_until_it_is_abandoned() {
    let script = Script::new();
    script.on(expect("GET", "/a"), Reply::never());
    let host = script.host();
    {
        let mut waiting = pin!(host.send(Request::get("/a").body(empty()).unwrap()));
        tokio::select! {
            _ = &mut waiting => panic!("it got a response"),
            () = script.until_unanswered(1) => {}
        }
    }
    script.until_unanswered(0).await;
}

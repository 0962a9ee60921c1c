//! Requests that switch protocols: `exec` and similar. The host gets them over HTTP/1.1, as the caller.

use protocol::ClusterName;
use test_host::{Expected, Reply, expect};

use crate::tests::agent::ClientRequest;
use crate::tests::scripted::Scripted;
use virtual_cluster::share::in_flight::Kind;

const EXEC: &str = "/api/v1/namespaces/edge/pods/a/exec?command=sh&stdin=true";

fn request(target: &str) -> ClientRequest {
    let request = ClientRequest::get(target).header("sec-websocket-version", "13").header("sec-websocket-key", "a2V5");
    request.header("sec-websocket-protocol", "v5.channel.k8s.io")
}

fn host() -> Expected {
    let host = expect("GET", "/api/v1/namespaces/edge-ke/pods/a/exec?command=sh&stdin=true").as_user("vc:ke:admin");
    host.with_header("upgrade", "websocket").with_header("connection", "Upgrade")
}

#[tokio::test]
async fn bytes_pass_in_both_directions() {
    let agent = Scripted::new().await;
    let switched = Reply::switch("websocket").with_header("sec-websocket-accept", "YWNjZXB0");
    let host =
        host().with_header("sec-websocket-key", "a2V5").with_header("sec-websocket-protocol", "v5.channel.k8s.io");
    agent.on(host.without_header("x-atoll-method").without_header("x-atoll-user"), switched);
    let mut exec = agent.agent.upgrade(request(EXEC), "websocket").await;
    assert_eq!((exec.code, &exec.headers["sec-websocket-accept"]), (200, &"YWNjZXB0".parse().unwrap()));
    assert!(!exec.headers.contains_key("upgrade") && !exec.headers.contains_key("connection"));
    for bytes in [&b"ls\n"[..], b"edge-ke\n", b"\0\xff"] {
        assert_eq!(exec.echoed(bytes).await, bytes, "they are not mapped");
    }
    agent.check();
}

/// The token of a browser is one of the WebSocket protocols (`websocketauth` in apiserver's `pkg/authentication`).
#[tokio::test]
async fn a_token_among_the_protocols_does_not_reach_the_host() {
    let agent = Scripted::new().await;
    let status = serde_json::json!({"authenticated": true, "user": {"username": "system:serviceaccount:edge-ke:sa",
        "uid": "u", "groups": ["system:serviceaccounts", "system:serviceaccounts:edge-ke", "system:authenticated"]}});
    let review = expect("POST", "/apis/authentication.k8s.io/v1/tokenreviews").as_agent().with("/spec/token", "token");
    agent.on(review, Reply::json(201, &serde_json::json!({"status": status})));
    let host = expect("GET", "/api/v1/namespaces/edge-ke/pods/a/exec?command=sh&stdin=true");
    let host = host.as_user("system:serviceaccount:edge-ke:sa").without_header("authorization");
    agent.on(host.with_header("sec-websocket-protocol", "v5.channel.k8s.io"), Reply::switch("websocket"));
    let protocols = "base64url.bearer.authorization.k8s.io.dG9rZW4, v5.channel.k8s.io";
    let exec = request(EXEC).by_nobody().header("sec-websocket-protocol", protocols);
    assert_eq!(agent.agent.upgrade(exec, "websocket").await.code, 200);
    agent.check();
}

#[tokio::test]
async fn a_refusal_of_the_host_is_in_virtual_names() {
    let agent = Scripted::new().await;
    let message = "pods \"a\" is forbidden: User \"vc:ke:admin\" cannot create resource \"pods/exec\" in API group \"\" in the \
                   namespace \"edge-ke\"";
    agent.on(host(), Reply::status(403, "Forbidden", message));
    let mut exec = agent.agent.upgrade(request(EXEC), "websocket").await;
    assert_eq!(exec.code, 403);
    let body = String::from_utf8(exec.rest().await.to_vec()).unwrap();
    assert!(body.contains("User \\\"admin\\\"") && body.contains("namespace \\\"edge\\\""), "{body}");
    agent.check();
}

/// `StreamObject` in apiserver's `endpoints/handlers/responsewriters/writers.go`. The host reviews the right to read the log.
#[tokio::test]
async fn a_log_is_read_over_a_websocket() {
    let agent = Scripted::new().await;
    let log = || request("/api/v1/namespaces/edge/pods/a/log?follow=1");
    let host = || {
        let host = expect("GET", "/api/v1/namespaces/edge-ke/pods/a/log?follow=1").as_user("vc:ke:admin");
        host.with_header("upgrade", "websocket").with_header("sec-websocket-key", "a2V5")
    };
    agent.on(host(), Reply::switch("websocket"));
    let mut open = agent.agent.upgrade(log(), "websocket").await;
    assert_eq!(open.code, 200);
    assert_eq!(open.echoed(b"edge-ke\n").await, "edge-ke\n", "it is not mapped");
    agent.on(host(), Reply::status(403, "Forbidden", "pods \"a\" is forbidden in the namespace \"edge-ke\""));
    let mut refused = agent.agent.upgrade(log(), "websocket").await;
    assert_eq!(refused.code, 403);
    assert!(!String::from_utf8_lossy(&refused.rest().await).contains("edge-ke"));
    agent.check();
    let mut watch = agent.agent.upgrade(request("/api/v1/pods?watch=1"), "websocket").await;
    let message = String::from_utf8(watch.rest().await.to_vec()).unwrap();
    assert!(watch.code == 400 && message.contains("a watch is not served over WebSocket"), "{message}");
}

/// The stream has another status, because 200 would mean that the protocol was switched.
#[tokio::test]
async fn an_upgrade_that_is_ignored_keeps_its_status() {
    let agent = Scripted::new().await;
    let path = "/api/v1/namespaces/edge/services/web/proxy/x";
    for (code, sent, written) in [(200, 400, Some("200")), (404, 404, None)] {
        let reply = Reply::empty(code).with_header("x-atoll-status", "299").with_body("plain");
        agent.on(expect("GET", "/api/v1/namespaces/edge-ke/services/web/proxy/x"), reply);
        let mut plain = agent.agent.upgrade(request(path), "websocket").await;
        let status = plain.headers.get("x-atoll-status").map(|value| value.to_str().unwrap().to_owned());
        assert_eq!((plain.code, status.as_deref()), (sent, written));
        assert_eq!(plain.rest().await, "plain");
    }
    agent.check();
}

/// Only some requests switch protocols, and only for callers that the agent knows.
#[tokio::test(start_paused = true)]
async fn other_upgrades_are_refused() {
    let agent = Scripted::new().await;
    for (request, code) in [
        (request("/api/v1/namespaces/edge/configmaps?watch=1"), 400),
        (request(EXEC).by_nobody(), 403),
        (request("/metrics"), 403),
        (request("/api/v1/namespaces/operators/pods/a/exec"), 404),
        (request("/api/v1/nodes/beijing-1/proxy/x"), 403),
        (request(EXEC).of("other"), 503),
    ] {
        let described = format!("{request:?}");
        assert_eq!(agent.agent.upgrade(request, "websocket").await.code, code, "{described}");
    }
    agent.denying(|_| true);
    let exec = agent.agent.upgrade(request("/api/v1/namespaces/edge/pods/a/proxy/x").by("eve"), "websocket").await;
    assert_eq!(exec.code, 403, "the right to the server of a pod is reviewed first");
    agent.check();
}

/// What an upgrade sends before the host answers is charged like the head of any other request.
#[tokio::test]
async fn a_long_head_is_refused_while_the_cluster_holds_too_many() {
    let agent = Scripted::new().await;
    let cluster = agent.clusters.get(&"ke".parse::<ClusterName>().unwrap()).unwrap();
    let heads = &cluster.lasting.memory.heads;
    let held = heads.reserve(16 << 20).expect("the share of one cluster");
    let long = || request(EXEC).header("user-agent", &"x".repeat(5000));
    let mut refused = agent.agent.upgrade(long(), "websocket").await;
    assert_eq!((refused.code, &refused.headers["retry-after"]), (429, &"1".parse().unwrap()));
    let body = String::from_utf8(refused.rest().await.to_vec()).unwrap();
    assert!(body.contains("TooManyRequests"), "{body}");
    agent.on(host(), Reply::switch("websocket"));
    assert_eq!(agent.agent.upgrade(request(EXEC), "websocket").await.code, 200, "a short one is not charged");
    drop(held);
    agent.on(host(), Reply::switch("websocket"));
    let open = agent.agent.upgrade(long(), "websocket").await;
    assert_eq!(open.code, 200);
    assert_eq!(heads.held(), 0, "the charge ends when the host has answered");
    agent.check();
}

/// A cluster has few sessions. A client with a made-up token must not use them up.
#[tokio::test(start_paused = true)]
async fn an_upgrade_occupies_a_session_once_its_caller_is_authorised() {
    let agent = Scripted::new().await;
    let cluster = &agent.clusters.get(&"ke".parse::<ClusterName>().unwrap()).unwrap();
    let fill = |kind| std::iter::from_fn(move || cluster.lasting.in_flight.admit(kind)).take(10_000);
    let count = |kind| fill(kind).collect::<Vec<_>>().len();
    let (sessions, short) = (count(Kind::Session), count(Kind::Short));
    agent.on(expect("POST", "/apis/authentication.k8s.io/v1/tokenreviews"), Reply::never());
    let unproven = request(EXEC).by_nobody().header("authorization", "Bearer made-up");
    let unproven = agent.agent.begin_upgrade(unproven, "websocket").await;
    agent.until_unanswered(1).await;
    assert_eq!((count(Kind::Session), count(Kind::Short)), (sessions, short - 1));
    agent.on(host(), Reply::switch("websocket"));
    let open = agent.agent.upgrade(request(EXEC), "websocket").await;
    assert_eq!((open.code, count(Kind::Session), count(Kind::Short)), (200, sessions - 1, short - 1));
    unproven.reset();
    agent.check();
}

//! The facts for the audit log of the proxy-server: only if it asks, and in virtual names.

use http::{HeaderMap, header};
use protocol::audit::{self, ObjectFacts, UserInfo};
use serde_json::{Value, json};
use test_host::{Reply, expect};

use crate::tests::agent::ClientRequest;
use crate::tests::scripted::Scripted;

const MAPS: &str = "/api/v1/namespaces/edge/configmaps";
const HOST_MAPS: &str = "/api/v1/namespaces/edge-ke/configmaps";
const ROBOT: &str = "system:serviceaccount:edge-ke:robot";

fn facts(headers: &HeaderMap) -> (UserInfo, Option<ObjectFacts>, Option<Value>) {
    let user = audit::read(headers, &audit::USER).unwrap();
    (user, audit::read(headers, &audit::OBJECT), audit::read(headers, &audit::STATUS))
}

#[tokio::test]
async fn the_user_of_a_token_the_object_and_the_failure_are_told() {
    let agent = Scripted::new().await;
    let status = json!({"authenticated": true, "user": {"username": ROBOT, "uid": "u", "groups": ["system:serviceaccounts",
        "system:serviceaccounts:edge-ke", "system:authenticated"], "extra": {"key": ["a", "b"]}}});
    let review = expect("POST", "/apis/authentication.k8s.io/v1/tokenreviews").as_agent();
    agent.on(review, Reply::json(201, &json!({"status": status})));
    let map = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a", "resourceVersion": "7"}});
    let host = expect("POST", HOST_MAPS).as_user(ROBOT).without_header("x-atoll-audit");
    let message = format!("configmaps is forbidden: User \"{ROBOT}\" cannot create it in the namespace \"edge-ke\"");
    agent.on(host, Reply::status(403, "Forbidden", &message));
    let request = ClientRequest::post(MAPS, &map).by_nobody().header("authorization", "Bearer t");
    let response = agent.agent.send(request.header("x-atoll-audit", "1")).await;
    let (user, object, status) = facts(&response.headers);
    assert_eq!((user.username.as_str(), user.uid.as_str()), ("system:serviceaccount:edge:robot", "u"));
    assert_eq!(user.groups, ["system:serviceaccounts", "system:serviceaccounts:edge", "system:authenticated"]);
    assert_eq!(user.extra["key"], ["a", "b"]);
    let (name, resource_version) = ("a".into(), "7".into());
    assert_eq!(object, Some(ObjectFacts { name, resource_version, ..ObjectFacts::default() }));
    let (code, reason, message) = response.refusal();
    let status = status.unwrap();
    assert_eq!(
        (&status["code"], &status["reason"], &status["message"]),
        (&code.into(), &reason.into(), &json!(message))
    );
    assert!(!format!("{:?}", response.headers).contains("edge-ke"));
}

#[tokio::test]
async fn a_refusal_of_the_agent_is_told() {
    let agent = Scripted::new().await;
    let request = || ClientRequest::get("/metrics");
    let response = agent.agent.send(request().header("x-atoll-audit", "1")).await;
    let (user, object, status) = facts(&response.headers);
    assert_eq!((user.groups, object), (["system:masters", "system:authenticated"].map(str::to_owned).to_vec(), None));
    assert_eq!(status.unwrap()["message"], response.json()["message"]);
    assert_eq!(response.headers[header::CONTENT_TYPE], "application/json");
    let unasked = agent.agent.send(request()).await;
    assert!(unasked.headers.keys().all(|name| !name.as_str().starts_with("x-atoll-audit")), "{:?}", unasked.headers);
}

//! Reviews of clients: names are mapped in both directions, and the agent knows some answers better.

use serde_json::{Value, json};
use test_host::{Reply, expect};

use crate::tests::agent::ClientRequest;
use crate::tests::scripted::Scripted;

const AUTHZ: &str = "/apis/authorization.k8s.io/v1";
const AUTHN: &str = "/apis/authentication.k8s.io/v1";

fn review(kind: &str, spec: &Value) -> Value {
    json!({"kind": kind, "apiVersion": "authorization.k8s.io/v1", "spec": spec})
}

/// The host's answer to a review.
fn answered(review: &Value, allowed: bool) -> Reply {
    let mut response = review.clone();
    response["status"] = json!({"allowed": allowed});
    Reply::json(201, &response)
}

#[tokio::test]
async fn a_caller_asks_about_itself_as_itself() {
    let agent = Scripted::new().await;
    for (namespace, host) in [("edge", "edge-ke"), ("", "atoll-root-ke")] {
        let attributes = |namespace: &str| json!({"resourceAttributes": {"verb": "get", "resource": "pods", "namespace": namespace}});
        let object = review("SelfSubjectAccessReview", &attributes(namespace));
        let expected = expect("POST", &format!("{AUTHZ}/selfsubjectaccessreviews")).as_user("vc:ke:admin");
        let expected = expected.with("/spec/resourceAttributes/namespace", host);
        let mapped = review("SelfSubjectAccessReview", &attributes(host));
        let request = ClientRequest::post(&format!("{AUTHZ}/selfsubjectaccessreviews"), &object);
        let response = agent.exchange(request, expected, answered(&mapped, true)).await.expect(201).json();
        let shown = &response["spec"]["resourceAttributes"]["namespace"];
        assert_eq!((shown.as_str().unwrap_or_default(), &response["status"]["allowed"]), (namespace, &json!(true)));
    }
}

#[tokio::test]
async fn others_are_asked_about_by_the_agent() {
    let agent = Scripted::new().await;
    let spec = |user: &str, group: &str, namespace: &str| {
        json!({"user": user, "groups": [group],
            "resourceAttributes": {"verb": "get", "resource": "pods", "namespace": namespace}})
    };
    let expected = expect("POST", &format!("{AUTHZ}/subjectaccessreviews")).as_agent().with("/spec/user", "vc:ke:jane");
    let expected = expected.with("/spec/groups/0", "vc:ke:dev").with("/spec/resourceAttributes/namespace", "edge-ke");
    let mapped = review("SubjectAccessReview", &spec("vc:ke:jane", "vc:ke:dev", "edge-ke"));
    let request = ClientRequest::post(
        &format!("{AUTHZ}/subjectaccessreviews"),
        &review("SubjectAccessReview", &spec("jane", "dev", "edge")),
    );
    let response = agent.exchange(request, expected, answered(&mapped, true)).await.expect(201).json();
    assert_eq!((&response["spec"]["user"], &response["status"]["allowed"]), (&json!("jane"), &json!(true)));
    let received = agent.transcript();
    assert_eq!(received[0], "review vc:ke:admin: create subjectaccessreviews.authorization.k8s.io in atoll-root-ke");
}

/// A role may allow what a virtual cluster refuses regardless of roles.
#[tokio::test]
async fn a_review_does_not_allow_what_is_refused_later() {
    let agent = Scripted::new().await;
    for (verb, group, resource, allowed) in [
        ("delete", "", "nodes", false),
        ("list", "", "nodes", true),
        ("create", "admissionregistration.k8s.io", "validatingwebhookconfigurations", false),
        ("create", "example.com", "gadgets", false),
        ("create", "", "namespaces", true),
    ] {
        let spec = json!({"resourceAttributes": {"verb": verb, "group": group, "resource": resource}});
        let object = review("SelfSubjectAccessReview", &spec);
        let expected = expect("POST", &format!("{AUTHZ}/selfsubjectaccessreviews")).as_user("vc:ke:admin");
        let request = ClientRequest::post(&format!("{AUTHZ}/selfsubjectaccessreviews"), &object);
        let response = agent.exchange(request, expected, answered(&object, true)).await.expect(201).json();
        assert_eq!(response["status"]["allowed"], allowed, "{verb} {resource}: {response}");
    }
}

/// The host cannot say it: its roles know nothing of the cluster's paths.
#[tokio::test]
async fn the_agent_answers_about_paths() {
    let agent = Scripted::new().await;
    for (path, allowed) in [("/metrics", false), ("/openid/v1/jwks", true)] {
        let object =
            review("SelfSubjectAccessReview", &json!({"nonResourceAttributes": {"path": path, "verb": "get"}}));
        let expected = expect("POST", &format!("{AUTHZ}/selfsubjectaccessreviews")).as_user("vc:ke:admin");
        let request = ClientRequest::post(&format!("{AUTHZ}/selfsubjectaccessreviews"), &object);
        let response = agent.exchange(request, expected, answered(&object, !allowed)).await.expect(201).json();
        assert_eq!(response["status"]["allowed"], allowed, "{path}: {response}");
    }
}

/// A token of another cluster's service account is no token here.
#[tokio::test]
async fn a_token_belongs_to_one_cluster() {
    let agent = Scripted::new().await;
    for (namespace, is_own) in [("edge-ke", true), ("edge-hz", false)] {
        let object = json!({"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1", "spec": {"token": "t"}});
        let mut response = object.clone();
        response["status"] = json!({"authenticated": true, "user": {
            "username": format!("system:serviceaccount:{namespace}:sa"), "uid": "u",
            "groups": ["system:serviceaccounts", format!("system:serviceaccounts:{namespace}"), "system:authenticated"],
        }});
        let expected = expect("POST", &format!("{AUTHN}/tokenreviews")).as_agent().with("/spec/token", "t");
        let request = ClientRequest::post(&format!("{AUTHN}/tokenreviews"), &object);
        let status =
            agent.exchange(request, expected, Reply::json(201, &response)).await.expect(201).json()["status"].clone();
        assert_eq!(status["authenticated"] == true, is_own, "{status}");
        if is_own {
            assert_eq!(status["user"]["username"], "system:serviceaccount:edge:sa");
        } else {
            assert!(!status.to_string().contains("edge-hz"), "{status}");
        }
    }
}

#[tokio::test]
async fn a_local_review_is_in_the_namespace_of_the_host() {
    let agent = Scripted::new().await;
    let spec = |namespace: &str| json!({"user": "jane", "resourceAttributes": {"verb": "get", "resource": "pods", "namespace": namespace}});
    let expected =
        expect("POST", &format!("{AUTHZ}/namespaces/edge-ke/localsubjectaccessreviews")).as_user("vc:ke:admin");
    let expected = expected.with("/spec/resourceAttributes/namespace", "edge-ke").with("/spec/user", "vc:ke:jane");
    let request = ClientRequest::post(
        &format!("{AUTHZ}/namespaces/edge/localsubjectaccessreviews"),
        &review("LocalSubjectAccessReview", &spec("edge")),
    );
    agent
        .exchange(request, expected, answered(&review("LocalSubjectAccessReview", &spec("edge-ke")), true))
        .await
        .expect(201);
}

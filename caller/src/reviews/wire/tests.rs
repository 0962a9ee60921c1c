use http::HeaderMap;
use serde_json::{Value, json};

use super::*;
use crate::authn::{Authenticator, KnownCallers};
use crate::testing::{FakeHost, ke};

fn value(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

#[tokio::test]
async fn a_review_contains_all_attributes_of_the_user() {
    let extra = BTreeMap::from([("a/b".to_owned(), vec!["c".to_owned()])]);
    let user = TokenUser {
        name: "system:serviceaccount:edge-ke:bob".into(),
        uid: "u".into(),
        groups: vec!["system:serviceaccounts".into()],
        extra,
    };
    let fake = FakeHost { tokens: [("t", user)].into(), ..FakeHost::default() };
    let mut headers = HeaderMap::new();
    headers.insert("authorization", "Bearer t".parse().unwrap());
    let caller = Authenticator::new(Arc::new(fake))
        .authenticate(&ke(), &KnownCallers::new(ke().cluster().clone()), None, &mut headers)
        .await
        .unwrap();
    let namespace = "edge-ke".parse().unwrap();
    let attributes = Attributes {
        verb: "get",
        group: "apps",
        version: "v1",
        resource: "deployments",
        subresource: "scale",
        name: "d",
        namespace: &namespace,
    };
    assert_eq!(
        value(&access_review(&caller.host, &attributes)),
        json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": "system:serviceaccount:edge-ke:bob",
                "uid": "u",
                "groups": [
                    "vc:ke:system:serviceaccounts",
                    "system:serviceaccounts",
                    "vc:ke:system:authenticated",
                    "system:authenticated",
                ],
                "extra": {"a/b": ["c"]},
                "resourceAttributes": {
                    "namespace": "edge-ke", "verb": "get", "group": "apps", "version": "v1",
                    "resource": "deployments", "subresource": "scale", "name": "d",
                },
            },
        })
    );
}

#[test]
fn the_other_questions() {
    let token = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": "a\"b"}});
    assert_eq!(value(&token_review("a\"b")), token);
    let namespace = "edge-ke".parse().unwrap();
    assert_eq!(value(&rules_review(&namespace))["spec"], json!({"namespace": "edge-ke"}));
}

#[test]
fn cached_reasons_are_truncated() {
    for (text, length) in
        [("short", 5), (&*"x".repeat(1 << 20), MAX_REASON), (&*"xy\u{20ac}".repeat(400), MAX_REASON - 2)]
    {
        for key in ["reason", "evaluationError"] {
            let answer = json!({"status": {"allowed": false, key: text}}).to_string();
            let reason = decision(answer.as_bytes()).unwrap().reason;
            assert!(text.starts_with(&*reason) && reason.len() == length, "{}", reason.len());
        }
    }
}

#[test]
fn cached_rules_are_bounded() {
    let rules_of = |rule: Value, count: usize| {
        let answer = json!({"status": {"nonResourceRules": vec![rule; count], "resourceRules": [{"verbs": ["get"]}]}});
        rules(answer.to_string().as_bytes()).unwrap()
    };
    let one = json!({"verbs": ["get"], "nonResourceURLs": ["/a"]});
    assert_eq!(rules_of(one.clone(), 5000).non_resource_rules.len(), 5000);
    let most = rules_of(one, 5001);
    assert!(most.non_resource_rules.len() == 5000 && most.incomplete && most.allow_path("get", "/a"));
    let long = "x".repeat(1 << 20);
    let none = rules_of(json!({"verbs": [long], "nonResourceURLs": ["/a"]}), 1);
    assert!(none.non_resource_rules.is_empty() && none.incomplete);
}

#[test]
fn only_allowed_without_denied_is_allowed() {
    for (status, allowed) in [
        (r#"{"allowed": true}"#, true),
        (r#"{"allowed": true, "denied": true}"#, false),
        (r#"{"allowed": false, "reason": "because"}"#, false),
        ("{}", false),
    ] {
        let answer = format!(r#"{{"kind": "SubjectAccessReview", "status": {status}}}"#);
        assert_eq!(decision(answer.as_bytes()).unwrap().allowed, allowed, "{status}");
    }
    for bad in ["", "{}", "[]", r#"{"status": {"allowed": "true"}}"#, r#"{"status": null}"#] {
        assert!(decision(bad.as_bytes()).is_err(), "{bad}");
    }
}

#[test]
fn only_an_authenticated_user_with_a_name_is_accepted() {
    for (status, name) in [
        (r#"{"authenticated": true, "user": {"username": "eve", "groups": null, "extra": null}}"#, Some("eve")),
        (r#"{"authenticated": false, "user": {"username": "eve"}}"#, None),
        (r#"{"authenticated": true, "user": {"username": ""}}"#, None),
        (r#"{"authenticated": true, "user": {}}"#, None),
        (r#"{"error": "expired", "user": {}}"#, None),
    ] {
        let answer = format!(r#"{{"status": {status}}}"#);
        let user = token_user(answer.as_bytes()).unwrap();
        assert_eq!(user.as_ref().map(|user| &*user.name), name, "{status}");
    }
}

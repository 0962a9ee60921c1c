//! Whether the host allows everybody what nobody should be allowed.
//!
//! Bindings are one way to allow; another authorizer of the host may know others (`--authorization-mode`).

use anyhow::Context as _;
use ops::config::Place;
use proxy_agent::host::api::Api;
use serde_json::{Value, json};

use crate::check::weakness::{Check, Weakness};

const REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

/// Callers with no right of their own, and who is like them.
fn nobodies() -> [(&'static str, Value); 2] {
    [
        (
            "every service account of every virtual cluster",
            json!({
                "user": "system:serviceaccount:atoll-check:nobody",
                "groups": ["system:serviceaccounts", "system:serviceaccounts:atoll-check", "system:authenticated"],
            }),
        ),
        (
            "whoever reaches the host's API server without credentials",
            json!({"user": "system:anonymous", "groups": ["system:unauthenticated"]}),
        ),
    ]
}

/// What would be the end of all isolation, in words and as attributes of a review.
fn rights() -> [(&'static str, Value); 3] {
    [
        ("read all Secrets", json!({"verb": "list", "resource": "secrets"})),
        ("make pods anywhere", json!({"verb": "create", "resource": "pods"})),
        ("label namespaces", json!({"verb": "update", "resource": "namespaces"})),
    ]
}

/// Asks the host for each of them.
pub(super) async fn weaknesses(api: &Api, place: Option<Place>) -> anyhow::Result<Vec<Weakness>> {
    let mut found = Vec::new();
    for (who, caller) in nobodies() {
        let mut allowed = Vec::new();
        for (right, attributes) in rights() {
            let mut spec = caller.clone();
            spec["resourceAttributes"] = attributes;
            let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec});
            if api.create(REVIEWS, &review).await.context("a review")?["status"]["allowed"] == true {
                allowed.push(right);
            }
        }
        if !allowed.is_empty() {
            found.push(Weakness::at(
                Check::Authorizer,
                place,
                format_args!("host: it lets {who} {}", allowed.join(", ")),
                "let kube-apiserver run with --authorization-mode=Node,RBAC, and look for bindings and for other \
                 authorizers that allow it",
            ));
        }
    }
    Ok(found)
}

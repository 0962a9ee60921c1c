//! Whether the host grants everybody rights that only its administrators should have.
//!
//! Access reviews find more than bindings do: another authorizer of the host may grant rights (`--authorization-mode`).

use anyhow::Context as _;
use host_client::api::Api;
use ops::config::Location;
use serde_json::{Value, json};

use crate::check::weakness::{Check, Weakness};

const REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

/// Callers without any right of their own, and which callers are treated like them.
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
            "anybody who reaches the host's API server without credentials",
            json!({"user": "system:anonymous", "groups": ["system:unauthenticated"]}),
        ),
    ]
}

/// Rights that would break all isolation, as text and as attributes of a review.
fn rights() -> [(&'static str, Value); 3] {
    [
        ("read all Secrets", json!({"verb": "list", "resource": "secrets"})),
        ("create pods anywhere", json!({"verb": "create", "resource": "pods"})),
        ("label namespaces", json!({"verb": "update", "resource": "namespaces"})),
    ]
}

/// Asks the host for a review of each right.
pub(super) async fn weaknesses(api: &Api, location: Option<Location>) -> anyhow::Result<Vec<Weakness>> {
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
                location,
                format_args!("host: it allows {who} to {}", allowed.join(", ")),
                "run kube-apiserver with --authorization-mode=Node,RBAC, and find the binding or the other authorizer \
                 that allows it",
            ));
        }
    }
    Ok(found)
}

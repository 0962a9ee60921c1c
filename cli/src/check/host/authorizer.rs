//! Whether the host grants all users rights that only its administrators should have.
//!
//! Access reviews find more than bindings do, because the host can have other authorizers (`--authorization-mode`).

use anyhow::Context as _;
use host_client::api::Api;
use ops::config::Location;
use serde_json::{Value, json};

use crate::check::weakness::{Check, Weakness};

const REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

/// Users without rights of their own, and the description of the users that have the same groups.
fn unprivileged_users() -> [(&'static str, Value); 2] {
    [
        (
            "every service account of every virtual cluster",
            json!({
                "user": "system:serviceaccount:atoll-check:nobody",
                "groups": ["system:serviceaccounts", "system:serviceaccounts:atoll-check", "system:authenticated"],
            }),
        ),
        (
            "anybody who connects to the host's API server without credentials",
            json!({"user": "system:anonymous", "groups": ["system:unauthenticated"]}),
        ),
    ]
}

/// Rights that break the isolation of all virtual clusters, as text and as attributes of a review.
fn rights() -> [(&'static str, Value); 3] {
    [
        ("read all Secrets", json!({"verb": "list", "resource": "secrets"})),
        ("create pods anywhere", json!({"verb": "create", "resource": "pods"})),
        ("label namespaces", json!({"verb": "update", "resource": "namespaces"})),
    ]
}

/// Sends a SubjectAccessReview for each right.
pub(super) async fn weaknesses(api: &Api, location: Option<Location>) -> anyhow::Result<Vec<Weakness>> {
    let mut found = Vec::new();
    for (users, user) in unprivileged_users() {
        let mut allowed = Vec::new();
        for (right, attributes) in rights() {
            let mut spec = user.clone();
            spec["resourceAttributes"] = attributes;
            let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec});
            if api.create(REVIEWS, &review).await.context("SubjectAccessReview")?["status"]["allowed"] == true {
                allowed.push(right);
            }
        }
        if !allowed.is_empty() {
            found.push(Weakness::at(
                Check::Authorizer,
                location,
                format_args!("host: it allows {users} to {}", allowed.join(", ")),
                "run kube-apiserver with --authorization-mode=Node,RBAC, and find the binding or the other authorizer \
                 that allows it",
            ));
        }
    }
    Ok(found)
}

//! Whether the agent has the rights that it needs.

use anyhow::Context as _;
use host_client::api::Api;
use serde_json::{Value, json};

/// The rules of the agent, in the manifest that the operator applies.
const RBAC: &str = include_str!("../../../../configs/kubernetes/agent-rbac.yaml");
const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

/// The rights that the agent lacks, in the notation of `kubectl auth can-i`.
pub(super) async fn missing(api: &Api) -> anyhow::Result<Vec<String>> {
    let mut missing = Vec::new();
    for (right, attributes) in required(RBAC)? {
        let review =
            json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": attributes});
        let answer = api.create(REVIEWS, &review).await?;
        if answer["status"]["allowed"] != true {
            missing.push(right);
        }
    }
    Ok(missing)
}

/// Every right of the ClusterRole in a file: as text, and as the `spec` of a review.
fn required(rbac: &str) -> anyhow::Result<Vec<(String, Value)>> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(rbac).context("cannot parse the agent's rules")?;
    let role = documents.iter().find(|document| document["kind"] == "ClusterRole").context("no ClusterRole")?;
    let texts = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let mut required = Vec::new();
    for rule in role["rules"].as_array().into_iter().flatten() {
        for verb in texts(&rule["verbs"]) {
            for path in texts(&rule["nonResourceURLs"]) {
                required
                    .push((format!("{verb} {path}"), json!({"nonResourceAttributes": {"verb": verb, "path": path}})));
            }
            for group in texts(&rule["apiGroups"]) {
                for resource in texts(&rule["resources"]) {
                    let dotted = if group.is_empty() { resource.clone() } else { format!("{resource}.{group}") };
                    let attributes = json!({"verb": verb, "group": group, "resource": resource});
                    required.push((format!("{verb} {dotted}"), json!({"resourceAttributes": attributes})));
                }
            }
        }
    }
    Ok(required)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_of_the_role_is_reviewed() {
        let required = required(RBAC).unwrap();
        let rights: Vec<_> = required.iter().map(|(right, _)| right.as_str()).collect();
        for right in ["get *", "list *.*", "impersonate users", "create tokenreviews.authentication.k8s.io"] {
            assert!(rights.contains(&right), "{right}\n{rights:#?}");
        }
        let expected =
            json!({"resourceAttributes": {"verb": "bind", "group": "rbac.authorization.k8s.io", "resource": "roles"}});
        assert!(required.iter().any(|(_, spec)| *spec == expected));
    }
}

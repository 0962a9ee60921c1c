//! Whether the agent has the rights that it needs.

use anyhow::Context as _;
use host_client::api::Api;
use serde_json::{Value, json};

/// The rules of the agent, in the manifest that the operator applies.
const RBAC: &str = include_str!("../../../../configs/kubernetes/agent-rbac.yaml");
const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

/// What the agent needs a right for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// To serve virtual clusters.
    Always,
    /// To create FlowSchemas.
    Flows,
    /// To label nodes that expressions select.
    NodeExpressions,
    /// To write objects that virtual clusters share.
    SharedObjects,
    /// To serve VirtualClusters.
    VirtualClusters,
    /// To store kubeconfigs of VirtualClusters.
    Kubeconfigs,
}

/// The rights that the agent lacks, in the notation of `kubectl auth can-i`. `kubeconfigs` is the namespace for kubeconfigs, if the
/// agent stores any.
pub(super) async fn missing(api: &Api, kubeconfigs: Option<&str>) -> anyhow::Result<Vec<(String, Need)>> {
    let mut missing = Vec::new();
    let of_kubeconfigs = kubeconfigs.map(|namespace| all(RBAC, "Role", Some(namespace))).transpose()?;
    for (right, attributes) in all(RBAC, "ClusterRole", None)?.into_iter().chain(of_kubeconfigs.into_iter().flatten()) {
        let need = Need::of(&attributes);
        let review =
            json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": attributes});
        let answer = api.create(REVIEWS, &review).await?;
        if answer["status"]["allowed"] != true {
            missing.push((right, need));
        }
    }
    Ok(missing)
}

// === impl Need ===

impl Need {
    /// What the right in the `spec` of a review is for. The operator may remove the rules of all but [`Always`](Self::Always).
    fn of(review: &Value) -> Self {
        let attributes = &review["resourceAttributes"];
        if attributes["namespace"].is_string() {
            return Self::Kubeconfigs;
        }
        match attributes["group"].as_str().unwrap_or_default() {
            "" if attributes["resource"] == "nodes" => Self::NodeExpressions,
            "flowcontrol.apiserver.k8s.io" => Self::Flows,
            "atoll.dev" => Self::VirtualClusters,
            "apiextensions.k8s.io"
            | "networking.k8s.io"
            | "node.k8s.io"
            | "resource.k8s.io"
            | "scheduling.k8s.io"
            | "storage.k8s.io" => Self::SharedObjects,
            _ => Self::Always,
        }
    }
}

/// Every right of the first role of this kind in a file: as text, and as the `spec` of a review.
fn all(rbac: &str, kind: &'static str, namespace: Option<&str>) -> anyhow::Result<Vec<(String, Value)>> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(rbac).context("cannot parse the agent's rules")?;
    let role = documents
        .iter()
        .find(|document| document["kind"] == kind)
        .with_context(|| format!("no {kind} in the agent's rules"))?;
    let texts = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let mut all = Vec::new();
    for rule in role["rules"].as_array().into_iter().flatten() {
        for verb in texts(&rule["verbs"]) {
            for path in texts(&rule["nonResourceURLs"]) {
                all.push((format!("{verb} {path}"), json!({"nonResourceAttributes": {"verb": verb, "path": path}})));
            }
            for group in texts(&rule["apiGroups"]) {
                for resource in texts(&rule["resources"]) {
                    let dotted = if group.is_empty() { resource.clone() } else { format!("{resource}.{group}") };
                    let mut attributes = json!({"verb": verb, "group": group, "resource": resource});
                    if let Some(namespace) = namespace {
                        attributes["namespace"] = namespace.into();
                    }
                    all.push((format!("{verb} {dotted}"), json!({"resourceAttributes": attributes})));
                }
            }
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_of_the_role_is_reviewed() {
        let all = all(RBAC, "ClusterRole", None).unwrap();
        let rights: Vec<_> = all.iter().map(|(right, _)| right.as_str()).collect();
        for right in ["get *", "list *.*", "impersonate users", "create tokenreviews.authentication.k8s.io"] {
            assert!(rights.contains(&right), "{right}\n{rights:#?}");
        }
        let expected =
            json!({"resourceAttributes": {"verb": "bind", "group": "rbac.authorization.k8s.io", "resource": "roles"}});
        assert!(all.iter().any(|(_, spec)| *spec == expected));
    }

    #[test]
    fn rules_that_the_operator_may_remove_are_not_required() {
        let needs = |need: Need| -> Vec<String> {
            let all = all(RBAC, "ClusterRole", None).unwrap().into_iter();
            all.filter(|(_, spec)| Need::of(spec) == need).map(|(right, _)| right).collect()
        };
        let flows = ["flowschemas", "prioritylevelconfigurations"];
        assert_eq!(needs(Need::Flows), flows.map(|resource| format!("create {resource}.flowcontrol.apiserver.k8s.io")));
        assert_eq!(needs(Need::NodeExpressions), ["patch nodes"]);
        let shared = needs(Need::SharedObjects);
        for right in
            ["create priorityclasses.scheduling.k8s.io", "patch customresourcedefinitions.apiextensions.k8s.io"]
        {
            assert!(shared.iter().any(|one| one == right), "{shared:?}");
        }
        let of_kubeconfigs = all(RBAC, "Role", Some("atoll-system")).unwrap();
        assert!(of_kubeconfigs.iter().all(|(_, spec)| Need::of(spec) == Need::Kubeconfigs));
        assert!(of_kubeconfigs.iter().any(|(right, _)| right == "create secrets"), "{of_kubeconfigs:?}");
        let always = needs(Need::Always);
        for right in ["list *.*", "escalate roles.rbac.authorization.k8s.io", "create namespaces"] {
            assert!(always.iter().any(|one| one == right), "{always:?}");
        }
    }
}

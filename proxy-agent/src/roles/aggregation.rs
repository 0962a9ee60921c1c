//! Aggregated ClusterRoles: their rules are those of all roles that they select, within the virtual cluster.
//!
//! On the host nothing is aggregated, since neither the selectors nor the labels are there under their own names. So this
//! does what kube-controller-manager does (`pkg/controller/clusterroleaggregation`), over the roles that the virtual
//! cluster sees: its own, and those that every cluster has. Who wrote the selectors held all rights there are.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kube_wire::name::SegmentName;
use kube_wire::request_info::ResourcePath;
use kube_wire::selector::{LabelSelector, Requirement, Test};
use rewrite::ClusterName;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::sleep;
use tracing::{debug, warn};

use super::{Role, Roles};
use crate::clusters::VirtualClusters;
use crate::clusters::host_api::HostApi;
use crate::host::api::ApiError;

/// After a failure; whatever changes meanwhile is looked at then.
const AGAIN: Duration = Duration::from_secs(1);

/// `AggregationRule` of rbac/v1.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AggregationRule {
    #[serde(default)]
    cluster_role_selectors: Option<Vec<Selector>>,
}

/// `LabelSelector` of meta/v1.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Selector {
    #[serde(default)]
    match_labels: Option<BTreeMap<String, String>>,
    #[serde(default)]
    match_expressions: Option<Vec<Expression>>,
}

#[derive(Deserialize)]
struct Expression {
    key: String,
    operator: String,
    #[serde(default)]
    values: Option<Vec<String>>,
}

/// A role whose rules are to be others than they are.
#[derive(Debug, PartialEq)]
struct Stale {
    cluster: ClusterName,
    /// Its name in the virtual cluster.
    name: String,
    rules: Vec<Value>,
}

/// Keeps the rules of aggregated roles of these virtual clusters, for ever.
pub(crate) async fn keep(api: impl HostApi, roles: Arc<Roles>, clusters: Arc<VirtualClusters>) {
    roles.synced().await;
    let mut changed = roles.changed.subscribe();
    loop {
        changed.mark_unchanged();
        let mut failed = false;
        for stale in roles.stale(&clusters.names()) {
            match stale.write(&api).await {
                Ok(()) => debug!(cluster = %stale.cluster, role = stale.name, "a role takes in the rules of others"),
                Err(error) => {
                    let error: &dyn std::error::Error = &error;
                    warn!(error, cluster = %stale.cluster, role = stale.name, "a role does not take in the rules of others yet");
                    failed = true;
                }
            }
        }
        if failed {
            sleep(AGAIN).await;
        } else if changed.changed().await.is_err() {
            return;
        }
    }
}

// === impl Roles ===

impl Roles {
    /// The aggregated roles of these clusters that are not as they should be.
    fn stale(&self, clusters: &[ClusterName]) -> Vec<Stale> {
        let known = self.lock();
        let mut stale = Vec::new();
        for cluster in clusters {
            let Some(own) = known.own.get(cluster) else { continue };
            let all: BTreeMap<_, _> = known.shared.iter().chain(own).collect();
            for (name, role) in own {
                let Some(rules) = role.aggregated(name, &all) else { continue };
                if role.rules.as_array().map_or(&[][..], Vec::as_slice) != rules {
                    stale.push(Stale { cluster: cluster.clone(), name: name.clone(), rules });
                }
            }
        }
        stale
    }
}

// === impl Role ===

impl Role {
    /// The rules that the role is to have; nothing if they are its own, or if what it selects cannot be understood.
    fn aggregated(&self, own: &str, all: &BTreeMap<&String, &Arc<Self>>) -> Option<Vec<Value>> {
        let rule: AggregationRule = serde_json::from_str(self.aggregation.as_deref()?).ok()?;
        let mut rules: Vec<Value> = Vec::new();
        for selector in rule.cluster_role_selectors.into_iter().flatten() {
            let selector = selector.parse()?;
            let selected = all.iter().filter(|(name, role)| {
                name.as_str() != own && selector.matches(|key| role.labels.get(key).map(String::as_str))
            });
            for rule in selected.flat_map(|(_, role)| role.rules.as_array().into_iter().flatten()) {
                if !rules.contains(rule) {
                    rules.push(rule.clone());
                }
            }
        }
        Some(rules)
    }
}

// === impl Selector ===

impl Selector {
    /// As `LabelSelectorAsSelector` in apimachinery's meta/v1: what is empty selects everything.
    fn parse(self) -> Option<LabelSelector> {
        let labels = self.match_labels.unwrap_or_default();
        let labels =
            LabelSelector::from_labels(labels.iter().map(|(key, value)| (key.as_str(), value.as_str()))).ok()?;
        self.match_expressions.into_iter().flatten().try_fold(labels, |selector, expression| {
            let values = expression.values.unwrap_or_default();
            let test = match &*expression.operator {
                "In" => Test::In(values),
                "NotIn" => Test::NotIn(values),
                "Exists" => Test::Exists,
                "DoesNotExist" => Test::DoesNotExist,
                _ => return None,
            };
            let requirement = Requirement::new(&expression.key, test).ok()?;
            Some(selector.and(requirement.to_string().parse().ok()?))
        })
    }
}

// === impl Stale ===

impl Stale {
    /// If somebody else is faster, the role's change brings us back.
    async fn write(&self, api: &impl HostApi) -> Result<(), ApiError> {
        let Ok(name) = SegmentName::new(format!("vc:{}:{}", self.cluster, self.name)) else { return Ok(()) };
        let path =
            ResourcePath { name: Some(name), ..ResourcePath::new("rbac.authorization.k8s.io", "v1", "clusterroles") };
        let path = path.build();
        let mut role = match api.get(&path).await {
            Ok(role) => role,
            Err(error) if error.is_not_found() => return Ok(()),
            Err(error) => return Err(error),
        };
        role["rules"] = Value::Array(self.rules.clone());
        match api.update(&path, &role).await {
            Err(error) if !error.is_conflict() && !error.is_not_found() => Err(error),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::host::api::Change;

    fn ke() -> ClusterName {
        "ke".parse().unwrap()
    }

    fn put(roles: &Roles, name: &str, labels: &Value, aggregation: Option<&str>, resource: &str) {
        let mut labels = labels.clone();
        labels["atoll.dev/virtual-cluster"] = json!("ke");
        let mut metadata = json!({"name": name, "labels": labels});
        if let Some(aggregation) = aggregation {
            metadata["annotations"] = json!({"atoll.dev/aggregation-rule": aggregation});
        }
        let rules = if resource.is_empty() { json!([]) } else { json!([{"verbs": ["get"], "resources": [resource]}]) };
        roles.take(&Change::Applied(json!({"metadata": metadata, "rules": rules})));
    }

    fn resources(roles: &Roles) -> Vec<(String, Vec<String>)> {
        let resource = |rule: &Value| rule["resources"][0].as_str().unwrap_or_default().to_owned();
        let of = |stale: Stale| (stale.name, stale.rules.iter().map(resource).collect());
        roles.stale(&[ke()]).into_iter().map(of).collect()
    }

    #[test]
    fn a_role_takes_in_what_it_selects_in_its_own_cluster() {
        let roles = Roles::default();
        let selectors = r#"{"clusterRoleSelectors":[{"matchLabels":{"a":"b"}},{"matchExpressions":[{"key":"c","operator":"Exists"}]}]}"#;
        put(&roles, "vc:ke:sum", &json!({"parked.atoll.dev/a": "b"}), Some(selectors), "");
        assert!(resources(&roles).is_empty());
        put(&roles, "vc:ke:two", &json!({"parked.atoll.dev/a": "b"}), None, "pods");
        put(&roles, "vc:ke:one", &json!({"parked.atoll.dev/c": "", "parked.atoll.dev/a": "b"}), None, "secrets");
        put(&roles, "vc:ke:not", &json!({"parked.atoll.dev/a": "c"}), None, "nodes");
        put(&roles, "vc:hz:other", &json!({"parked.atoll.dev/a": "b"}), None, "services");
        let shared = json!({"name": "view", "labels": {"kubernetes.io/bootstrapping": "rbac-defaults", "c": "d"}});
        roles.take(&Change::Applied(json!({"metadata": shared, "rules": [{"resources": ["events"]}]})));
        let expected = ["secrets", "pods", "events"].map(str::to_owned).to_vec();
        assert_eq!(resources(&roles), [("sum".to_owned(), expected)]);
        assert!(roles.stale(&["hz".parse().unwrap()]).is_empty());
    }

    #[test]
    fn what_is_not_understood_changes_nothing() {
        let roles = Roles::default();
        for rule in ["", "{", r#"{"clusterRoleSelectors":[{"matchExpressions":[{"key":"a","operator":"Like"}]}]}"#] {
            put(&roles, "vc:ke:sum", &json!({}), Some(rule), "pods");
            assert!(resources(&roles).is_empty(), "{rule}");
        }
        put(&roles, "vc:ke:sum", &json!({}), Some("{}"), "pods");
        assert_eq!(resources(&roles), [("sum".to_owned(), Vec::new())]);
    }
}

//! ClusterRoles of the host that aggregate rules of tenants.
//!
//! A ClusterRole of a virtual cluster is a ClusterRole of the host. It has the label of its cluster, and its own labels
//! under parked keys. An empty selector, or one that requires the absence of a label, matches it too.

use kube_wire::selector::{Requirement, Test};
use ops::config::Location;
use rewrite::name::CLUSTER_LABEL;
use rewrite::parked::unparked;
use serde_json::Value;

use super::selector::requirements;
use crate::check::weakness::{Check, Weakness};

/// The labels of the ClusterRoles with which the agent grants itself rights to custom resources.
const AGENT_LABELS: [(&str, &str); 2] =
    [("atoll.dev/agent-custom-resources", "true"), ("app.kubernetes.io/managed-by", "atoll")];
/// The ClusterRole that aggregates them.
const AGENT_ROLE: &str = "atoll-proxy-agent-custom-resources";

/// The weakness of a ClusterRole that belongs to no virtual cluster.
pub(super) fn weakness(location: Option<Location>, role: &Value) -> Option<Weakness> {
    let name = role["metadata"]["name"].as_str()?;
    let selectors = role["aggregationRule"]["clusterRoleSelectors"].as_array()?;
    let selectors: Vec<_> = selectors.iter().map(requirements).collect();
    let (what, key) = if selectors.iter().any(|selector| can_match_tenants(selector)) {
        ("rules that administrators of virtual clusters write", CLUSTER_LABEL)
    } else if name != AGENT_ROLE && selectors.iter().any(|selector| matches_agent_labels(selector)) {
        ("the rights to write custom resources that the agent grants itself", AGENT_LABELS[0].0)
    } else {
        return None;
    };
    Some(Weakness::at(
        Check::Aggregation,
        location,
        format_args!("host: ClusterRole {name} aggregates {what}; its subjects have these rights on the whole host"),
        &format!("add `{{key: {key}, operator: DoesNotExist}}` to the matchExpressions of its clusterRoleSelectors"),
    ))
}

/// Whether a virtual cluster can write a role that meets all requirements.
fn can_match_tenants(selector: &[Requirement]) -> bool {
    selector.iter().all(|requirement| match requirement.key() {
        // The operator chooses the value of this label.
        CLUSTER_LABEL => *requirement.test() != Test::DoesNotExist,
        key if unparked(key).is_some() => true,
        _ => requirement.test().holds(None),
    })
}

fn matches_agent_labels(selector: &[Requirement]) -> bool {
    let value = |key: &str| AGENT_LABELS.iter().find(|(own, _)| *own == key).map(|(_, value)| *value);
    selector.iter().all(|requirement| requirement.test().holds(value(requirement.key())))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn message(name: &str, selectors: &Value) -> Option<String> {
        let role = json!({"metadata": {"name": name}, "aggregationRule": {"clusterRoleSelectors": selectors}});
        weakness(None, &role).map(|weakness| weakness.problem.message().to_owned())
    }

    #[test]
    fn selectors_that_match_roles_of_virtual_clusters_are_reported() {
        let without = |key: &str| json!({"matchExpressions": [{"key": key, "operator": "DoesNotExist"}]});
        for selectors in [
            json!([{}]),
            json!([{"matchLabels": {"a": "b"}}, {}]),
            json!([without("a")]),
            json!([{"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["b"]}]}]),
            json!([{"matchLabels": {"parked.atoll.dev/a": "b"}}]),
            json!([{"matchLabels": {CLUSTER_LABEL: "ke-beijing"}}]),
        ] {
            let message = message("all", &selectors);
            assert!(
                message.is_some_and(|message| message.contains("administrators of virtual clusters")),
                "{selectors}"
            );
        }
        for selectors in [
            json!([]),
            json!([{"matchLabels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}}]),
            json!([{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]),
        ] {
            assert_eq!(message("some", &selectors), None, "{selectors}");
        }
        let both = json!([{"matchExpressions": [
            {"key": CLUSTER_LABEL, "operator": "DoesNotExist"}, {"key": "a", "operator": "DoesNotExist"},
        ]}]);
        assert!(message("all", &both).is_some_and(|message| message.contains("the agent grants itself")));
        assert_eq!(weakness(None, &json!({"metadata": {"name": "plain"}})), None);
    }

    #[test]
    fn the_role_of_the_agent_may_aggregate_the_rights_of_the_agent() {
        let own = json!([{"matchLabels": {"atoll.dev/agent-custom-resources": "true"}}]);
        assert_eq!(message(AGENT_ROLE, &own), None);
        assert!(message("other", &own).is_some());
        assert!(message(AGENT_ROLE, &json!([{}])).is_some());
    }
}

//! NetworkPolicies of the host that select namespaces by labels that tenants may set.

use ops::config::Location;
use rewrite::name::METADATA_NAME_LABEL;
use serde_json::Value;

use super::selector::{Labels, keys_of_tenants};
use crate::check::weakness::{Check, Weakness};

/// The weakness of a NetworkPolicy in a namespace that belongs to no virtual cluster.
pub(super) fn weakness(
    location: Option<Location>,
    policy: &Value,
    is_protected: impl Fn(&str) -> bool,
    namespaces: &[Labels],
) -> Option<Weakness> {
    let rules = policy["spec"]["ingress"].as_array()?;
    let peers = rules.iter().flat_map(|rule| rule["from"].as_array().into_iter().flatten());
    let mut keys = peers.map(|peer| keys_of_tenants(&peer["namespaceSelector"], &is_protected, namespaces));
    let keys = keys.find(|keys| !keys.is_empty())?.join(", ");
    let (name, namespace) = (&policy["metadata"]["name"], &policy["metadata"]["namespace"]);
    let (name, namespace) = (name.as_str().unwrap_or_default(), namespace.as_str().unwrap_or_default());
    Some(Weakness::at(
        Check::NetworkPolicy,
        location,
        format_args!(
            "host: NetworkPolicy {namespace}/{name} admits namespaces by {keys}, which virtual clusters may set on \
             their namespaces"
        ),
        &format!("select them by {METADATA_NAME_LABEL}"),
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn policies_that_admit_by_labels_of_tenants_are_reported() {
        let policy = |peer: Value| {
            let ingress = json!([{}, {"from": [{"podSelector": {}}, peer]}]);
            json!({"metadata": {"name": "p", "namespace": "monitoring"}, "spec": {"ingress": ingress}})
        };
        let message = |policy: &Value| {
            weakness(None, policy, |key| key == METADATA_NAME_LABEL, &[Labels::new()])
                .map(|weakness| weakness.problem.message().to_owned())
        };
        let by_label = json!({"namespaceSelector": {"matchLabels": {"team": "ops"}}});
        assert!(
            message(&policy(by_label))
                .unwrap()
                .starts_with("host: NetworkPolicy monitoring/p admits namespaces by team,")
        );
        let by_name = json!({"namespaceSelector": {"matchLabels": {METADATA_NAME_LABEL: "ops"}}});
        for closed in [by_name, json!({"namespaceSelector": {}}), json!({"ipBlock": {"cidr": "10.0.0.0/8"}})] {
            assert_eq!(message(&policy(closed.clone())), None, "{closed}");
        }
        assert_eq!(message(&json!({"spec": {"egress": []}})), None);
    }
}

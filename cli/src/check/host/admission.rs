//! Webhooks and admission policies of the host that select objects by labels that tenants may set.

use ops::config::Location;
use rewrite::name::CLUSTER_LABEL;
use serde_json::Value;
use virtual_cluster::admission_policies;

use super::selector::{Labels, can_select_tenants, keys_of_objects, keys_of_tenants};
use crate::check::weakness::{Check, Weakness};

/// The kinds and their resources.
pub(super) const KINDS: [(&str, &str); 6] = [
    ("ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
    ("MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
    ("ValidatingAdmissionPolicy", "validatingadmissionpolicies"),
    ("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"),
    ("MutatingAdmissionPolicy", "mutatingadmissionpolicies"),
    ("MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings"),
];

/// The selectors of a webhook, policy or binding.
struct Selectors<'o> {
    /// The name, if it is a webhook.
    webhook: Option<&'o str>,
    rules: &'o Value,
    namespaces: &'o Value,
    objects: &'o Value,
}

/// The weaknesses of an object of one of the kinds. `namespaces` are the labels of namespaces that virtual clusters
/// have, or could have.
pub(super) fn weaknesses(
    location: Option<Location>,
    kind: &str,
    object: &Value,
    is_protected: impl Fn(&str) -> bool,
    namespaces: &[Labels],
) -> Vec<Weakness> {
    let metadata = &object["metadata"];
    if metadata["labels"].get(admission_policies::LABEL).is_some() {
        return Vec::new();
    }
    let name = metadata["name"].as_str().unwrap_or_default();
    let mut found = Vec::new();
    for selectors in selectors(object) {
        let part = selectors.webhook.map(|name| format!(", webhook {name}")).unwrap_or_default();
        let keys = keys_of_tenants(selectors.namespaces, &is_protected, namespaces);
        if !keys.is_empty() && uses_namespace_selector(selectors.rules) {
            let keys = keys.join(", ");
            found.push(Weakness::at(
                Check::Admission,
                location,
                format_args!(
                    "host: {kind} {name}{part} selects namespaces by {keys}, which virtual clusters may set on their \
                     namespaces, so they choose whether it checks their writes"
                ),
                &format!(
                    "select by {CLUSTER_LABEL} or kubernetes.io/metadata.name, which virtual clusters cannot choose"
                ),
            ));
        }
        let keys = keys_of_objects(selectors.objects);
        if !keys.is_empty() && can_select_tenants(selectors.namespaces, &is_protected, namespaces) {
            let keys = keys.join(", ");
            found.push(Weakness::at(
                Check::Admission,
                location,
                format_args!(
                    "host: {kind} {name}{part} selects objects by the label {keys}, which virtual clusters may set on \
                     their objects, so they choose whether it checks their writes"
                ),
                "use a namespaceSelector instead of the objectSelector, unless virtual clusters should have this choice",
            ));
        }
    }
    found
}

fn selectors(object: &Value) -> Vec<Selectors<'_>> {
    match object["webhooks"].as_array() {
        Some(webhooks) => webhooks.iter().map(|one| Selectors::of(one["name"].as_str(), &one["rules"], one)).collect(),
        // A policy has the first field, and a binding the second one.
        None => ["matchConstraints", "matchResources"]
            .map(|field| &object["spec"][field])
            .map(|matched| Selectors::of(None, &matched["resourceRules"], matched))
            .into(),
    }
}

/// Whether the namespaceSelector has an effect. It has none if all rules are for cluster-scoped resources other than
/// Namespaces.
fn uses_namespace_selector(rules: &Value) -> bool {
    let uses = |rule: &Value| {
        let mut resources = rule["resources"].as_array().into_iter().flatten().filter_map(Value::as_str);
        rule["scope"] != "Cluster" || resources.any(|one| one.starts_with('*') || one.starts_with("namespaces"))
    };
    rules.as_array().is_none_or(|rules| rules.iter().any(uses))
}

// === impl Selectors ===

impl<'o> Selectors<'o> {
    fn of(webhook: Option<&'o str>, rules: &'o Value, object: &'o Value) -> Self {
        Self { webhook, rules, namespaces: &object["namespaceSelector"], objects: &object["objectSelector"] }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn messages(kind: &str, object: &Value) -> Vec<String> {
        let theirs = [[(CLUSTER_LABEL.to_owned(), "a".to_owned())].into()];
        let found = weaknesses(None, kind, object, |key| key == CLUSTER_LABEL, &theirs);
        found.into_iter().map(|weakness| weakness.problem.message().to_owned()).collect()
    }

    #[test]
    fn a_webhook_that_tenants_can_avoid() {
        let webhooks =
            |webhook: Value| json!({"metadata": {"name": "scanner"}, "webhooks": [{"name": "quiet"}, webhook]});
        let skip = json!({"matchExpressions": [{"key": "skip", "operator": "DoesNotExist"}]});
        let rules = json!([{"resources": ["pods"], "scope": "*"}]);
        let all = messages("X", &webhooks(json!({"name": "loud", "rules": rules, "namespaceSelector": skip})));
        assert_eq!(all.len(), 1);
        assert!(all[0].starts_with("host: X scanner, webhook loud selects namespaces by skip, which"), "{all:?}");

        // A namespaceSelector applies to no cluster-scoped resource except Namespaces.
        for (resource, count) in [("nodes", 0), ("namespaces", 1), ("*", 1), ("*/*", 1)] {
            let rules = json!([{"resources": [resource], "scope": "Cluster"}]);
            let all = messages("X", &webhooks(json!({"name": "loud", "rules": rules, "namespaceSelector": skip})));
            assert_eq!(all.len(), count, "{resource}");
        }
        let mine = json!({"matchLabels": {"x": "y"}});
        let all = messages("X", &webhooks(json!({"name": "loud", "rules": rules, "objectSelector": mine})));
        assert!(all.len() == 1 && all[0].contains("selects objects by the label x"), "{all:?}");
        let not_theirs = json!({"matchExpressions": [{"key": CLUSTER_LABEL, "operator": "DoesNotExist"}]});
        let both = json!({"name": "loud", "rules": rules, "objectSelector": mine, "namespaceSelector": not_theirs});
        assert_eq!(messages("X", &webhooks(both)), [""; 0]);
    }

    #[test]
    fn policies_and_their_bindings() {
        let inject = json!({"namespaceSelector": {"matchLabels": {"enforce": "yes"}}});
        for field in ["matchConstraints", "matchResources"] {
            let mut object = json!({"metadata": {"name": "p"}, "spec": {field: inject}});
            assert_eq!(messages("X", &object).len(), 1);
            object["metadata"]["labels"] = json!({admission_policies::LABEL: ""});
            assert_eq!(messages("X", &object), [""; 0]);
        }
        assert_eq!(messages("X", &json!({"metadata": {"name": "p"}, "spec": {}})), [""; 0]);
    }
}

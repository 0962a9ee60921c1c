//! Label selectors in objects of the host, and which of their labels tenants may set.

use std::collections::BTreeMap;

use kube_wire::selector::{Requirement, Test};
use rewrite::name::is_own_key;
use serde_json::Value;

/// The labels of a namespace.
pub(super) type Labels = BTreeMap<String, String>;

/// Reads a `metav1.LabelSelector`. Invalid parts are ignored.
pub(super) fn requirements(selector: &Value) -> Vec<Requirement> {
    let labels = selector["matchLabels"].as_object().into_iter().flatten();
    let equal = labels.map(|(key, value)| (key.as_str(), Test::Equals(value.as_str().unwrap_or_default().to_owned())));
    let expressions = selector["matchExpressions"].as_array().into_iter().flatten().filter_map(|expression| {
        let values = expression["values"].as_array().into_iter().flatten();
        let values: Vec<_> = values.filter_map(Value::as_str).map(str::to_owned).collect();
        let test = match expression["operator"].as_str()? {
            "In" => Test::In(values),
            "NotIn" => Test::NotIn(values),
            "Exists" => Test::Exists,
            "DoesNotExist" => Test::DoesNotExist,
            _ => return None,
        };
        Some((expression["key"].as_str()?, test))
    });
    // The API server has validated the selector.
    equal.chain(expressions).filter_map(|(key, test)| Requirement::new(key, test).ok()).collect()
}

/// The label keys with which tenants can decide whether a selector selects their namespaces. There are none if the
/// requirements on other keys hold for no namespace of a tenant.
pub(super) fn keys_of_tenants(
    selector: &Value,
    is_protected: impl Fn(&str) -> bool,
    namespaces: &[Labels],
) -> Vec<String> {
    if !can_select_tenants(selector, &is_protected, namespaces) {
        return Vec::new();
    }
    let requirements = requirements(selector);
    distinct(requirements.iter().filter(|requirement| !is_protected(requirement.key())))
}

/// Whether a tenant can set labels so that a selector selects one of its namespaces.
pub(super) fn can_select_tenants(selector: &Value, is_protected: impl Fn(&str) -> bool, namespaces: &[Labels]) -> bool {
    let mut fixed = requirements(selector);
    fixed.retain(|requirement| is_protected(requirement.key()));
    let holds = |labels: &Labels, one: &Requirement| one.test().holds(labels.get(one.key()).map(String::as_str));
    namespaces.iter().any(|labels| fixed.iter().all(|one| holds(labels, one)))
}

/// The label keys with which tenants can decide whether a selector selects their objects.
pub(super) fn keys_of_objects(selector: &Value) -> Vec<String> {
    let requirements = requirements(selector);
    distinct(requirements.iter().filter(|requirement| !is_own_key(requirement.key())))
}

fn distinct<'r>(requirements: impl Iterator<Item = &'r Requirement>) -> Vec<String> {
    let mut keys: Vec<_> = requirements.map(|requirement| requirement.key().to_owned()).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_keys_that_tenants_may_set_count() {
        let labels = |pairs: &[(&str, &str)]| pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let namespaces: [Labels; 2] = [
            labels(&[("owner", "a"), ("kubernetes.io/metadata.name", "x-a")]),
            labels(&[("owner", "b"), ("kubernetes.io/metadata.name", "x-b")]),
        ];
        let is_protected = |key: &str| key == "owner" || key == "kubernetes.io/metadata.name";
        let keys = |selector: Value| keys_of_tenants(&selector, is_protected, &namespaces);
        let expression =
            |key: &str, operator: &str, values: &[&str]| json!({"key": key, "operator": operator, "values": values});
        assert_eq!(keys(json!({})), [""; 0]);
        assert_eq!(keys(Value::Null), [""; 0]);
        assert_eq!(keys(json!({"matchLabels": {"inject": "yes"}})), ["inject"]);
        assert_eq!(keys(json!({"matchExpressions": [expression("skip", "DoesNotExist", &[])]})), ["skip"]);
        // It selects none of their namespaces, whatever they set.
        assert_eq!(keys(json!({"matchLabels": {"inject": "yes", "owner": "c"}})), [""; 0]);
        assert_eq!(
            keys(
                json!({"matchLabels": {"inject": "yes"}, "matchExpressions": [expression("owner", "DoesNotExist", &[])]})
            ),
            [""; 0]
        );
        // One namespace is enough.
        assert_eq!(keys(json!({"matchLabels": {"owner": "b", "z": "", "inject": "yes"}})), ["inject", "z"]);
        let others = expression("kubernetes.io/metadata.name", "NotIn", &["kube-system"]);
        assert_eq!(keys(json!({"matchExpressions": [others, expression("skip", "NotIn", &["1"])]})), ["skip"]);
        assert_eq!(keys_of_objects(&json!({"matchLabels": {"a": "1", "atoll.dev/mirror": "true"}})), ["a"]);
    }
}

//! Whether a pod fits a node.

use kube_wire::selector::LabelSelector;
use serde_json::{Value, json};

use crate::object;

/// The reason why a pod does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Misfit {
    Selector,
    Taint,
}

/// Checks the node selector, the required node affinity and the taints.
pub(super) fn fits(spec: &Value, node: &Value) -> Result<(), Misfit> {
    let labels = object::texts(&node["metadata"]["labels"]);
    let wanted = object::texts(&spec["nodeSelector"]);
    if wanted.iter().any(|(key, value)| labels.get(key) != Some(value)) || !is_affine(spec, node) {
        return Err(Misfit::Selector);
    }
    let taints = object::items(&node["spec"]["taints"]);
    let is_tolerated = |taint: &&Value| {
        taint["effect"] == "PreferNoSchedule"
            || object::items(&spec["tolerations"]).iter().any(|one| tolerates(one, taint))
    };
    if taints.iter().all(|taint| is_tolerated(&taint)) { Ok(()) } else { Err(Misfit::Taint) }
}

/// Whether the required node affinity matches. One term must match, and all expressions of this term.
fn is_affine(spec: &Value, node: &Value) -> bool {
    let required = &spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    let terms = object::items(&required["nodeSelectorTerms"]);
    terms.is_empty()
        || terms.iter().any(|term| {
            let selector = object::label_selector(&json!({"matchExpressions": term["matchExpressions"]}));
            let names = object::items(&term["matchFields"]);
            let is_named =
                |field: &Value| object::text_list(&field["values"]).iter().any(|name| name == object::name(node));
            selector.is_some_and(|selector: LabelSelector| object::is_selected(&selector, node))
                && names.iter().all(is_named)
        })
}

fn tolerates(toleration: &Value, taint: &Value) -> bool {
    let text = |field: &str| toleration[field].as_str().filter(|text| !text.is_empty());
    let is_effect = text("effect").is_none_or(|effect| taint["effect"] == *effect);
    let is_key = text("key").is_none_or(|key| taint["key"] == *key);
    let is_value = match text("operator") {
        Some("Exists") => true,
        _ => text("key").is_some() && text("value").unwrap_or_default() == taint["value"].as_str().unwrap_or_default(),
    };
    is_effect && is_key && is_value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_and_taints_decide() {
        let node = json!({"metadata": {"name": "n", "labels": {"location": "beijing"}}, "spec": {"taints": [{"key": "edge", "value": "1", "effect": "NoSchedule"}]}});
        assert_eq!(fits(&json!({"nodeSelector": {"location": "hangzhou"}}), &node), Err(Misfit::Selector));
        assert_eq!(fits(&json!({"nodeSelector": {"location": "beijing"}}), &node), Err(Misfit::Taint));
        assert_eq!(fits(&json!({"tolerations": [{"key": "edge", "operator": "Exists"}]}), &node), Ok(()));
        assert_eq!(fits(&json!({"tolerations": [{"key": "edge", "value": "2"}]}), &node), Err(Misfit::Taint));
        let affinity = |name: &str| {
            let terms = json!([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}]);
            json!({"tolerations": [{"operator": "Exists"}], "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}})
        };
        assert_eq!(fits(&affinity("n"), &node), Ok(()));
        assert_eq!(fits(&affinity("m"), &node), Err(Misfit::Selector));
    }
}

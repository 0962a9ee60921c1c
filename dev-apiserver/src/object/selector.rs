//! Label selectors in fields of objects.

use kube_wire::selector::LabelSelector;
use serde_json::Value;

/// Whether a selector matches the labels of the object.
pub(crate) fn is_selected(selector: &LabelSelector, object: &Value) -> bool {
    let labels = &object["metadata"]["labels"];
    selector.matches(|key| labels[key].as_str())
}

/// The selector in a field of type `LabelSelector`. An empty one selects everything, an absent one nothing.
pub(crate) fn label_selector(field: &Value) -> Option<LabelSelector> {
    let field = field.as_object()?;
    let mut terms = Vec::new();
    for (key, value) in field.get("matchLabels").and_then(Value::as_object).into_iter().flatten() {
        terms.push(format!("{key}={}", value.as_str()?));
    }
    for expression in field.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
        let key = expression["key"].as_str()?;
        let values: Vec<_> = expression["values"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let values = values.join(",");
        terms.push(match expression["operator"].as_str()? {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "Exists" => key.to_owned(),
            "DoesNotExist" => format!("!{key}"),
            _ => return None,
        });
    }
    terms.join(",").parse().ok()
}

/// The selector in a map of labels, as in Services.
pub(crate) fn map_selector(field: &Value) -> Option<LabelSelector> {
    let pairs = field.as_object().filter(|pairs| !pairs.is_empty())?;
    LabelSelector::from_labels(pairs.iter().filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn label_selectors_match_labels() {
        let field =
            json!({"matchLabels": {"app": "a"}, "matchExpressions": [{"key": "x", "operator": "DoesNotExist"}]});
        let selector = label_selector(&field).unwrap();
        assert!(is_selected(&selector, &json!({"metadata": {"labels": {"app": "a"}}})));
        assert!(!is_selected(&selector, &json!({"metadata": {"labels": {"app": "a", "x": "1"}}})));
        assert!(label_selector(&Value::Null).is_none());
    }
}

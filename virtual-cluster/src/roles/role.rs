//! The part of a ClusterRole that the agent keeps.

use std::collections::BTreeMap;
use std::sync::Arc;

use rewrite::parked::{AUTO_UPDATE, unparked};
use rewrite::request::{AGGREGATION_ANNOTATION, RuleLengths};
use serde_json::Value;

/// The overhead of a role, a rule and a label in addition to their texts. This is a rough upper estimate.
const ROLE: usize = 512;
const PART: usize = 96;

/// The known state of a ClusterRole.
#[derive(Debug, PartialEq)]
pub struct Role {
    /// The labels that clients see.
    pub labels: BTreeMap<String, String>,
    /// The rules.
    pub rules: Vec<Rule>,
    /// The `aggregationRule`, as JSON.
    pub aggregation: Option<String>,
    /// The annotation by which an API server decides whether to repair its own role.
    pub auto_update: Option<String>,
    pub(super) uid: String,
    pub(super) resource_version: String,
    /// The memory that all this uses.
    pub weight: usize,
}

/// A rule of a ClusterRole. Clients can write many, so rules are kept as text, which needs a fraction of the memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The rule, as JSON.
    pub(super) text: Arc<str>,
    /// The number of [permissions](RuleLengths::permissions) that it grants.
    pub(super) permissions: u64,
}

// === impl Role ===

impl Role {
    /// The rules of a ClusterRole as the host stores it.
    pub fn of(object: &Value) -> Self {
        let metadata = &object["metadata"];
        let labels = metadata["labels"].as_object().into_iter().flatten();
        let labels = labels.filter_map(|(key, value)| {
            let key = unparked(key).map_or_else(|| key.clone(), String::from);
            Some((key, value.as_str()?.to_owned()))
        });
        let role = Self {
            labels: labels.collect(),
            rules: object["rules"].as_array().into_iter().flatten().map(Rule::of).collect(),
            aggregation: match &object["aggregationRule"] {
                Value::Null => metadata["annotations"][AGGREGATION_ANNOTATION].as_str().map(str::to_owned),
                rule => Some(rule.to_string()),
            },
            auto_update: metadata["annotations"][AUTO_UPDATE].as_str().map(str::to_owned),
            uid: metadata["uid"].as_str().unwrap_or_default().to_owned(),
            resource_version: metadata["resourceVersion"].as_str().unwrap_or_default().to_owned(),
            weight: 0,
        };
        Self { weight: role.weigh(), ..role }
    }

    /// The memory that it uses, without its name.
    fn weigh(&self) -> usize {
        let labels = self.labels.iter().map(|(key, value)| PART + key.len() + value.len());
        let texts = [&self.aggregation, &self.auto_update].into_iter().flatten().map(String::len);
        ROLE + labels.chain(texts).sum::<usize>() + weight(&self.rules)
    }
}

// === impl Rule ===

impl Rule {
    fn of(rule: &Value) -> Self {
        let length = |key: &str| rule[key].as_array().map_or(0, Vec::len);
        let lengths = RuleLengths {
            verbs: length("verbs"),
            groups: length("apiGroups"),
            resources: length("resources"),
            names: length("resourceNames"),
            paths: length("nonResourceURLs"),
        };
        Self { text: rule.to_string().into(), permissions: lengths.permissions() }
    }

    /// The rule as JSON.
    pub fn value(&self) -> Value {
        serde_json::from_str(&self.text).expect("the text was made of a value")
    }
}

/// The memory that these rules use.
pub(super) fn weight(rules: &[Rule]) -> usize {
    rules.iter().map(|rule| PART + rule.text.len()).sum()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn small_parts_weigh_more_than_their_texts() {
        let labels: serde_json::Map<_, _> = (0..1000).map(|number| (number.to_string(), json!(""))).collect();
        let rules = vec![json!({}); 1000];
        let weight = Role::of(&json!({"metadata": {"labels": labels}, "rules": rules})).weight;
        assert!(weight > 2000 * PART, "{weight}");
    }
}

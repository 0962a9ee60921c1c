//! The content of a VirtualClusterSet.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::super::spec::DeletionPolicy;

/// What a VirtualClusterSet declares.
#[derive(Clone, Debug, PartialEq)]
pub struct SetSpec {
    /// For what there are VirtualClusters.
    pub source: Source,
    /// The beginning of their names.
    pub name_prefix: String,
    /// Whether VirtualClusters are deleted whose value no longer exists, or with the set.
    pub deletion_policy: DeletionPolicy,
    /// How long a value must be absent before that.
    pub deletion_delay: Duration,
    /// Labels of the VirtualClusters.
    pub labels: BTreeMap<String, String>,
    /// The rest of their specifications.
    spec: Map<String, Value>,
}

/// For what a set has VirtualClusters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The values of this label of nodes.
    NodeLabel(String),
    /// The NodeGroups of KubeEdge.
    NodeGroups,
}

/// Why the specification of a set is invalid. The API server refuses the same with the definition of the kind.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetSpecError {
    /// A value of another type, an unknown value, or an unknown key.
    #[error("spec: {0}")]
    Type(#[from] serde_json::Error),
    /// Neither or both.
    #[error("spec: set one of nodeLabel and nodeGroups")]
    Source,
    /// The value of the label cannot be added.
    #[error("spec.template.spec.nodeSelector: not a map of labels")]
    Selector,
}

/// The default of `deletionDelaySeconds`: a node can lose its labels for a moment, for example when it registers again.
const DELAY_SECONDS: u32 = 300;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Written {
    #[serde(default)]
    node_label: Option<String>,
    #[serde(default)]
    node_groups: Option<NodeGroups>,
    #[serde(default)]
    name_prefix: Option<String>,
    #[serde(default)]
    deletion_policy: Option<DeletionPolicy>,
    #[serde(default)]
    deletion_delay_seconds: Option<u32>,
    #[serde(default)]
    template: Option<Template>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NodeGroups {}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Template {
    #[serde(default)]
    metadata: Option<TemplateMetadata>,
    #[serde(default)]
    spec: Option<Map<String, Value>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct TemplateMetadata {
    #[serde(default)]
    labels: Option<BTreeMap<String, String>>,
}

pub(super) fn read(spec: &Value) -> Result<SetSpec, SetSpecError> {
    let written = Written::deserialize(spec)?;
    let source = match (written.node_label, written.node_groups) {
        (Some(label), None) => Source::NodeLabel(label),
        (None, Some(NodeGroups {})) => Source::NodeGroups,
        _ => return Err(SetSpecError::Source),
    };
    let template = written.template.unwrap_or_default();
    let mut spec = template.spec.unwrap_or_default();
    match spec.get("nodeSelector") {
        None | Some(Value::Object(_)) => {}
        Some(Value::Null) => {
            spec.remove("nodeSelector");
        }
        Some(_) => return Err(SetSpecError::Selector),
    }
    Ok(SetSpec {
        source,
        name_prefix: written.name_prefix.unwrap_or_default(),
        deletion_policy: written.deletion_policy.unwrap_or_default(),
        deletion_delay: Duration::from_secs(written.deletion_delay_seconds.unwrap_or(DELAY_SECONDS).into()),
        labels: template.metadata.unwrap_or_default().labels.unwrap_or_default(),
        spec,
    })
}

// === impl SetSpec ===

impl SetSpec {
    /// The specification of the VirtualCluster for a value.
    pub fn of(&self, value: &str) -> Value {
        let mut spec = self.spec.clone();
        match &self.source {
            Source::NodeGroups => {
                spec.insert("nodeGroup".to_owned(), value.into());
            }
            Source::NodeLabel(label) => {
                if let Value::Object(selector) = spec.entry("nodeSelector").or_insert_with(|| json!({})) {
                    selector.insert(label.clone(), value.into());
                }
            }
        }
        Value::Object(spec)
    }

    /// The value in the specification of a VirtualCluster.
    pub fn value_of<'v>(&self, spec: &'v Value) -> Option<&'v str> {
        match &self.source {
            Source::NodeGroups => spec.get("nodeGroup"),
            Source::NodeLabel(label) => spec.get("nodeSelector")?.get(label),
        }?
        .as_str()
    }

    /// The name of the VirtualCluster for a value. Such names have no upper case.
    pub fn name_of(&self, value: &str) -> String {
        format!("{}{}", self.name_prefix, value.to_ascii_lowercase())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_has_the_template_and_its_value() {
        let spec = json!({
            "nodeLabel": "site", "namePrefix": "ke-", "deletionPolicy": "Delete",
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"podSecurity": {"enforce": "baseline"}, "nodeSelector": {"kind": "edge"}}},
        });
        let set = read(&spec).unwrap();
        assert_eq!((set.deletion_policy, set.deletion_delay.as_secs()), (DeletionPolicy::Delete, 300));
        let expect =
            json!({"podSecurity": {"enforce": "baseline"}, "nodeSelector": {"kind": "edge", "site": "beijing"}});
        assert_eq!(set.of("beijing"), expect);
        assert_eq!((set.value_of(&expect), set.value_of(&json!({"nodeSelector": []}))), (Some("beijing"), None));
        let null = read(&json!({"nodeLabel": "site", "template": {"spec": {"nodeSelector": null}}})).unwrap();
        assert_eq!(null.of("beijing"), json!({"nodeSelector": {"site": "beijing"}}));
        let set = read(&json!({"nodeGroups": {}, "namePrefix": null, "template": null})).unwrap();
        assert_eq!(set.value_of(&set.of("north")), Some("north"));
        assert_eq!((set.of("north"), set.deletion_policy), (json!({"nodeGroup": "north"}), DeletionPolicy::Orphan));
    }

    #[test]
    fn mistakes_are_named() {
        for (spec, expect) in [
            (json!({}), "set one of"),
            (json!({"nodeLabel": "a", "nodeGroups": {}}), "set one of"),
            (json!({"nodeLabel": "a", "deletionPolicy": "Retain"}), "unknown variant `Retain`"),
            (json!({"nodeLabel": "a", "more": 1}), "unknown field `more`"),
            (json!({"nodeLabel": "a", "template": {"spec": {"nodeSelector": "b=c"}}}), "not a map of labels"),
            (json!({"nodeLabel": "a", "template": {"spec": {"nodeSelector": ["b"]}}}), "not a map of labels"),
            (json!({"nodeGroups": {}, "template": {"spec": {"nodeSelector": 1}}}), "not a map of labels"),
        ] {
            let error = read(&spec).unwrap_err().to_string();
            assert!(error.contains(expect), "{error}");
        }
    }
}

//! The content of a VirtualCluster: the keys of an entry of `virtualClusters` in the configuration file, except `name`; what happens
//! when the object is deleted; and the user of its kubeconfig.

use protocol::ClusterName;
use protocol::user_certificate::User;
use serde::Deserialize;
use serde_json::Value;

use crate::clusters::{self, ClusterReason};
use crate::config::VirtualCluster;
use crate::mistakes;

/// The keys of `spec`. The API server drops all others, unless its definition of the kind is newer than this agent.
pub const KEYS: [&str; 11] = [
    "deletionPolicy",
    "externalIPs",
    "hostTokens",
    "karmada",
    "kubeconfig",
    "nodeExpressions",
    "nodeGroup",
    "nodeSelector",
    "podSecurity",
    "shares",
    "tolerations",
];

/// What a VirtualCluster declares.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// The virtual cluster, as if the configuration file listed it.
    pub cluster: VirtualCluster,
    /// What happens to its namespaces when the object is deleted.
    pub deletion_policy: DeletionPolicy,
    /// The user of the kubeconfig in a Secret. `None` if there is none.
    pub kubeconfig: Option<User>,
}

/// What happens to the namespaces of a virtual cluster when its object is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum DeletionPolicy {
    /// They stay on the host, as when the operator removes the cluster from the configuration file.
    #[default]
    Orphan,
    /// They are deleted, with everything in them.
    Delete,
}

/// Why a specification is invalid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// The name of the object.
    #[error("metadata.name is not the name of a virtual cluster: {0}")]
    Name(#[from] protocol::name::InvalidName),
    /// A key that this agent does not know.
    #[error("this agent does not know spec.{0}; update the agent, or remove the key")]
    UnknownKey(String),
    /// A value of another type, or an unknown value.
    #[error("spec: {0}")]
    Type(#[from] serde_json::Error),
    /// What the types do not exclude.
    #[error("spec: {}", .0.join("; "))]
    Mistakes(Vec<String>),
    /// A value that is invalid.
    #[error("spec.{}", ops::log::chain(.0))]
    Cluster(#[from] ClusterReason),
}

/// Reads the specification of the object with this name.
pub(super) fn read(name: &str, spec: &Value) -> Result<Spec, SpecError> {
    let name: ClusterName = name.parse()?;
    let mut fields = spec.as_object().cloned().unwrap_or_default();
    if let Some(unknown) = fields.keys().find(|key| !KEYS.contains(&key.as_str())) {
        return Err(SpecError::UnknownKey(unknown.clone()));
    }
    let policy = fields.remove("deletionPolicy").filter(|policy| !policy.is_null());
    let deletion_policy = policy.map(DeletionPolicy::deserialize).transpose()?.unwrap_or_default();
    let kubeconfig = fields.remove("kubeconfig").filter(|kubeconfig| !kubeconfig.is_null());
    let kubeconfig = kubeconfig.map(User::deserialize).transpose()?;
    // Server-side apply and clients of typed APIs write null for a value that is not set.
    fields.retain(|_, value| !value.is_null());
    fields.insert("name".to_owned(), name.as_str().into());
    let cluster = VirtualCluster::deserialize(Value::Object(fields))?;
    let mut mistakes = mistakes::of(&cluster);
    mistakes.extend(kubeconfig.as_ref().and_then(User::mistake).map(|mistake| format!("kubeconfig: {mistake}")));
    if !mistakes.is_empty() {
        return Err(SpecError::Mistakes(mistakes));
    }
    clusters::check(&cluster)?;
    Ok(Spec { cluster, deletion_policy, kubeconfig })
}

/// The policy of a specification that may be invalid. An unknown policy deletes nothing.
pub(super) fn deletion_policy(spec: &Value) -> DeletionPolicy {
    DeletionPolicy::deserialize(&spec["deletionPolicy"]).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn it_has_the_keys_of_the_configuration_file() {
        let spec = json!({
            "nodeSelector": {"location": "beijing"}, "nodeGroup": null, "deletionPolicy": "Delete",
            "tolerations": [{"key": "location", "value": "beijing", "effect": "NoSchedule"}],
            "podSecurity": {"enforce": "baseline"}, "hostTokens": {"prefix": "sso:"}, "externalIPs": ["203.0.113.0/24"],
            "shares": {"objects": 10, "objectsOf": {"secrets": 5}}, "karmada": {"region": "north", "labels": {"tier": "edge"}},
            "kubeconfig": {"user": "jane"},
        });
        let Spec { cluster, deletion_policy, kubeconfig } = read("ke-beijing", &spec).unwrap();
        assert_eq!((cluster.name.as_str(), deletion_policy), ("ke-beijing", DeletionPolicy::Delete));
        assert_eq!((cluster.shares.objects, cluster.shares.namespaces), (10, 5000), "the defaults of the file");
        assert_eq!(cluster.labels().len(), 1);
        assert_eq!(kubeconfig.unwrap().name, "jane");
    }

    #[test]
    fn mistakes_are_named() {
        let nodes = json!({"a": "b"});
        for (name, spec, expect) in [
            ("a.b", json!({"nodeSelector": nodes}), "metadata.name is not the name of a virtual cluster"),
            ("a", json!({}), "no nodeSelector, nodeExpressions or nodeGroup"),
            ("a", Value::Null, "no nodeSelector, nodeExpressions or nodeGroup"),
            ("a", json!({"nodeSelector": nodes, "labels": {}}), "does not know spec.labels; update the agent"),
            ("a", json!({"nodeSelector": nodes, "karmada": {"region": ""}}), "karmada: the provider, the region"),
            ("a", json!({"nodeSelector": ["a"]}), "spec: invalid type"),
            ("a", json!({"nodeSelector": nodes, "kubeconfig": {"user": ""}}), "kubeconfig: the user and each group"),
            ("a", json!({"nodeSelector": nodes, "kubeconfig": {}}), "missing field `user`"),
            ("a", json!({"nodeSelector": nodes, "deletionPolicy": "Keep"}), "unknown variant `Keep`"),
            (
                "a",
                json!({"nodeSelector": nodes, "shares": {"objectsOf": {"Secrets": 1}}}),
                "`Secrets` is not a resource",
            ),
            ("a", json!({"nodeSelector": nodes, "tolerations": [{}]}), "spec.tolerations[0]: operator must be Exists"),
            ("a", json!({"nodeSelector": nodes, "externalIPs": ["x"]}), "spec.externalIPs[0]: not an address range"),
            ("a", json!({"nodeSelector": nodes, "name": "b"}), "does not know spec.name"),
        ] {
            let error = read(name, &spec).unwrap_err().to_string();
            assert!(error.contains(expect), "{expect:?} in {error:?}");
        }
    }

    #[test]
    fn the_policy_of_an_invalid_specification_counts() {
        assert_eq!(deletion_policy(&json!({"deletionPolicy": "Delete", "nodeSelector": 1})), DeletionPolicy::Delete);
        assert_eq!(deletion_policy(&json!({"deletionPolicy": "delete"})), DeletionPolicy::Orphan);
        assert_eq!(deletion_policy(&Value::Null), DeletionPolicy::Orphan);
    }
}

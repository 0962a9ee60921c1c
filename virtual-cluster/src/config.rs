//! The configuration of virtual clusters.

mod node_expression;
mod node_label;

use std::collections::{BTreeMap, BTreeSet};

use kube_wire::selector::{LabelSelector, LabelSelectorError};
use protocol::registration::Mode;
use protocol::{ClusterName, MemberSettings, Offer};
use rewrite::name::NODE_PREFIX;
use rewrite::pod_security::Level;
use serde::Deserialize;

pub use crate::policy::Custom;
pub use node_expression::NodeExpression;
use node_label::is_left_to_kubelets;

/// A slice of the host cluster.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VirtualCluster {
    /// The name, which is the same in both configurations.
    pub name: ClusterName,
    /// The labels of its nodes, in addition to that of the node group: see [`VirtualCluster::labels`].
    #[serde(default)]
    pub node_selector: BTreeMap<String, String>,
    /// What is required of the labels of its nodes, in addition.
    #[serde(default)]
    pub node_expressions: Vec<NodeExpression>,
    /// The NodeGroup of KubeEdge that its nodes belong to.
    #[serde(default)]
    pub node_group: Option<String>,
    /// The tolerations that every pod template gets.
    #[serde(default)]
    pub tolerations: Vec<serde_json::Value>,
    /// The level of Pod Security.
    #[serde(default)]
    pub pod_security: PodSecurity,
    /// Whether its endpoint accepts bearer tokens of the host that belong to no service account.
    #[serde(default)]
    pub host_tokens: Option<HostTokens>,
    /// The ranges in which its Services may have external addresses.
    #[serde(default, rename = "externalIPs")]
    pub external_ips: Vec<String>,
    /// What it may store on the host.
    #[serde(default)]
    pub shares: Shares,
    /// What Karmada's policies can select it by.
    #[serde(default)]
    pub karmada: Option<MemberSettings>,
}

/// What a virtual cluster may store on the host.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Shares {
    /// The number of its namespaces, including those that every cluster has.
    pub namespaces: usize,
    /// The number of its objects of each resource.
    pub objects: u64,
    /// The same for single resources, such as `secrets` or `deployments.apps`.
    #[serde(rename = "objectsOf")]
    pub exceptions: BTreeMap<String, u64>,
    /// The size of all its objects, in MiB of JSON.
    #[serde(rename = "storageMiB")]
    pub storage_mib: u64,
    /// The size of all versions of objects that are written within ten minutes, in MiB of JSON.
    #[serde(rename = "writtenMiB")]
    pub written_mib: u64,
}

/// The minimum that Pod Security enforces in a virtual cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSecurity {
    /// The minimum level.
    pub enforce: PodSecurityLevel,
}

/// A level of the Pod Security Standards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PodSecurityLevel {
    /// Only the level in the labels of a Namespace is enforced.
    #[default]
    Privileged,
    /// Known privilege escalations are refused.
    Baseline,
    /// Pods are hardened.
    Restricted,
}

/// How tokens of the host that belong to no service account are accepted.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct HostTokens {
    /// The prefix of the names of their users and groups.
    pub prefix: String,
}

/// A custom resource, and how virtual clusters see it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CustomResource {
    /// The name of its CustomResourceDefinition: `plural.group`.
    pub resource: String,
    /// How its objects are served.
    pub objects: Custom,
}

// === impl VirtualCluster ===

impl VirtualCluster {
    /// The label that KubeEdge sets on the nodes of a `nodegroups.apps.kubeedge.io`, which selects nodes by name or by
    /// label (`LabelBelongingTo` in its `cloud/pkg/controllermanager/nodegroup`).
    pub const BELONGING_TO: &str = "apps.kubeedge.io/belonging-to";

    /// The value of the [label of its own](Self::own_label).
    pub const OWN_LABEL_VALUE: &str = "true";

    /// All labels by which the cluster selects its nodes: those of the configuration, and its own label if it has expressions.
    pub fn labels(&self) -> BTreeMap<String, String> {
        let own = (!self.node_expressions.is_empty())
            .then(|| (Self::own_label(self.name.as_str()), Self::OWN_LABEL_VALUE.to_owned()));
        self.configured_labels().chain(own).collect()
    }

    /// The labels of the configuration.
    fn configured_labels(&self) -> impl Iterator<Item = (String, String)> {
        let group = self.node_group.iter().map(|group| (Self::BELONGING_TO.to_owned(), group.clone()));
        self.node_selector.clone().into_iter().chain(group)
    }

    /// The label with which the agent marks the nodes of this virtual cluster if it has expressions: the node selector of a pod has
    /// only labels.
    pub fn own_label(name: &str) -> String {
        format!("{NODE_PREFIX}{name}")
    }

    /// What the configuration requires of the labels of nodes.
    ///
    /// # Errors
    /// A label is invalid.
    pub fn configured_selector(&self) -> Result<LabelSelector, LabelSelectorError> {
        let labels: Vec<_> = self.configured_labels().collect();
        let labels = labels.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let expressions = self.node_expressions.iter().map(NodeExpression::selector);
        Ok(expressions.fold(LabelSelector::from_labels(labels)?, LabelSelector::and))
    }

    /// The offer of it to a proxy-server.
    pub fn offer(&self) -> Offer {
        Offer { member: self.karmada.clone(), ..Offer::new(self.name.clone(), Mode::Virtual) }
    }

    /// Whether a node can join the virtual cluster by itself, because a kubelet may set all labels that the configuration requires.
    pub fn trusts_nodes(&self) -> bool {
        let required = self.node_expressions.iter().filter(|expression| expression.requires_label());
        let required = required.map(|expression| expression.key().to_owned());
        self.configured_labels().map(|(key, _)| key).chain(required).all(|key| is_left_to_kubelets(&key))
    }

    /// The keys of the labels that decide which nodes it has, sorted.
    pub fn selecting_keys(&self) -> BTreeSet<String> {
        self.configured_labels().map(|(key, _)| key).chain(self.expression_keys()).collect()
    }

    /// The keys of the labels that the expressions test.
    pub fn expression_keys(&self) -> BTreeSet<String> {
        self.node_expressions.iter().map(|expression| expression.key().to_owned()).collect()
    }

    /// Whether the configuration has no requirement for nodes. The virtual cluster would then own every node of the host.
    pub fn selects_all_nodes(&self) -> bool {
        self.node_selector.is_empty() && self.node_expressions.is_empty() && self.node_group.is_none()
    }
}

// === impl Shares ===

impl Shares {
    /// The maximum number of CustomResourceDefinitions, unless `exceptions` sets it. Each one costs an API server far more than its
    /// size: a watch cache, and a part of every OpenAPI document.
    const MAX_DEFINITIONS: u64 = 200;

    /// The number of objects of a resource, such as `secrets` or `deployments.apps`.
    pub fn objects_of(&self, resource: &str) -> u64 {
        let default = || match resource {
            "customresourcedefinitions.apiextensions.k8s.io" => self.objects.min(Self::MAX_DEFINITIONS),
            "namespaces" => u64::try_from(self.namespaces).unwrap_or(u64::MAX),
            _ => self.objects,
        };
        self.exceptions.get(resource).copied().unwrap_or_else(default)
    }

    /// The size of all objects, in bytes.
    pub fn bytes(&self) -> u64 {
        self.storage_mib.saturating_mul(1024 * 1024)
    }

    /// The size of all versions of objects that were written within ten minutes, in bytes.
    pub fn written_bytes(&self) -> u64 {
        self.written_mib.saturating_mul(1024 * 1024)
    }
}

impl Default for Shares {
    fn default() -> Self {
        Self { namespaces: 5000, objects: 50_000, exceptions: BTreeMap::new(), storage_mib: 1024, written_mib: 512 }
    }
}

// === impl PodSecurity ===

impl PodSecurity {
    /// The enforced level, if any.
    pub fn level(self) -> Option<Level> {
        match self.enforce {
            PodSecurityLevel::Privileged => None,
            PodSecurityLevel::Baseline => Some(Level::Baseline),
            PodSecurityLevel::Restricted => Some(Level::Restricted),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_resources_have_other_limits() {
        let definitions = "customresourcedefinitions.apiextensions.k8s.io";
        let limits = |shares: &Shares| [definitions, "namespaces", "pods"].map(|resource| shares.objects_of(resource));
        assert_eq!(limits(&Shares::default()), [200, 5000, 50_000]);
        assert_eq!(limits(&Shares { objects: 10, namespaces: 20, ..Shares::default() }), [10, 20, 10]);
        let exceptions = BTreeMap::from([(definitions.to_owned(), 900)]);
        assert_eq!(limits(&Shares { exceptions, ..Shares::default() }), [900, 5000, 50_000]);
    }
}

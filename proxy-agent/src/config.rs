//! The proxy-agent's configuration.

mod check;
mod node_label;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use kube_wire::gvr::GroupResource;
use ops::config::{Document, Duration, FilePath, Located, Problems};
use ops::listen::ListenAddr;
use protocol::registration::Mode;
use protocol::{Authority, ClusterName, Offer};
use rewrite::pod_security::Level;
use rewrite::request::{PROTECTED_BY_DEFAULT, ProtectedKeys};
use serde::Deserialize;

pub use host_client::config::Host;

use crate::namespaces::annotations::Reserved;
pub use crate::policy::Custom;
use crate::policy::Customs;
use crate::shared::Kind;

/// `kind: ProxyAgentConfiguration`. Every key is described in `configs/proxy-agent.yaml`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProxyAgentConfiguration {
    /// The agents' listeners of the proxy-servers; every one is dialled.
    pub servers: Vec<Located<Authority>>,
    /// Who this agent is.
    pub identity: Identity,
    /// The API server behind this agent; needed where there are virtual clusters.
    #[serde(default)]
    pub host: Option<Located<Host>>,
    /// Slices of the host cluster.
    #[serde(default)]
    pub virtual_clusters: Vec<Located<VirtualCluster>>,
    /// What virtual clusters may write of what they share.
    #[serde(default)]
    pub shared_objects: SharedObjects,
    /// Labels and annotations of Namespaces that clients may not write, in addition to those that are always protected.
    #[serde(default = "default_protected_keys")]
    pub protected_namespace_keys: Vec<Located<String>>,
    /// Whole clusters.
    #[serde(default)]
    pub physical_clusters: Vec<Located<PhysicalCluster>>,
    /// What becomes of a node port that another virtual cluster has.
    #[serde(default)]
    pub taken_node_ports: TakenNodePorts,
    /// How custom resources without namespaces are served.
    #[serde(default)]
    pub custom_resources: Vec<Located<CustomResource>>,
    /// What else may be dialled from the cloud: `NETWORK/PREFIX:PORT` or `HOST:PORT`.
    #[serde(default)]
    pub destinations: Vec<Located<String>>,
    /// Where to listen.
    #[serde(default)]
    pub listeners: Listeners,
    /// How long streams may take to end when the process is asked to stop.
    #[serde(default = "default_drain")]
    pub drain: Duration,
}

/// A client certificate, and who the proxy-server must be.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Identity {
    /// PEM; its common name is this agent's identity.
    pub certificate: Located<FilePath>,
    /// PEM, PKCS#8.
    pub key: Located<FilePath>,
    /// PEM; signed the proxy-servers' certificates.
    #[serde(rename = "serverCA")]
    pub server_ca: Located<FilePath>,
}

/// A slice of the host cluster.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VirtualCluster {
    /// Its name in both configurations.
    pub name: ClusterName,
    /// The labels that its nodes have, besides that of the node group: see [`VirtualCluster::labels`].
    #[serde(default)]
    pub node_selector: BTreeMap<String, String>,
    /// The NodeGroup of KubeEdge that its nodes belong to.
    #[serde(default)]
    pub node_group: Option<String>,
    /// Put into every pod template.
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
    /// Only the level that a Namespace asks for is enforced.
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

/// What becomes of a Service whose node port another virtual cluster of the host has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TakenNodePorts {
    /// It gets another one, and is shown with the one that it asked for.
    #[default]
    Replace,
    /// It is refused, as by any API server.
    Refuse,
}

/// A custom resource without namespaces, and how virtual clusters see it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CustomResource {
    /// The name of its CustomResourceDefinition: `plural.group`.
    pub resource: String,
    /// What is done with its objects.
    pub objects: Custom,
}

/// What virtual clusters may write of what they share.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SharedObjects {
    /// Kinds, as `resource.group`.
    pub writable: Vec<Located<String>>,
    /// Restrictions on CustomResourceDefinitions of virtual clusters.
    pub custom_resource_definitions: CustomResourceDefinitions,
    /// What a StorageClass of a virtual cluster may say.
    pub storage_classes: StorageClasses,
}

/// Restrictions on CustomResourceDefinitions of virtual clusters.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CustomResourceDefinitions {
    /// API groups that belong to the operator. Each includes its subdomains.
    pub reserved_groups: Vec<String>,
    /// Exceptions to `reserved_groups`. Each includes its subdomains.
    pub allowed_groups: Vec<Located<String>>,
}

/// What a StorageClass of a virtual cluster may say.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StorageClasses {
    /// Its `provisioner` is one of these.
    pub provisioners: Vec<String>,
    /// Its `mountOptions` are among these.
    pub mount_options: Vec<String>,
}

/// A whole cluster.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PhysicalCluster {
    /// Its name in both configurations.
    pub name: ClusterName,
    /// Its API server, as this agent reaches it.
    pub api_server: Authority,
}

/// Addresses of the listeners.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default)]
pub struct Listeners {
    /// Probes.
    pub probes: Located<ListenAddr>,
    /// The operator: metrics and status.
    pub admin: Located<ListenAddr>,
}

fn default_protected_keys() -> Vec<Located<String>> {
    PROTECTED_BY_DEFAULT.map(|pattern| pattern.to_owned().into()).into()
}

fn default_drain() -> Duration {
    Duration::new(std::time::Duration::from_secs(30))
}

// === impl ProxyAgentConfiguration ===

impl ProxyAgentConfiguration {
    /// How custom resources without namespaces are served.
    pub(crate) fn customs(&self) -> Customs {
        Customs::new(self.custom_resources.iter().map(|custom| (custom.resource.clone(), custom.objects)))
    }

    /// What clients may not write in namespaces of virtual clusters.
    pub fn reserved(&self) -> Reserved {
        let resources = self.custom_resources.iter().filter(|custom| !custom.objects.is_written());
        Reserved { keys: self.protected_keys(), resources: resources.map(|custom| custom.resource.clone()).collect() }
    }

    /// Labels and annotations of Namespaces that clients may not write.
    pub fn protected_keys(&self) -> ProtectedKeys {
        // Others have been refused by then.
        ProtectedKeys::new(self.protected_namespace_keys.iter().filter_map(|pattern| pattern.parse().ok()))
    }

    /// What this agent tells a proxy-server that it serves.
    pub fn offers(&self) -> Vec<Offer> {
        let virtuals =
            self.virtual_clusters.iter().map(|cluster| Offer { name: cluster.name.clone(), mode: Mode::Virtual });
        let physicals =
            self.physical_clusters.iter().map(|cluster| Offer { name: cluster.name.clone(), mode: Mode::Physical });
        virtuals.chain(physicals).collect()
    }
}

impl Document for ProxyAgentConfiguration {
    const KIND: &'static str = "ProxyAgentConfiguration";

    fn check(&self, problems: &mut Problems) {
        check::check(self, problems);
    }
}

// === impl VirtualCluster ===

impl VirtualCluster {
    /// The label that KubeEdge puts on the nodes of a `nodegroups.apps.kubeedge.io`, which names them one by one or by
    /// labels of theirs: `LabelBelongingTo` in its `cloud/pkg/controllermanager/nodegroup`.
    pub const BELONGING_TO: &str = "apps.kubeedge.io/belonging-to";

    /// All the labels that its nodes have.
    pub fn labels(&self) -> BTreeMap<String, String> {
        let group = self.node_group.iter().map(|group| (Self::BELONGING_TO.to_owned(), group.clone()));
        self.node_selector.clone().into_iter().chain(group).collect()
    }
}

// === impl PodSecurity ===

impl PodSecurity {
    /// The level that is enforced, if one is.
    pub(crate) fn level(self) -> Option<Level> {
        match self.enforce {
            PodSecurityLevel::Privileged => None,
            PodSecurityLevel::Baseline => Some(Level::Baseline),
            PodSecurityLevel::Restricted => Some(Level::Restricted),
        }
    }
}

// === impl SharedObjects ===

impl SharedObjects {
    /// Whether virtual clusters may write objects of this kind.
    pub(crate) fn lets_write(&self, resource: GroupResource<'_>) -> bool {
        let is_listed = |name: &str| name.split_once('.') == Some((resource.resource, resource.group));
        self.writable.iter().any(|writable| is_listed(writable))
    }

    /// Whether this is a write of such a kind, which roles decide about then.
    pub(crate) fn let_do(&self, resource: GroupResource<'_>, subresource: &str, verb: &str) -> bool {
        let is_write = match subresource {
            "" => matches!(verb, "create" | "update" | "patch" | "delete" | "deletecollection"),
            "status" => {
                matches!(verb, "update" | "patch") && Kind::of(resource) == Some(Kind::CustomResourceDefinition)
            }
            _ => false,
        };
        is_write && self.lets_write(resource)
    }
}

impl Default for SharedObjects {
    fn default() -> Self {
        Self {
            writable: vec![Kind::CustomResourceDefinition.to_string().into()],
            custom_resource_definitions: CustomResourceDefinitions::default(),
            storage_classes: StorageClasses::default(),
        }
    }
}

// === impl CustomResourceDefinitions ===

impl CustomResourceDefinitions {
    /// Atoll's own API group. It is always reserved.
    pub(crate) const OWN_GROUP: &str = "atoll.dev";

    /// Whether virtual clusters may not create definitions in this API group.
    pub(crate) fn reserves(&self, group: &str) -> bool {
        let is_allowed = self.allowed_groups.iter().any(|allowed| is_within(group, allowed));
        let is_reserved = self.reserved_groups.iter().any(|reserved| is_within(group, reserved));
        is_within(group, Self::OWN_GROUP) || (is_reserved && !is_allowed)
    }
}

impl Default for CustomResourceDefinitions {
    fn default() -> Self {
        // The groups that kube-apiserver protects (`IsProtectedCommunityGroup` in apiextensions-apiserver's `apihelpers`),
        // those of the special interest groups, and those of KubeEdge, whose controllers run on most hosts.
        let reserved = ["k8s.io", "kubernetes.io", "x-k8s.io", "kubeedge.io"];
        Self { reserved_groups: reserved.map(str::to_owned).into(), allowed_groups: Vec::new() }
    }
}

/// Whether an API group is `domain` or below it.
fn is_within(group: &str, domain: &str) -> bool {
    group.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

// === impl Listeners ===

impl Default for Listeners {
    fn default() -> Self {
        Self {
            probes: ListenAddr::from(SocketAddr::from(([0, 0, 0, 0], 8093))).into(),
            admin: ListenAddr::from(SocketAddr::from(([127, 0, 0, 1], 8094))).into(),
        }
    }
}

#[cfg(test)]
mod tests;

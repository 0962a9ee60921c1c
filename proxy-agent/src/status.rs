//! What a proxy-agent says of itself to its operator: the document behind `/status` and `atoll status`.
//!
//! [`AgentStatus`] is for machines, and versioned as configurations are; [`text`](AgentStatus::text) is the same for
//! people. What is *not* here: where the figures come from (`app::observe`), and anything secret: names, counts and
//! dates only.

mod text;

use ops::date::Moment;
use serde::{Deserialize, Serialize};

/// `kind` of the document.
pub const KIND: &str = "AgentStatus";

/// A proxy-agent as it is now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentStatus {
    /// `atoll.dev/v1alpha1`.
    pub api_version: String,
    /// [`KIND`].
    pub kind: String,
    /// The identity of its certificate.
    pub agent: String,
    /// The software's version.
    pub version: String,
    /// When it was asked.
    pub time: Moment,
    /// Whether everything below is.
    pub ready: bool,
    /// One for each address of each proxy-server.
    pub tunnels: Vec<TunnelStatus>,
    /// The virtual clusters of the configuration in force, by name.
    pub virtual_clusters: Vec<VirtualClusterStatus>,
    /// The physical clusters, by name. Whether they answer is found out when they are asked.
    pub physical_clusters: Vec<PhysicalClusterStatus>,
    /// The host cluster, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostStatus>,
    /// The certificates of `identity`, and when they end.
    pub certificates: Vec<CertificateStatus>,
}

/// The way to one proxy-server process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TunnelStatus {
    /// As configured.
    pub server: String,
    /// What the name resolves to; absent if it does not, or if a corporate proxy resolves it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Whether the tunnel is up.
    pub ready: bool,
    /// Since when it is up or down.
    pub since: Moment,
    /// The proxy-server process at the other end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy_server: Option<String>,
    /// The version of the tunnel contract that it speaks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// Why it is down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// A slice of the host cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VirtualClusterStatus {
    /// Its name.
    pub name: String,
    /// Whether it is founded (its root namespace, its four namespaces and its administrators' binding are there) and
    /// the host's policies for it are in force.
    pub ready: bool,
    /// Its nodes, by label selector.
    pub node_selector: String,
    /// How many nodes it has.
    pub nodes: usize,
    /// How many namespaces it has.
    pub namespaces: usize,
    /// Why it is not ready, or what is not safe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// A whole cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PhysicalClusterStatus {
    /// Its name.
    pub name: String,
    /// Its API server.
    pub api_server: String,
}

/// The host cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HostStatus {
    /// Whether an API server can be asked, and all namespaces have been told once.
    pub ready: bool,
    /// Whether all namespaces have been told once; before that, no virtual cluster can be served.
    pub namespaces_synced: bool,
    /// Requests whose answers have not ended, watches included.
    pub in_flight: usize,
    /// Its API servers, in order of preference.
    pub servers: Vec<HostServerStatus>,
}

/// One API server of the host cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HostServerStatus {
    /// Where.
    pub address: String,
    /// Whether it answers.
    pub ready: bool,
    /// Connections that take requests.
    pub connections: usize,
    /// Requests on them.
    pub streams: usize,
}

/// A certificate of the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CertificateStatus {
    /// Where the configuration names it.
    pub name: String,
    /// When it ends.
    pub not_after: Moment,
}

// === impl AgentStatus ===

impl AgentStatus {
    /// Whether every part is ready.
    pub(crate) fn is_all_ready(&self) -> bool {
        // At least one tunnel is wanted by every configuration.
        !self.tunnels.is_empty()
            && self.tunnels.iter().all(|tunnel| tunnel.ready)
            && self.virtual_clusters.iter().all(|cluster| cluster.ready)
            && self.host.as_ref().is_none_or(|host| host.ready)
    }
}

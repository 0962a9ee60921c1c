//! The status of a proxy-agent for its operator: the document behind `/status` and `atoll status`.
//!
//! [`AgentStatus`] is the form for programs. It is versioned like configurations. [`text`] is the
//! form for people. What is *not* here: the collection of the figures (`app::standing`), and secrets. The document has
//! only names, counts and dates.

pub mod text;

use ops::date::Moment;
use serde::{Deserialize, Serialize};

/// The `kind` of the document.
pub const KIND: &str = "AgentStatus";

/// The current status of a proxy-agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentStatus {
    /// `atoll.dev/v1alpha1`.
    pub api_version: String,
    /// [`KIND`].
    pub kind: String,
    /// The identity of its certificate.
    pub agent: String,
    /// The version of the software.
    pub version: String,
    /// The time of the status.
    pub time: Moment,
    /// Whether everything below is ready.
    pub ready: bool,
    /// The tunnels: one for each address of each proxy-server, and more while the agent is busy.
    pub tunnels: Vec<TunnelStatus>,
    /// The virtual clusters of the configuration in force, by name.
    pub virtual_clusters: Vec<VirtualClusterStatus>,
    /// The physical clusters, by name. The agent does not check whether their API servers respond.
    pub physical_clusters: Vec<PhysicalClusterStatus>,
    /// The host cluster, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostStatus>,
    /// The certificates of `identity`, and when they expire.
    pub certificates: Vec<CertificateStatus>,
}

/// The tunnel to one proxy-server process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TunnelStatus {
    /// The configured address.
    pub server: String,
    /// The address to which the name resolves; absent if it does not resolve, or if a corporate proxy resolves it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Whether the tunnel is up.
    pub ready: bool,
    /// The time since which it has been up or down.
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

/// A virtual cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VirtualClusterStatus {
    /// The name.
    pub name: String,
    /// Whether it is provisioned (its root namespace, its four namespaces and its administrators' binding exist) and
    /// the host's policies are in force.
    pub ready: bool,
    /// The label selector of its nodes.
    pub node_selector: String,
    /// The number of its nodes.
    pub nodes: usize,
    /// The number of its namespaces.
    pub namespaces: usize,
    /// Why it is not ready, or not secure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// A physical cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PhysicalClusterStatus {
    /// The name.
    pub name: String,
    /// The address of its API server.
    pub api_server: String,
}

/// The host cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HostStatus {
    /// Whether an API server is available, and the first list of namespaces is complete.
    pub ready: bool,
    /// Whether the first list of namespaces is complete. Before that, no virtual cluster can be served.
    pub namespaces_synced: bool,
    /// The number of requests whose responses have not ended, including watches.
    pub in_flight: usize,
    /// Its API servers, in order of preference.
    pub servers: Vec<HostServerStatus>,
}

/// One API server of the host cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HostServerStatus {
    /// The address.
    pub address: String,
    /// Whether it responds.
    pub ready: bool,
    /// The number of connections that accept requests.
    pub connections: usize,
    /// The number of requests on them.
    pub streams: usize,
}

/// A certificate of the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CertificateStatus {
    /// The key of the configuration that names it.
    pub name: String,
    /// When it expires.
    pub not_after: Moment,
}

// === impl AgentStatus ===

impl AgentStatus {
    /// Whether every part is ready.
    pub(crate) fn is_all_ready(&self) -> bool {
        // Every configuration has at least one proxy-server, and so at least one tunnel.
        !self.tunnels.is_empty()
            && self.tunnels.iter().all(|tunnel| tunnel.ready)
            && self.virtual_clusters.iter().all(|cluster| cluster.ready)
            && self.host.as_ref().is_none_or(|host| host.ready)
    }
}

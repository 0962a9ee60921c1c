//! The status of a proxy-agent for its operator: the document behind `/status` and `atoll status`.
//!
//! [`AgentStatus`] is the form for programs. It is versioned like configurations. [`report`]
//! is the form for people. What is *not* here: the collection of the figures (`app::standing`), and secrets. The document has
//! only names, counts and dates.

pub mod report;
mod shares;

use ops::date::Moment;
use request_metrics::LastError;
use serde::{Deserialize, Serialize};

pub use shares::SharesStatus;

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
    /// The clusters that a connected proxy-server refuses, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused_clusters: Vec<RefusedClusterStatus>,
    /// The virtual clusters of the configuration in force, by name.
    pub virtual_clusters: Vec<VirtualClusterStatus>,
    /// The physical clusters, by name. The agent does not check whether their API servers respond.
    pub physical_clusters: Vec<PhysicalClusterStatus>,
    /// The host cluster, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostStatus>,
    /// What the hub shares, by path. Empty if the configuration shares no watches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub feeds: Vec<FeedStatus>,
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
    /// Why it is down, or why the proxy-server has refused the list of clusters as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// A cluster that a proxy-server refuses. The others are not affected.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RefusedClusterStatus {
    /// The name.
    pub cluster: String,
    /// The configured address of the proxy-server.
    pub server: String,
    /// For programs, such as `NotGranted` and `Conflict`.
    pub reason: String,
    /// For people.
    pub message: String,
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
    /// The names of the first ones, in order. At most ten.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub node_names: Vec<String>,
    /// The number of its namespaces.
    pub namespaces: usize,
    /// The number of objects in them.
    #[serde(default)]
    pub objects: u64,
    /// The size of these objects as JSON, in bytes.
    #[serde(default)]
    pub bytes: u64,
    /// The limits for stored objects that it has reached, such as `secrets=50000`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reached_limits: Vec<String>,
    /// What it uses of what all virtual clusters share. Absent in the status of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shares: Option<SharesStatus>,
    /// The last errors of the agent in responses to its clients, the newest first. At most three.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub last_errors: Vec<LastError>,
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
    /// The addresses of its API servers, with commas between.
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

/// A resource of the host that the hub watches once for all virtual clusters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FeedStatus {
    /// The path of the resource: `/apis/apps/v1/deployments`.
    pub path: String,
    /// The number of watches of clients that it serves.
    pub watches: usize,
    /// The number of objects in memory.
    pub objects: usize,
    /// The number of events in memory.
    pub events: usize,
    /// The age of the oldest event in memory, in seconds.
    pub window_seconds: u64,
    /// The memory of the objects and events, in bytes.
    pub bytes: usize,
    /// Virtual clusters that the hub does not serve at the moment, because their namespaces have changed or to free memory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub closed: Vec<String>,
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
            && self.tunnels.iter().all(|tunnel| tunnel.ready && tunnel.message.is_none())
            && self.refused_clusters.is_empty()
            && self.virtual_clusters.iter().all(|cluster| cluster.ready)
            && self.host.as_ref().is_none_or(|host| host.ready)
    }
}

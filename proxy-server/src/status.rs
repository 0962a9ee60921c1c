//! What a proxy-server says of itself to its operator: the document behind `/status` and `atoll status`.
//!
//! [`ServerStatus`] is for machines, and versioned as configurations are; [`text`](ServerStatus::text) is the same for
//! people. What is *not* here: where the figures come from (`app::observe`), and anything secret: names, counts and
//! dates only.

mod text;

use ops::date::Moment;
use protocol::registration::Mode;
use serde::{Deserialize, Serialize};

use crate::karmada::Membership;

/// `kind` of the document.
pub const KIND: &str = "ServerStatus";

/// A proxy-server as it is now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerStatus {
    /// `atoll.dev/v1alpha1`.
    pub api_version: String,
    /// [`KIND`].
    pub kind: String,
    /// The software's version.
    pub version: String,
    /// When it was asked.
    pub time: Moment,
    /// Whether every cluster has an agent connected. Whether the agents can serve them, their own statuses show.
    pub ready: bool,
    /// The clusters of the configuration in force, by name.
    pub clusters: Vec<ClusterStatus>,
    /// The tunnels that are up, by agent.
    pub tunnels: Vec<TunnelStatus>,
    /// The clusters that are to be members of Karmada, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memberships: Vec<Membership>,
    /// The authorities, and when they end. Certificates of endpoints are minted under the serving CA and renewed.
    pub certificates: Vec<CertificateStatus>,
}

/// One cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterStatus {
    /// Its name.
    pub name: String,
    /// How it is carried.
    pub mode: Mode,
    /// Whether an agent is connected that may serve it.
    pub ready: bool,
    /// Which one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// How many tunnels share its load.
    pub tunnels: usize,
    /// Since when it has had an agent without a break, or none; absent if it never had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Moment>,
    /// Why it has no agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// One tunnel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TunnelStatus {
    /// Whose certificate it is.
    pub agent: String,
    /// Which process of that agent.
    pub instance: String,
    /// The agent's software version.
    pub version: String,
    /// The version of the tunnel contract that it speaks.
    pub protocol: String,
    /// Since when it is up.
    pub since: Moment,
    /// The clusters that it serves.
    pub clusters: Vec<String>,
    /// Streams open now.
    pub streams: usize,
    /// The last measured round trip.
    pub round_trip_micros: u64,
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

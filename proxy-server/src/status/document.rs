//! The document for machines.

use ops::date::Moment;
use ops::used::Used;
use protocol::registration::Mode;
use request_metrics::LastError;
use serde::{Deserialize, Serialize};

use crate::karmada::Membership;

/// `kind` of the document.
pub const KIND: &str = "ServerStatus";

/// The state of a proxy-server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerStatus {
    /// `atoll.dev/v1alpha1`.
    pub api_version: String,
    /// [`KIND`].
    pub kind: String,
    /// The version of the software.
    pub version: String,
    /// The time of the request.
    pub time: Moment,
    /// Whether every cluster has an agent connected. Only the status of an agent shows whether it can serve its
    /// clusters.
    pub ready: bool,
    /// The clusters of the current configuration, by name.
    pub clusters: Vec<ClusterStatus>,
    /// The tunnels that are up, by agent.
    pub tunnels: Vec<TunnelStatus>,
    /// The networks between this proxy-server and the agents that were connected since it started, by agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<LinkStatus>,
    /// The clusters that connected agents offer and that this proxy-server refuses, by name. At most 100 of each agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused_offers: Vec<RefusedOfferStatus>,
    /// The number of all other refused clusters.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub other_refused_offers: usize,
    /// The clusters that should be members of Karmada, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memberships: Vec<Membership>,
    /// The CAs and `peers.identity`, and when they expire. The serving CA issues the certificates of endpoints and
    /// renews them.
    pub certificates: Vec<CertificateStatus>,
    /// The join tokens that are still valid, the oldest first. At most 100.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tokens: Vec<TokenStatus>,
    /// The list of revoked certificates that is in force. Absent if the configuration has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revocations: Option<RevocationsStatus>,
}

/// One cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterStatus {
    /// Its name.
    pub name: String,
    /// Whether it is virtual or physical.
    pub mode: Mode,
    /// Whether an agent that may serve it is connected.
    pub ready: bool,
    /// The identity of that agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The number of tunnels that share its load.
    pub tunnels: usize,
    /// Since when it has had an agent without interruption, or none. Absent if it never had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Moment>,
    /// How often its last tunnel has ended since this proxy-server started.
    #[serde(default)]
    pub interruptions: u64,
    /// Requests of its clients whose response has not ended. Absent in the status of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams: Option<Used>,
    /// Connections of its authenticated clients. A physical cluster has none, because it authenticates them itself. Absent in the status of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<Used>,
    /// The last errors of Atoll in responses to its clients, the newest first. At most three.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub last_errors: Vec<LastError>,
    /// Why it has no agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// One tunnel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TunnelStatus {
    /// The identity in its certificate.
    pub agent: String,
    /// The process of that agent.
    pub instance: String,
    /// The version of the agent's software.
    pub version: String,
    /// The protocol version of the agent.
    pub protocol: String,
    /// When it was registered.
    pub since: Moment,
    /// The clusters that it serves.
    pub clusters: Vec<String>,
    /// The number of open streams.
    pub streams: usize,
    /// The last measured round trip.
    pub round_trip_micros: u64,
    /// When the certificate expires with which the agent has opened it. Absent in the status of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate_not_after: Option<Moment>,
}

/// The network between a proxy-server and an agent. All figures except `tunnels` and `roundTripMicros` are totals since
/// the proxy-server started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LinkStatus {
    /// The identity of the agent.
    pub agent: String,
    /// The number of tunnels that are up.
    pub tunnels: usize,
    /// The number of tunnels that the agent has registered.
    pub registered_tunnels: u64,
    /// The shortest of the last round trips of its tunnels. Absent if there is no tunnel, or none was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trip_micros: Option<u64>,
    /// Bytes that the proxy-server has received through tunnels of the agent, without TLS.
    pub received_bytes: u64,
    /// Bytes that the proxy-server has sent through tunnels of the agent, without TLS.
    pub sent_bytes: u64,
    /// Bytes of compressed bodies that the proxy-server has received. They are a part of `receivedBytes`.
    pub compressed_bytes: u64,
    /// The bytes of these bodies after decompression.
    pub decompressed_bytes: u64,
}

/// A cluster that an agent offers and that is refused. The agent's other clusters are not affected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RefusedOfferStatus {
    /// The cluster. The configuration may not contain it.
    pub cluster: String,
    /// The identity of the agent.
    pub agent: String,
    /// For programs, such as `NotGranted` and `Conflict`.
    pub reason: String,
    /// For people.
    pub message: String,
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

/// A join token, without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TokenStatus {
    /// The ID, which `atoll token delete` takes.
    pub id: String,
    /// The agent that gets a certificate.
    pub agent: String,
    /// From this time on, it is not valid.
    pub not_after: Moment,
    /// How many certificates can still be issued for it.
    pub uses_left: u32,
}

/// The list of revoked certificates that is in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RevocationsStatus {
    /// SHA-256 of the file, in hexadecimal, as `sha256sum` prints it.
    pub digest: String,
    /// The number of agents.
    pub agents: usize,
    /// The number of users in all clusters.
    pub users: usize,
    /// The number of single certificates.
    pub credentials: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

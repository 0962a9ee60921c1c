//! The proxy-server's configuration: the keys of the file, and their values.

mod check;
mod karmada;
mod limits;

use std::net::SocketAddr;

use ops::config::{Document, Duration, FilePath, Located, Problems};
use ops::listen::ListenAddr;
use protocol::registration::Mode;
use protocol::{AgentId, Authority, ClusterName};
use serde::Deserialize;

pub use karmada::{Karmada, MemberFacts, Through};
pub use limits::{Connections, Limits, fitting};

/// `kind: ProxyServerConfiguration`. Every key is described in `configs/proxy-server.yaml`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProxyServerConfiguration {
    /// Endpoints are `<cluster>.<domain>`.
    #[serde(default = "default_domain")]
    pub domain: Located<String>,
    /// Where to listen.
    #[serde(default)]
    pub listeners: Listeners,
    /// Names and addresses by which clients and agents reach this process. Its certificates contain them.
    #[serde(default)]
    pub host_names: Vec<Located<String>>,
    /// How the proxy listener is protected beyond loopback.
    #[serde(default)]
    pub proxy: ProxySecurity,
    /// Signs the certificates of the endpoints and listeners.
    #[serde(rename = "servingCA")]
    pub serving_ca: KeyPair,
    /// The CA of the agents' certificates.
    #[serde(rename = "agentCA")]
    pub agent_ca: Certificate,
    /// The clusters, and the agents that may serve them.
    #[serde(default)]
    pub clusters: Vec<Located<Cluster>>,
    /// Limits of clients.
    #[serde(default)]
    pub limits: Limits,
    /// Makes virtual clusters members of a Karmada control plane.
    #[serde(default)]
    pub karmada: Option<Karmada>,
    /// How long connections may take to end after SIGTERM.
    #[serde(default = "default_drain")]
    pub drain: Duration,
}

/// Addresses of the listeners; port 0 picks a free one.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Listeners {
    /// Clients, as an HTTP proxy.
    pub proxy: Located<ListenAddr>,
    /// Clients, directly.
    pub endpoint: Located<ListenAddr>,
    /// Agents.
    pub agents: Located<ListenAddr>,
    /// Probes.
    pub probes: Located<ListenAddr>,
    /// The operator: metrics and status.
    pub admin: Located<ListenAddr>,
}

/// Beyond loopback, the proxy listener needs one of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ProxySecurity {
    /// Serve TLS, with a certificate of the serving CA for `hostNames`.
    pub tls: bool,
    /// Serve plain HTTP. The bytes inside are TLS, but the targets of CONNECT can be read and forged.
    pub insecure: bool,
}

/// A certificate with its key.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct KeyPair {
    /// PEM.
    pub certificate: Located<FilePath>,
    /// PEM, PKCS#8.
    pub key: Located<FilePath>,
}

/// A certificate alone.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Certificate {
    /// PEM.
    pub certificate: Located<FilePath>,
}

/// The CA of a cluster's clients.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ClientCa {
    /// PEM.
    pub certificate: Located<FilePath>,
    /// PEM. Only `atoll kubeconfig` reads it, so you can keep it elsewhere.
    #[serde(default)]
    pub key: Option<Located<FilePath>>,
}

/// One cluster.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cluster {
    /// The first label of its endpoint.
    pub name: ClusterName,
    /// The identities of agents that may serve it, one at a time.
    pub agents: Vec<AgentId>,
    /// Whether it is virtual or physical.
    #[serde(default)]
    pub mode: Mode,
    /// The CA of its clients; for virtual clusters.
    #[serde(default, rename = "clientCA")]
    pub client_ca: Option<ClientCa>,
    /// The address by which clients know it; for physical clusters.
    #[serde(default)]
    pub api_server: Option<Authority>,
}

fn default_domain() -> Located<String> {
    "atoll.internal".to_owned().into()
}

fn default_drain() -> Duration {
    Duration::new(std::time::Duration::from_secs(30))
}

// === impl ProxyServerConfiguration ===

impl Document for ProxyServerConfiguration {
    const KIND: &'static str = "ProxyServerConfiguration";

    fn check(&self, problems: &mut Problems) {
        check::check(self, problems);
    }
}

// === impl Listeners ===

impl Default for Listeners {
    fn default() -> Self {
        let loopback = |port| ListenAddr::from(SocketAddr::from(([127, 0, 0, 1], port))).into();
        let anywhere = |port| ListenAddr::from(SocketAddr::from(([0, 0, 0, 0], port))).into();
        Self {
            proxy: loopback(8090),
            endpoint: anywhere(8443),
            agents: anywhere(8091),
            probes: anywhere(8092),
            admin: loopback(8095),
        }
    }
}

#[cfg(test)]
mod tests;

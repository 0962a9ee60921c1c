//! The proxy-agent's configuration.

mod check;

use std::net::SocketAddr;

use ops::config::{Document, Duration, FilePath, Located, Problems};
use ops::listen::ListenAddr;
use protocol::registration::Mode;
use protocol::{Authority, ClusterName, Offer};
use rewrite::request::{PROTECTED_BY_DEFAULT, ProtectedKeys};
use serde::Deserialize;

pub use host_client::config::Host;

use virtual_cluster::config::{CustomResource, VirtualCluster};
use virtual_cluster::namespaces::annotations::Reserved;
use virtual_cluster::policy::Customs;
use virtual_cluster::shared::config::SharedObjects;

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

//! The configuration file of the proxy-agent: its keys, their values, and what the types cannot express.
//!
//! This is a crate of its own because it is compiled for size: serde's code for a configuration is large, and does not have to be
//! fast.

mod check;

use std::net::SocketAddr;

use ops::config::{Duration, FilePath, Located};
use ops::listen::ListenAddr;
use protocol::registration::Mode;
use protocol::{Authority, ClusterName, Offer};
use request_traces::config::Tracing;
use rewrite::request::{PROTECTED_BY_DEFAULT, ProtectedKeys};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

pub use host_client::config::Host;

use virtual_cluster::config::{CustomResource, VirtualCluster};
use virtual_cluster::namespaces::annotations::Reserved;
use virtual_cluster::policy::Customs;
use virtual_cluster::shared::config::SharedObjects;

/// `kind: ProxyAgentConfiguration`. Every key is described in `configs/proxy-agent.yaml`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProxyAgentConfiguration {
    /// The addresses of the proxy-servers for agents. The agent dials all of them.
    pub servers: Vec<Located<Authority>>,
    /// The identity of this agent.
    pub identity: Identity,
    /// How this agent gets and renews its certificate, if a proxy-server issues it.
    #[serde(default)]
    pub join: Option<Join>,
    /// The API server of the host cluster. Virtual clusters need it.
    #[serde(default)]
    pub host: Option<Located<Host>>,
    /// The virtual clusters of the host cluster.
    #[serde(default)]
    pub virtual_clusters: Vec<Located<VirtualCluster>>,
    /// Whether VirtualCluster objects on the host declare more virtual clusters.
    #[serde(default)]
    pub watch_virtual_clusters: bool,
    /// The time after the deletion of a VirtualCluster before its namespaces are deleted.
    #[serde(default = "default_deletion_delay")]
    pub virtual_cluster_deletion_delay: Duration,
    /// The namespace of the host for the Secrets with kubeconfigs of VirtualClusters.
    #[serde(default)]
    pub kubeconfig_namespace: Option<Located<String>>,
    /// The shared objects that virtual clusters may write.
    #[serde(default)]
    pub shared_objects: SharedObjects,
    /// Labels and annotations of Namespaces that clients may not write, in addition to those that are always protected.
    #[serde(default = "default_protected_keys")]
    pub protected_namespace_keys: Vec<Located<String>>,
    /// The physical clusters.
    #[serde(default)]
    pub physical_clusters: Vec<Located<PhysicalCluster>>,
    /// What to do if a requested node port belongs to another virtual cluster.
    #[serde(default)]
    pub taken_node_ports: TakenNodePorts,
    /// How custom resources without namespaces are served.
    #[serde(default)]
    pub custom_resources: Vec<Located<CustomResource>>,
    /// The hub, which shares watches of the host.
    #[serde(default)]
    pub hub: Hub,
    /// Other destinations that clients may reach: `NETWORK/PREFIX:PORT` or `HOST:PORT`.
    #[serde(default)]
    pub destinations: Vec<Located<String>>,
    /// The addresses to listen on.
    #[serde(default)]
    pub listeners: Listeners,
    /// When responses are compressed on their way to the proxy-server.
    #[serde(default)]
    pub compression: Compression,
    /// Exports traces of requests.
    #[serde(default)]
    pub tracing: Option<Tracing>,
    /// The time that streams have to end when the process stops.
    #[serde(default = "default_drain")]
    pub drain: Duration,
}

/// The client certificate, and the CA of the proxy-servers.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Identity {
    /// In PEM. Its common name is the identity of this agent.
    pub certificate: Located<FilePath>,
    /// In PEM, as PKCS#8.
    pub key: Located<FilePath>,
    /// In PEM. The CA that has signed the certificates of the proxy-servers.
    #[serde(rename = "serverCA")]
    pub server_ca: Located<FilePath>,
}

/// The certificate comes from a proxy-server (`enrolment` in its configuration). This agent writes the files of its identity.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Join {
    /// The file with the join token. The agent reads it only while it has no certificate.
    #[serde(default)]
    pub token_file: Option<Located<FilePath>>,
}

/// What to do with a Service whose node port belongs to another virtual cluster of the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TakenNodePorts {
    /// The host gives it another port. The client sees the requested port.
    #[default]
    Replace,
    /// Refuse it, as any API server does.
    Refuse,
}

/// When responses are compressed on their way to the proxy-server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Compression {
    /// Unless both halves are in the same local network.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// One watch of the host for the watches of all virtual clusters.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Hub {
    /// The memory limit, in MiB. Zero means that watches are not shared. Default: 64.
    #[serde(rename = "memoryMiB")]
    pub memory_mib: u32,
    /// Resources whose watches are not shared, such as `secrets` or `deployments.apps`.
    pub exclude: Vec<Located<String>>,
}

/// A physical cluster.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PhysicalCluster {
    /// The name, which is the same in both configurations.
    pub name: ClusterName,
    /// The addresses of its API servers for this agent, at least one. In the file, a single one needs no list.
    #[serde(rename = "apiServer", deserialize_with = "one_or_several")]
    pub api_servers: Vec<Authority>,
}

fn one_or_several<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Authority>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected HOST:PORT, or a list of them")]
    enum Addresses {
        One(Authority),
        Several(Vec<Authority>),
    }
    match Addresses::deserialize(deserializer)? {
        Addresses::One(address) => Ok(vec![address]),
        Addresses::Several(addresses) if addresses.is_empty() => {
            Err(D::Error::custom("`apiServer` must have at least one address"))
        }
        Addresses::Several(addresses) => Ok(addresses),
    }
}

/// Addresses of the listeners.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default)]
pub struct Listeners {
    /// Probes.
    pub probes: Located<ListenAddr>,
    /// The operator: metrics and status.
    pub admin: Located<ListenAddr>,
    /// Prometheus: only metrics. `None`: there is no such listener.
    pub metrics: Option<Located<ListenAddr>>,
}

fn default_protected_keys() -> Vec<Located<String>> {
    PROTECTED_BY_DEFAULT.map(|pattern| pattern.to_owned().into()).into()
}

/// A ConfigMap reaches the pods of all replicas within about a minute.
fn default_deletion_delay() -> Duration {
    Duration::new(std::time::Duration::from_secs(120))
}

fn default_drain() -> Duration {
    Duration::new(std::time::Duration::from_secs(30))
}

// === impl Hub ===

impl Default for Hub {
    fn default() -> Self {
        Self { memory_mib: 64, exclude: Vec::new() }
    }
}

// === impl Compression ===

impl From<Compression> for tunnel::Compression {
    fn from(compression: Compression) -> Self {
        match compression {
            Compression::Auto => Self::Auto,
            Compression::Always => Self::Always,
            Compression::Never => Self::Never,
        }
    }
}

// === impl ProxyAgentConfiguration ===

impl ProxyAgentConfiguration {
    /// How custom resources without namespaces are served.
    pub fn customs(&self) -> Customs {
        Customs::new(self.custom_resources.iter().map(|custom| (custom.resource.clone(), custom.objects)))
    }

    /// What clients of virtual clusters may not write in their namespaces.
    pub fn reserved(&self) -> Reserved {
        let resources = self.custom_resources.iter().filter(|custom| !custom.objects.is_written());
        Reserved { keys: self.protected_keys(), resources: resources.map(|custom| custom.resource.clone()).collect() }
    }

    /// Labels and annotations of Namespaces that clients may not write.
    pub fn protected_keys(&self) -> ProtectedKeys {
        // The checks have already refused other values.
        ProtectedKeys::new(self.protected_namespace_keys.iter().filter_map(|pattern| pattern.parse().ok()))
    }

    /// The offer of this agent to a proxy-server.
    pub fn offers(&self) -> Vec<Offer> {
        let virtuals = self.virtual_clusters.iter().map(|cluster| cluster.offer());
        let physicals = self.physical_clusters.iter().map(|cluster| Offer::new(cluster.name.clone(), Mode::Physical));
        virtuals.chain(physicals).collect()
    }
}

// === impl Listeners ===

impl Default for Listeners {
    fn default() -> Self {
        Self {
            probes: ListenAddr::from(SocketAddr::from(([0, 0, 0, 0], 8093))).into(),
            admin: ListenAddr::from(SocketAddr::from(([127, 0, 0, 1], 8094))).into(),
            metrics: None,
        }
    }
}

#[cfg(test)]
mod tests;

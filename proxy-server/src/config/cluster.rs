//! `clusters:`, and the agents that may serve them.

use std::collections::{HashMap, HashSet};

use audit::config::Audit;
use ops::config::{FilePath, Located, Problems};
use protocol::registration::Mode;
use protocol::{AgentId, Authority, ClusterName, Destination};
use serde::Deserialize;

use super::oidc::{self, Oidc};

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
    /// The CA of its clients; for virtual clusters, and for `destinations`.
    #[serde(default, rename = "clientCA")]
    pub client_ca: Option<ClientCa>,
    /// The issuer of ID tokens for its clients; for virtual clusters.
    #[serde(default)]
    pub oidc: Option<Located<Oidc>>,
    /// The address by which clients know it; for physical clusters.
    #[serde(default)]
    pub api_server: Option<Authority>,
    /// Other addresses of its site that clients with certain certificates may reach. The agent must allow them, too.
    #[serde(default)]
    pub destinations: Vec<Destination>,
    /// Its audit log, instead of that of all clusters.
    #[serde(default)]
    pub audit: Option<Located<Audit>>,
}

// === impl Cluster ===

impl Cluster {
    /// The settings of its audit log. `default`: those of clusters that have none.
    pub fn audit(&self, default: Option<&Audit>) -> Option<Audit> {
        let is_virtual = self.mode == Mode::Virtual;
        let audit = self.audit.as_deref().or(default).filter(|_| is_virtual);
        audit.map(|audit| audit.of(self.name.as_str()))
    }

    /// Whether an address is one of its destinations.
    pub fn allows(&self, address: &Authority) -> bool {
        self.destinations.iter().any(|allowed| allowed.covers(address))
    }
}

/// `tls`: whether the proxy listener serves TLS.
pub(super) fn check(clusters: &[Located<Cluster>], tls: bool, problems: &mut Problems) {
    let mut names = HashSet::new();
    for cluster in clusters {
        check_cluster(cluster, problems);
        if !cluster.destinations.is_empty() && !tls {
            problems.at(
                cluster,
                format_args!(
                    "cluster {} has destinations, so clients must authenticate to the proxy listener: set `proxy: {{tls: true}}`",
                    cluster.name
                ),
            );
        }
        if !names.insert(&cluster.name) {
            problems.at(cluster, format_args!("cluster {} is listed twice", cluster.name));
        }
    }
}

/// Reports clusters that would write to the same file. `default`: the settings of clusters that have none.
pub(super) fn check_audit(default: Option<&Located<Audit>>, clusters: &[Located<Cluster>], problems: &mut Problems) {
    if let Some(default) = default {
        audit::config::check(default, true, problems);
    }
    let mut files = HashMap::new();
    for cluster in clusters {
        let Some(log) = cluster.audit(default.map(|default| &**default)).and_then(|audit| audit.log) else { continue };
        if let Some(other) = files.insert(log.path.to_path_buf(), &cluster.name) {
            problems.at(
                cluster,
                format_args!(
                    "the clusters {other} and {} have the same audit.log.path: {}",
                    cluster.name,
                    log.path.display()
                ),
            );
        }
    }
}

fn check_cluster(cluster: &Located<Cluster>, problems: &mut Problems) {
    let name = &cluster.name;
    if cluster.agents.is_empty() {
        problems.at(cluster, format_args!("cluster {name} needs at least one agent"));
    }
    if let Some(oidc) = &cluster.oidc {
        oidc::check(oidc, problems);
    }
    match cluster.mode {
        Mode::Virtual => {
            if cluster.client_ca.is_none() {
                problems.at(
                    cluster,
                    format_args!("virtual cluster {name} needs a clientCA (`atoll certs cluster {name}`)"),
                );
            }
            if cluster.api_server.is_some() {
                problems.at(cluster, format_args!("apiServer is for physical clusters; {name} is virtual"));
            }
        }
        Mode::Physical => {
            if let Some(audit) = &cluster.audit {
                problems.at(
                    audit,
                    format_args!("audit is for virtual clusters; the API server of {name} has its own audit log"),
                );
            }
            if let Some(oidc) = &cluster.oidc {
                problems.at(
                    oidc,
                    format_args!(
                        "oidc is for virtual clusters; the API server of {name} authenticates its own clients"
                    ),
                );
            }
            if cluster.client_ca.is_some() && cluster.destinations.is_empty() {
                problems.at(
                    cluster,
                    format_args!(
                        "clientCA is for virtual clusters and for destinations; the API server of {name} checks its own clients"
                    ),
                );
            }
            if cluster.client_ca.is_none() && !cluster.destinations.is_empty() {
                problems.at(
                    cluster,
                    format_args!(
                        "cluster {name} has destinations, so it needs a clientCA (`atoll certs cluster {name}`)"
                    ),
                );
            }
            if cluster.api_server.is_none() {
                problems.at(cluster, format_args!("physical cluster {name} needs its apiServer (host:port)"));
            }
        }
    }
}

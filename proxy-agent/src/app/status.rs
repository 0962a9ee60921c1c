//! Collects the figures of [`AgentStatus`] from the parts of the agent.

use std::sync::Arc;

use ops::config::API_VERSION;
use ops::date::Moment;
use ops::files::Watched;
use ops::tls::{Identity, ServerCa};
use protocol::AgentId;

use super::exchange::ClusterServices;
use crate::config::PhysicalCluster;
use crate::ready::{RouteState, Tunnels};
use crate::status::{
    AgentStatus, CertificateStatus, HostServerStatus, HostStatus, KIND, PhysicalClusterStatus, TunnelStatus,
    VirtualClusterStatus,
};
use virtual_cluster::admission_policies;
use virtual_cluster::provisioner::ProvisionState;

/// The status of a cluster whose host has no admission policies.
const DIRECT_ACCESS: &str = "unsafe: its tokens can leave the virtual cluster when they are used directly at the host";

/// The status of a cluster if the agent cannot verify that the host enforces the admission policies.
const UNVERIFIED: &str = "unverified: the agent cannot verify that the host enforces the admission policies";

/// The sources of the figures.
pub(super) struct StatusSource {
    pub(super) agent: AgentId,
    pub(super) tunnels: Arc<Tunnels>,
    /// `None` if the configuration has no host.
    pub(super) services: Option<ClusterServices>,
    pub(super) physical: Vec<PhysicalCluster>,
    pub(super) server_ca: Watched<ServerCa>,
    pub(super) identity: Watched<Identity>,
}

// === impl StatusSource ===

impl StatusSource {
    /// The current status.
    pub(super) fn status(&self) -> AgentStatus {
        let mut physical_clusters: Vec<_> = self
            .physical
            .iter()
            .map(|cluster| PhysicalClusterStatus {
                name: cluster.name.to_string(),
                api_server: cluster.api_server.to_string(),
            })
            .collect();
        physical_clusters.sort_by(|one, other| one.name.cmp(&other.name));
        let identity = Some(self.identity.borrow().not_after());
        let ends = [("identity", identity), ("identity.serverCA", self.server_ca.borrow().not_after())];
        let known = ends.into_iter().filter_map(|(name, end)| Some((name.to_owned(), end?)));
        let certificates = known.map(|(name, end)| CertificateStatus { name, not_after: end.into() });
        let mut status = AgentStatus {
            api_version: API_VERSION.to_owned(),
            kind: KIND.to_owned(),
            agent: self.agent.to_string(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            time: Moment::now(),
            ready: false,
            tunnels: self.tunnels.all().into_iter().map(tunnel).collect(),
            virtual_clusters: self.services.as_ref().map(virtual_clusters).unwrap_or_default(),
            physical_clusters,
            host: self.services.as_ref().map(host),
            certificates: certificates.collect(),
        };
        status.ready = status.is_all_ready();
        status
    }
}

fn tunnel(route: RouteState) -> TunnelStatus {
    let (acceptance, message) = match route.tunnel {
        Ok(acceptance) => (Some(acceptance), None),
        Err(why) => (None, Some(why.to_string())),
    };
    TunnelStatus {
        server: route.server.to_string(),
        address: route.address.map(|address| address.to_string()),
        ready: acceptance.is_some(),
        since: route.since,
        protocol: acceptance.as_ref().map(|acceptance| acceptance.protocol.to_string()),
        proxy_server: acceptance.map(|acceptance| acceptance.server),
        message,
    }
}

/// The status of each virtual cluster.
fn virtual_clusters(services: &ClusterServices) -> Vec<VirtualClusterStatus> {
    let policies = services.admission_policies.state();
    let mut clusters: Vec<_> = services
        .clusters
        .all()
        .iter()
        .map(|cluster| {
            let state = services.provisioner.provision_state(&cluster.name).unwrap_or(ProvisionState::Pending);
            let message = match (&state, &policies) {
                (ProvisionState::Pending, _) => Some("not provisioned yet".to_owned()),
                (ProvisionState::Failed(why), _) => Some(why.to_string()),
                (ProvisionState::Provisioned, admission_policies::PolicyState::Open) => Some(DIRECT_ACCESS.to_owned()),
                (ProvisionState::Provisioned, admission_policies::PolicyState::Unverified) => {
                    Some(UNVERIFIED.to_owned())
                }
                (ProvisionState::Provisioned, policies) => policies.admits().err().map(str::to_owned),
            };
            VirtualClusterStatus {
                name: cluster.name.to_string(),
                ready: state == ProvisionState::Provisioned && policies.admits().is_ok(),
                node_selector: cluster.node_selector.text.to_string(),
                nodes: cluster.count_nodes(),
                namespaces: services.namespaces.members(&cluster.name).len(),
                message,
            }
        })
        .collect();
    clusters.sort_by(|one, other| one.name.cmp(&other.name));
    clusters
}

/// The status of the host.
fn host(services: &ClusterServices) -> HostStatus {
    let statistics = services.host.statistics();
    let namespaces_synced = services.namespaces.is_synced();
    let servers = statistics.servers.iter().map(|server| HostServerStatus {
        address: server.address.to_string(),
        ready: server.up,
        connections: server.connections,
        streams: server.streams,
    });
    let servers: Vec<_> = servers.collect();
    HostStatus {
        ready: namespaces_synced && servers.iter().any(|server| server.ready),
        namespaces_synced,
        in_flight: statistics.in_flight,
        servers,
    }
}

//! Collects the figures of [`AgentStatus`] from the parts of the agent.

use std::collections::BTreeSet;
use std::sync::Arc;

use ops::config::API_VERSION;
use ops::date::Moment;
use ops::files::Watched;
use ops::pki::Validity;
use ops::tls::{Identity, ServerCa};
use ops::used::Used;
use protocol::{AgentId, RefusedClusters};
use request_metrics::LastError;
use tunnel::Share;

use super::exchange::ClusterServices;
use crate::config::PhysicalCluster;
use crate::exchange::Sharing;
use crate::status::{
    AgentStatus, CertificateStatus, FeedStatus, HostServerStatus, HostStatus, KIND, PhysicalClusterStatus,
    RefusedClusterStatus, SharesStatus, TunnelStatus, VirtualClusterStatus,
};
use dial::routes::{RouteState, Tunnels};
use virtual_cluster::admission_policies;
use virtual_cluster::clusters::{LastingState, VirtualCluster};
use virtual_cluster::provisioner::ProvisionState;
use virtual_cluster::share::in_flight::Kind;
use virtual_cluster::share::seats::SEATS;

/// The status of a cluster whose host has no admission policies.
pub(super) const DIRECT_ACCESS: &str =
    "unsafe: its tokens can leave the virtual cluster when they are used directly at the host";

/// The status of a cluster if the agent cannot verify that the host enforces the admission policies.
pub(super) const UNVERIFIED: &str = "unverified: the agent cannot verify that the host enforces the admission policies";

/// The maximum number of nodes of a cluster that the status names.
const MAX_NODE_NAMES: usize = 10;

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
                api_server: cluster.api_servers.iter().map(ToString::to_string).collect::<Vec<_>>().join(","),
            })
            .collect();
        physical_clusters.sort_by(|one, other| one.name.cmp(&other.name));
        let routes = self.tunnels.all();
        let mut status = AgentStatus {
            api_version: API_VERSION.to_owned(),
            kind: KIND.to_owned(),
            agent: self.agent.to_string(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            time: Moment::now(),
            ready: false,
            refused_clusters: refused_clusters(&routes).into_iter().collect(),
            tunnels: routes.into_iter().map(tunnel).collect(),
            virtual_clusters: self.services.as_ref().map(virtual_clusters).unwrap_or_default(),
            physical_clusters,
            host: self.services.as_ref().map(host),
            feeds: self
                .services
                .as_ref()
                .and_then(|services| services.sharing.as_deref())
                .map(feeds)
                .unwrap_or_default(),
            certificates: self.certificates().into_iter().map(certificate).collect(),
        };
        status.ready = status.is_all_ready();
        status
    }

    /// The certificates of the configuration, by the keys that name them.
    pub(super) fn certificates(&self) -> Vec<(String, Validity)> {
        let identity = Some(self.identity.borrow().validity());
        let all = [("identity", identity), ("identity.serverCA", self.server_ca.borrow().validity())];
        all.into_iter().filter_map(|(name, validity)| Some((name.to_owned(), validity?))).collect()
    }
}

fn certificate((name, validity): (String, Validity)) -> CertificateStatus {
    CertificateStatus { name, not_after: validity.not_after.into() }
}

fn tunnel(route: RouteState) -> TunnelStatus {
    let (acceptance, message) = match route.tunnel {
        Ok(tunnel) => {
            let verdict = tunnel.verdict.borrow();
            // The status names refused clusters one by one.
            let refusal = verdict.refusal.as_ref().filter(|_| verdict.refused.is_empty());
            (Some(tunnel.acceptance), refusal.map(|refusal| format!("the list of clusters is refused: {refusal}")))
        }
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

/// The clusters that are refused. Several tunnels to one proxy-server refuse the same ones.
fn refused_clusters(routes: &[RouteState]) -> BTreeSet<RefusedClusterStatus> {
    let mut all = BTreeSet::new();
    for route in routes {
        let Ok(tunnel) = &route.tunnel else { continue };
        for RefusedClusters { clusters, refusal } in &tunnel.verdict.borrow().refused {
            all.extend(clusters.iter().map(|cluster| RefusedClusterStatus {
                cluster: cluster.to_string(),
                server: route.server.to_string(),
                reason: refusal.reason.as_str().to_owned(),
                message: refusal.message.clone(),
            }));
        }
    }
    all
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
            let held = services.usage.held(&cluster.name);
            let shares = shares(services, cluster);
            let reached = services.usage.reached(&cluster.name);
            VirtualClusterStatus {
                name: cluster.name.to_string(),
                ready: is_ready(services, cluster),
                node_selector: cluster.node_selector.configured.to_string(),
                nodes: cluster.count_nodes(),
                node_names: node_names(cluster),
                namespaces: usize::try_from(shares.namespaces.used).unwrap_or(usize::MAX),
                objects: held.objects,
                bytes: held.bytes,
                reached_limits: reached.limits().map(|(name, limit)| format!("{name}={limit}")).collect(),
                shares: Some(shares),
                last_errors: last_errors(services, cluster),
                message,
            }
        })
        .collect();
    clusters.sort_by(|one, other| one.name.cmp(&other.name));
    clusters
}

/// Whether the agent can serve a virtual cluster.
pub(super) fn is_ready(services: &ClusterServices, cluster: &VirtualCluster) -> bool {
    let state = services.provisioner.provision_state(&cluster.name);
    state == Some(ProvisionState::Provisioned) && services.admission_policies.state().admits().is_ok()
}

/// The names of the first nodes.
fn node_names(cluster: &VirtualCluster) -> Vec<String> {
    let names = cluster.nodes.names();
    let mut names: Vec<_> = names.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
    names.sort_unstable();
    names.truncate(MAX_NODE_NAMES);
    names
}

/// The last errors in responses to clients of a cluster, the newest first.
pub(super) fn last_errors(services: &ClusterServices, cluster: &VirtualCluster) -> Vec<LastError> {
    // Both types of a name have the same rule.
    let name = cluster.name.as_str().parse();
    name.map(|name| services.requests.last_errors(&name)).unwrap_or_default()
}

/// What a virtual cluster uses of what all virtual clusters share.
pub(super) fn shares(services: &ClusterServices, cluster: &VirtualCluster) -> SharesStatus {
    let LastingState { in_flight, memory, send_queue, seats, .. } = &cluster.lasting;
    let used = |share: &Share| Used::new(share.held(), share.limit());
    SharesStatus {
        requests: used(in_flight.of(Kind::Short)),
        watches: used(in_flight.of(Kind::LongRunning)),
        sessions: used(in_flight.of(Kind::Session)),
        seats: Used::new(seats.occupied(), SEATS),
        body_bytes: used(&memory.bodies),
        list_bytes: used(&memory.lists),
        event_bytes: used(&memory.watches),
        head_bytes: used(&memory.heads),
        queued_bytes: used(send_queue),
        namespaces: Used::new(services.namespaces.members(&cluster.name).len(), cluster.shares.namespaces),
        stored_bytes: Used { used: services.usage.held(&cluster.name).bytes, limit: cluster.shares.bytes() },
        written_bytes: Used { used: services.usage.written(&cluster.name), limit: cluster.shares.written_bytes() },
    }
}

/// The status of the hub.
fn feeds(sharing: &Sharing) -> Vec<FeedStatus> {
    let feeds = sharing.feeds();
    let mut feeds: Vec<_> = feeds
        .iter()
        .map(|feed| {
            let statistics = feed.statistics();
            FeedStatus {
                path: feed.collection().path.clone(),
                watches: statistics.watchers,
                objects: statistics.objects,
                events: statistics.events,
                window_seconds: statistics.window.as_secs(),
                bytes: feed.bytes(),
                closed: sharing.names(feed.closed()),
            }
        })
        .collect();
    feeds.sort_by(|one, other| one.path.cmp(&other.path));
    feeds
}

/// The status of the host.
pub(super) fn host(services: &ClusterServices) -> HostStatus {
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

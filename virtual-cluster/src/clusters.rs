//! The virtual clusters of this agent, as validated configuration.
//!
//! What is *not* here: what exists on the host ([`namespaces`](crate::namespaces)), and what creates it
//! ([`provisioner`](crate::provisioner)).
//!
//! Reading order: [`VirtualClusters`], [`VirtualCluster`], `toleration`, `address_range`.

mod address_range;
mod toleration;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use kube_wire::selector::{LabelSelector, LabelSelectorError};
use rewrite::guard::Toleration;
use rewrite::pod_security::Level;
use rewrite::request::NamespaceRules;
use rewrite::view::DEFAULT_LIST_LIMIT;
use rewrite::{Guard, HostNamespace, Mapping};
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;
use tunnel::{FairBudget, Owner, Share};

use crate::config;
use crate::namespaces::annotations::Reserved;
use crate::namespaces::{Annotations, Namespaces};
use crate::nodes::{AllNodes, OwnNodes};
use crate::roles::Roles;
use crate::share::activity::{Activity, ActivityLog};
use crate::share::in_flight::{InFlight, MaxInFlight};
use crate::share::large_objects::{LargeObjectLimits, PARSED};
use crate::share::seats::Seats;
use crate::share::write_rate::WriteRateLimit;
use crate::share::write_turns::WriteTurns;
pub use address_range::{AddressRange, InvalidAddressRange};
use caller::authn::{BadPrefix, HostTokens, KnownCallers};
use host_client::collect::MAX_OBJECT;
pub use toleration::TolerationError;

/// The bytes of request bodies, and of objects in responses, that all virtual clusters together may hold. Each may hold
/// a third: the maximum length of an object of the host.
const BODIES: usize = 48 * 1024 * 1024;

/// The bytes of lists in protobuf that all virtual clusters together may hold. Each may hold one list of the maximum
/// length. Lists are not charged to [`BODIES`], so a client that does not read a list does not prevent writes.
const LISTS: usize = 2 * DEFAULT_LIST_LIMIT;

/// The bytes of events that all virtual clusters together may hold. Each may hold a third: two events of the maximum
/// length.
const WATCHES: usize = 48 * 1024 * 1024;

/// The bytes of long request heads that all virtual clusters together may hold. Each may hold half. Heads have their
/// own budget, because they are charged before the client is authenticated.
const HEADS: usize = 32 * 1024 * 1024;

/// The bytes of responses and sessions that may wait for tunnels to send them, for all virtual clusters. Each may have half. They
/// keep the sockets of slow tunnels filled; what is on its way is not here.
const SEND_QUEUE: usize = 32 * 1024 * 1024;

/// The number of kinds of one virtual cluster whose objects the agent may list at a time in its own name. For the
/// host's API Priority and Fairness, all requests of the agent are one flow, so one cluster could delay the others.
const SCANS: usize = 2;

/// Every virtual cluster of this agent, by name.
#[derive(Debug)]
pub struct VirtualClusters {
    by_name: ArcSwap<ByName>,
    namespaces: Arc<Namespaces>,
    nodes: Arc<AllNodes>,
    roles: Arc<Roles>,
    bodies: FairBudget,
    lists: FairBudget,
    watches: FairBudget,
    heads: FairBudget,
    send_queue: FairBudget,
    activity: ActivityLog,
    in_flight: MaxInFlight,
    parsed: Arc<Semaphore>,
    reserved: Reserved,
    /// Tells of each new configuration.
    exchanged: watch::Sender<()>,
}

/// The virtual clusters of one configuration.
pub type ByName = HashMap<protocol::ClusterName, Arc<VirtualCluster>>;

/// One slice of the host.
pub struct VirtualCluster {
    /// The name, in the type of the engine.
    pub name: rewrite::ClusterName,
    /// The selector of its nodes.
    pub node_selector: NodeSelector,
    /// The node selector and the tolerations of its pods.
    pub guard: Arc<Guard>,
    /// The rules for writes of its clients to Namespaces.
    pub namespace_rules: Arc<NamespaceRules>,
    /// The level of Pod Security that is enforced in its namespaces.
    pub pod_security: Option<Level>,
    /// What it may store on the host.
    pub shares: config::Shares,
    /// The annotations of its namespaces for the host's admission policies.
    pub annotations: Annotations,
    /// Its root namespace, which represents its cluster scope on the host.
    pub root: HostNamespace,
    /// How it accepts tokens of the host that belong to no service account; `None` if it does not.
    pub host_tokens: Option<HostTokens>,
    /// The state that survives a reload of the configuration.
    pub lasting: LastingState,
    /// Its known nodes.
    pub nodes: OwnNodes,
    namespaces: Arc<Namespaces>,
    roles: Arc<Roles>,
    /// The mapping without namespaces, nodes and roles.
    names: Mapping,
}

/// The end and the limits of a virtual cluster, which survive a reload of the configuration. Clones share them.
#[derive(Clone, Debug)]
pub struct LastingState {
    /// Cancelled when the cluster leaves the configuration: its requests must end.
    pub end: CancellationToken,
    /// The limit for the number of its requests.
    pub in_flight: InFlight,
    /// The memory budget of its requests.
    pub memory: Memory,
    /// Its part of what waits for tunnels to send it.
    pub send_queue: Share,
    /// The limits for its large objects.
    pub large_objects: Arc<LargeObjectLimits>,
    /// The rate limit for its bodies that cost the host much.
    pub write_rate: Arc<WriteRateLimit>,
    /// The turns of its writes at the host.
    pub write_turns: Arc<WriteTurns>,
    /// The seats at the host that its lists and watches may occupy.
    pub seats: Arc<Seats>,
    /// When this cluster and the others last sent requests.
    pub activity: Activity,
    /// Limits the number of its kinds whose objects the agent lists at a time in its own name.
    pub scans: Arc<Semaphore>,
    /// The callers of its recent requests.
    pub callers: Arc<KnownCallers>,
    /// The owner of its streams: what they leave unread is charged to it, of its clients and of the host.
    pub owner: Owner,
}

/// The shares of one virtual cluster in the memory budgets. Clones charge the same shares.
#[derive(Clone, Debug)]
pub struct Memory {
    /// Request bodies, and objects in responses.
    pub bodies: Share,
    /// Lists in protobuf.
    pub lists: Share,
    /// Events of watches that have not arrived completely, or have not been sent to the client.
    pub watches: Share,
    /// Heads of requests that have no response yet.
    pub heads: Share,
}

/// The selector of a virtual cluster's nodes.
#[derive(Clone, Debug)]
pub struct NodeSelector {
    /// The selector, to combine with that of a client: the labels of the guard, and what is configured. So a node that no longer matches
    /// leaves the cluster before the agent has removed its label.
    pub all: LabelSelector,
    /// The same for a `labelSelector` parameter, not yet percent-encoded.
    pub text: Arc<str>,
    /// What `nodeSelector`, `nodeGroup` and `nodeExpressions` require of nodes.
    pub configured: LabelSelector,
    /// Whether there are expressions. Then the agent labels the nodes that match, and `all` contains this label.
    pub is_marked: bool,
}

/// The values in a configuration that have a form of their own.
struct Values {
    labels: LabelSelector,
    configured: LabelSelector,
    tolerations: Vec<Toleration>,
    host_tokens: Option<HostTokens>,
    external_ips: Vec<AddressRange>,
}

/// The configuration of a virtual cluster is invalid.
#[derive(Debug, thiserror::Error)]
#[error("virtual cluster {cluster}")]
pub struct ClusterError {
    /// The virtual cluster.
    pub cluster: protocol::ClusterName,
    /// The reason.
    #[source]
    pub reason: ClusterReason,
}

/// The part of the configuration that is invalid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterReason {
    /// A label of `nodeSelector`.
    #[error("nodeSelector")]
    NodeSelector(#[from] LabelSelectorError),
    /// The prefix of `hostTokens`.
    #[error("hostTokens.prefix")]
    HostTokens(#[from] BadPrefix),
    /// An entry of `tolerations`.
    #[error("tolerations[{index}]")]
    Toleration {
        /// Which one, counted from 0.
        index: usize,
        /// Why.
        source: TolerationError,
    },
    /// An entry of `externalIPs`.
    #[error("externalIPs[{index}]")]
    ExternalIp {
        /// Which one, counted from 0.
        index: usize,
        /// Why.
        source: InvalidAddressRange,
    },
}

// === impl VirtualClusters ===

impl VirtualClusters {
    /// All nodes of the host.
    pub fn all_nodes(&self) -> Arc<AllNodes> {
        Arc::clone(&self.nodes)
    }

    /// Checks the configuration. The names of namespaces come from `namespaces`.
    pub fn new<'c>(
        configured: impl IntoIterator<Item = &'c config::VirtualCluster>,
        namespaces: &Arc<Namespaces>,
        reserved: Reserved,
    ) -> Result<Self, ClusterError> {
        let clusters = Self {
            reserved,
            by_name: ArcSwap::default(),
            namespaces: Arc::clone(namespaces),
            nodes: Arc::default(),
            roles: Arc::default(),
            bodies: FairBudget::new(BODIES, MAX_OBJECT),
            lists: FairBudget::new(LISTS, DEFAULT_LIST_LIMIT),
            watches: FairBudget::new(WATCHES, WATCHES / 3),
            heads: FairBudget::new(HEADS, HEADS / 2),
            send_queue: FairBudget::new(SEND_QUEUE, SEND_QUEUE / 2),
            activity: ActivityLog::default(),
            in_flight: MaxInFlight::default(),
            parsed: Arc::new(Semaphore::new(PARSED)),
            exchanged: watch::Sender::default(),
        };
        clusters.exchange(clusters.read(configured)?);
        Ok(clusters)
    }

    /// Checks another configuration. It takes effect with [`exchange`](Self::exchange).
    pub fn read<'c>(
        &self,
        configured: impl IntoIterator<Item = &'c config::VirtualCluster>,
    ) -> Result<ByName, ClusterError> {
        let known = self.by_name.load();
        let mut by_name = HashMap::new();
        for config in configured {
            // A known cluster keeps its limits, because its current requests still count.
            let lasting =
                known.get(&config.name).map_or_else(|| self.lasting(&config.name), |known| known.lasting.clone());
            let cluster = VirtualCluster::new(config, lasting, self)
                .map_err(|reason| ClusterError { cluster: config.name.clone(), reason })?;
            by_name.insert(config.name.clone(), Arc::new(cluster));
        }
        Ok(by_name)
    }

    /// The lasting state of a new cluster.
    fn lasting(&self, name: &protocol::ClusterName) -> LastingState {
        let memory = Memory {
            bodies: self.bodies.share(),
            lists: self.lists.share(),
            watches: self.watches.share(),
            heads: self.heads.share(),
        };
        LastingState {
            end: CancellationToken::new(),
            in_flight: self.in_flight.share(),
            memory,
            send_queue: self.send_queue.share(),
            large_objects: Arc::new(LargeObjectLimits::new(Arc::clone(&self.parsed))),
            write_rate: Arc::default(),
            write_turns: Arc::default(),
            seats: Arc::default(),
            activity: self.activity.cluster(),
            scans: Arc::new(Semaphore::new(SCANS)),
            callers: Arc::new(KnownCallers::new(engine_name(name))),
            owner: Owner::new(),
        }
    }

    /// The cache of the host's nodes, which [`AllNodes::follow`] keeps up to date.
    pub fn nodes(&self) -> Arc<AllNodes> {
        Arc::clone(&self.nodes)
    }

    /// The cache of the host's cluster roles, which [`Roles::follow`] keeps up to date.
    pub fn roles(&self) -> Arc<Roles> {
        Arc::clone(&self.roles)
    }

    /// Replaces all virtual clusters. Requests to those that are no longer configured end.
    pub fn exchange(&self, by_name: ByName) {
        let before = self.by_name.load_full();
        let gone = before.iter().filter(|(name, _)| !by_name.contains_key(*name)).map(|(_, cluster)| cluster);
        let gone: Vec<_> = gone.cloned().collect();
        self.by_name.store(Arc::new(by_name));
        for cluster in gone {
            cluster.lasting.end.cancel();
        }
        self.exchanged.send_replace(());
    }

    /// Tells of each new configuration.
    pub fn exchanges(&self) -> watch::Receiver<()> {
        self.exchanged.subscribe()
    }

    /// The virtual cluster with this name, if this agent serves it.
    pub fn get(&self, name: &protocol::ClusterName) -> Option<Arc<VirtualCluster>> {
        self.by_name.load().get(name).cloned()
    }

    /// All virtual clusters, in no particular order.
    pub fn all(&self) -> Vec<Arc<VirtualCluster>> {
        self.by_name.load().values().cloned().collect()
    }

    /// The annotations for the host's admission policies, for each cluster.
    pub fn annotations(&self) -> HashMap<rewrite::ClusterName, Annotations> {
        let entry = |cluster: &Arc<VirtualCluster>| (cluster.name.clone(), cluster.annotations.clone());
        self.by_name.load().values().map(entry).collect()
    }

    /// The Pod Security level that is enforced in each cluster.
    pub fn levels(&self) -> HashMap<rewrite::ClusterName, Level> {
        let clusters = self.by_name.load();
        let level = |cluster: &Arc<VirtualCluster>| Some((cluster.name.clone(), cluster.pod_security?));
        clusters.values().filter_map(level).collect()
    }

    /// What each cluster may store on the host.
    pub fn shares(&self) -> HashMap<rewrite::ClusterName, config::Shares> {
        self.by_name.load().values().map(|cluster| (cluster.name.clone(), cluster.shares.clone())).collect()
    }

    /// The names of all virtual clusters, in no particular order.
    pub fn names(&self) -> Vec<rewrite::ClusterName> {
        self.by_name.load().values().map(|cluster| cluster.name.clone()).collect()
    }
}

// === impl VirtualCluster ===

impl VirtualCluster {
    fn new(
        config: &config::VirtualCluster,
        lasting: LastingState,
        all: &VirtualClusters,
    ) -> Result<Self, ClusterReason> {
        let of_nodes = config.labels();
        let Values { labels, configured, tolerations, host_tokens, external_ips } = values(config)?;
        let is_marked = !config.node_expressions.is_empty();
        let selector = labels.and(configured.clone()).distinct();
        let name = engine_name(&config.name);
        let guard = Guard::new(of_nodes, tolerations);
        Ok(Self {
            nodes: OwnNodes::new(selector.clone(), Arc::clone(&all.nodes)),
            node_selector: NodeSelector { text: selector.to_string().into(), all: selector, configured, is_marked },
            annotations: Annotations::new(&guard, &all.reserved, external_ips, config.expression_keys()),
            guard: Arc::new(guard),
            namespace_rules: Arc::new(
                NamespaceRules::new(all.reserved.keys.clone()).enforcing(config.pod_security.level()),
            ),
            pod_security: config.pod_security.level(),
            shares: config.shares.clone(),
            root: HostNamespace::root(&name),
            host_tokens,
            names: Mapping::new(name.clone(), Arc::default()),
            name,
            lasting,
            namespaces: Arc::clone(&all.namespaces),
            roles: Arc::clone(&all.roles),
        })
    }

    /// The number of its known nodes.
    pub fn count_nodes(&self) -> usize {
        self.nodes.names().len()
    }

    /// Waits until the agent knows the namespaces of the host, shortly after its start. Before that, a namespace of
    /// another owner could seem not to exist.
    pub async fn namespaces_known(&self) {
        self.namespaces.synced().await;
    }

    /// The current mapping of names. This is cheap: the index is shared and not copied.
    pub fn mapping(&self) -> Mapping {
        self.names
            .clone()
            .with_index(self.namespaces.index())
            .with_recently_deleted(self.namespaces.recently_deleted())
            .with_nodes(self.nodes.names())
            .with_shared_roles(self.roles.shared())
    }

    /// Waits until the mapping of names meets a condition.
    pub async fn mapping_until(&self, is_met: impl Fn(&Mapping) -> bool) {
        self.namespaces.until(|| is_met(&self.mapping())).await;
    }

    /// Completes when a watch of objects in namespaces that begins now must end, because an existing namespace has joined or left
    /// the cluster.
    pub fn membership_moved(&self) -> impl Future<Output = ()> + Send + 'static {
        self.namespaces.moved(&self.name)
    }

    /// The known cluster roles of the host.
    pub fn roles(&self) -> &Roles {
        &self.roles
    }
}

impl fmt::Debug for VirtualCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VirtualCluster")
            .field("name", &self.name)
            .field("node_selector", &self.node_selector.text)
            .finish_non_exhaustive()
    }
}

/// Checks the values in a configuration.
pub fn check(config: &config::VirtualCluster) -> Result<(), ClusterReason> {
    values(config).map(drop)
}

fn values(config: &config::VirtualCluster) -> Result<Values, ClusterReason> {
    let configured = config.configured_selector()?;
    let labels = config.labels();
    let labels = LabelSelector::from_labels(labels.iter().map(|(key, value)| (key.as_str(), value.as_str())))?;
    let tolerations = config.tolerations.iter().enumerate().map(|(index, toleration)| {
        toleration::parse(toleration).map_err(|source| ClusterReason::Toleration { index, source })
    });
    let tolerations = tolerations.collect::<Result<Vec<_>, _>>()?;
    let host_tokens = config.host_tokens.as_ref().map(|tokens| HostTokens::new(&*tokens.prefix)).transpose()?;
    let ranges = config.external_ips.iter().enumerate().map(|(index, range)| {
        range.parse::<AddressRange>().map_err(|source| ClusterReason::ExternalIp { index, source })
    });
    let external_ips = ranges.collect::<Result<Vec<_>, _>>()?;
    Ok(Values { labels, configured, tolerations, host_tokens, external_ips })
}

/// Converts the name of a cluster to the type of the engine. Both are DNS labels, but the crates do not depend on each
/// other.
pub fn engine_name(name: &protocol::ClusterName) -> rewrite::ClusterName {
    rewrite::ClusterName::new(name.as_str()).expect("protocol::ClusterName checks the same rule, RFC 1123")
}

#[cfg(test)]
mod tests;

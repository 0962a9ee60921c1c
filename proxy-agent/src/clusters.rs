//! The virtual clusters of this agent, as validated configuration.
//!
//! What is *not* here: what exists on the host ([`namespaces`](crate::namespaces)), and what creates it
//! ([`root`](crate::root)).
//!
//! Reading order: [`VirtualClusters`], [`VirtualCluster`], `toleration`, `address_range`, [`host_api`] (what the agent's own
//! loops ask of the host).

mod address_range;
pub mod host_api;
mod toleration;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use kube_wire::selector::LabelSelector;
use kube_wire::selector::LabelSelectorError;
use rewrite::pod_security::Level;
use rewrite::request::NamespaceRules;
use rewrite::view::DEFAULT_LIST_LIMIT;
use rewrite::{Guard, HostNamespace, Mapping};
use tokio_util::sync::CancellationToken;
use tunnel::{FairBudget, Share};

use crate::config;
use crate::heavy::Heavy;
use crate::host_tokens::{BadPrefix, HostTokens};
use crate::namespaces::annotations::Reserved;
use crate::namespaces::{Annotations, Namespaces};
use crate::nodes::own::{AllNodes, OwnNodes};
use crate::places::Places;
use crate::roles::Roles;
use crate::translate::MAX_OBJECT;
use crate::turns::Turns;
pub use address_range::{AddressRange, InvalidAddressRange};
pub use toleration::TolerationError;

/// Bytes of request bodies and of objects in answers that all virtual clusters together may hold; one may hold a third, which
/// is one object of the host's at its largest.
const BODIES: usize = 48 * 1024 * 1024;

/// Bytes of lists in protobuf that all virtual clusters together may hold; one may hold the longest list that there is.
/// They are not charged to [`BODIES`], so that a client that does not read a list does not prevent others from writing.
const LISTS: usize = 2 * DEFAULT_LIST_LIMIT;

/// Every virtual cluster of this agent, by name.
#[derive(Debug)]
pub struct VirtualClusters {
    by_name: ArcSwap<ByName>,
    namespaces: Arc<Namespaces>,
    nodes: Arc<AllNodes>,
    roles: Arc<Roles>,
    bodies: FairBudget,
    lists: FairBudget,
    reserved: Reserved,
}

/// The virtual clusters of one configuration.
pub type ByName = HashMap<protocol::ClusterName, Arc<VirtualCluster>>;

/// One slice of the host.
pub struct VirtualCluster {
    /// Its name, as the engine spells it.
    pub name: rewrite::ClusterName,
    /// Its nodes.
    pub node_selector: NodeSelector,
    /// What keeps its pods on its nodes.
    pub guard: Arc<Guard>,
    /// The rules for writes of its clients to Namespaces.
    pub namespace_rules: Arc<NamespaceRules>,
    /// The level of Pod Security that is enforced in its namespaces.
    pub pod_security: Option<Level>,
    /// The annotations of its namespaces for the host's admission policies.
    pub annotations: Annotations,
    /// Its cluster scope on the host.
    pub root: HostNamespace,
    /// How it accepts tokens of the host that belong to no service account, if it does.
    pub host_tokens: Option<HostTokens>,
    /// Cancelled when it leaves the configuration: what runs for it must end.
    pub end: CancellationToken,
    /// The memory budget of its requests.
    pub(crate) memory: Memory,
    /// Which of its large bodies is worked on.
    pub(crate) turns: Arc<Turns>,
    /// Its bodies that cost the host much.
    pub(crate) heavy: Heavy,
    /// The places of its responses that stream.
    pub(crate) places: Places,
    pub(crate) nodes: OwnNodes,
    namespaces: Arc<Namespaces>,
    roles: Arc<Roles>,
}

/// The accounts of one virtual cluster for bodies that are held as a whole. Clones are the same.
#[derive(Clone, Debug)]
pub struct Memory {
    /// Request bodies, and objects in answers.
    pub bodies: Share,
    /// Lists in protobuf.
    pub lists: Share,
}

/// Which nodes of the host a virtual cluster has.
#[derive(Clone, Debug)]
pub struct NodeSelector {
    /// To combine with what a client asks for.
    pub labels: LabelSelector,
    /// The same for a `labelSelector` parameter, not yet percent-encoded.
    pub text: Arc<str>,
}

/// What a virtual cluster's configuration says cannot be done.
#[derive(Debug, thiserror::Error)]
#[error("virtual cluster {cluster}")]
pub struct ClusterError {
    /// Which one.
    pub cluster: protocol::ClusterName,
    /// Why.
    #[source]
    pub reason: ClusterReason,
}

/// Why a virtual cluster cannot be made.
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
    /// Checks what the configuration says; the names of namespaces come from `namespaces`.
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
        };
        clusters.exchange(clusters.read(configured)?);
        Ok(clusters)
    }

    /// Checks what another configuration says. Nothing is in force before it is [exchanged](Self::exchange).
    pub fn read<'c>(
        &self,
        configured: impl IntoIterator<Item = &'c config::VirtualCluster>,
    ) -> Result<ByName, ClusterError> {
        let known = self.by_name.load();
        let mut by_name = HashMap::new();
        for config in configured {
            // What runs goes on in the terms in which it began, and on the same account.
            let (end, memory) = match known.get(&config.name) {
                Some(known) => (known.end.clone(), known.memory.clone()),
                None => (CancellationToken::new(), Memory { bodies: self.bodies.share(), lists: self.lists.share() }),
            };
            let cluster = VirtualCluster::new(config, (end, memory), self)
                .map_err(|reason| ClusterError { cluster: config.name.clone(), reason })?;
            by_name.insert(config.name.clone(), Arc::new(cluster));
        }
        Ok(by_name)
    }

    /// The host's nodes, to be [kept](AllNodes::follow).
    pub(crate) fn nodes(&self) -> Arc<AllNodes> {
        Arc::clone(&self.nodes)
    }

    /// The host's cluster roles, to be [kept](Roles::follow).
    pub(crate) fn roles(&self) -> Arc<Roles> {
        Arc::clone(&self.roles)
    }

    /// From now on, there are exactly these; what runs for others ends.
    pub fn exchange(&self, by_name: ByName) {
        let before = self.by_name.load_full();
        let gone = before.iter().filter(|(name, _)| !by_name.contains_key(*name)).map(|(_, cluster)| cluster);
        let gone: Vec<_> = gone.cloned().collect();
        self.by_name.store(Arc::new(by_name));
        for cluster in gone {
            cluster.end.cancel();
        }
    }

    /// The virtual cluster of this name, if it is one of this agent's.
    pub fn get(&self, name: &protocol::ClusterName) -> Option<Arc<VirtualCluster>> {
        self.by_name.load().get(name).cloned()
    }

    /// All, in no order.
    pub fn all(&self) -> Vec<Arc<VirtualCluster>> {
        self.by_name.load().values().cloned().collect()
    }

    /// The annotations for the host's admission policies, for each cluster.
    pub fn annotations(&self) -> HashMap<rewrite::ClusterName, Annotations> {
        let entry = |cluster: &Arc<VirtualCluster>| (cluster.name.clone(), cluster.annotations.clone());
        self.by_name.load().values().map(entry).collect()
    }

    /// The Pod Security levels that are enforced in them.
    pub fn levels(&self) -> HashMap<rewrite::ClusterName, Level> {
        let clusters = self.by_name.load();
        let level = |cluster: &Arc<VirtualCluster>| Some((cluster.name.clone(), cluster.pod_security?));
        clusters.values().filter_map(level).collect()
    }

    /// Their names, in no order.
    pub fn names(&self) -> Vec<rewrite::ClusterName> {
        self.by_name.load().values().map(|cluster| cluster.name.clone()).collect()
    }
}

// === impl VirtualCluster ===

impl VirtualCluster {
    fn new(
        config: &config::VirtualCluster,
        (end, memory): (CancellationToken, Memory),
        all: &VirtualClusters,
    ) -> Result<Self, ClusterReason> {
        let of_nodes = config.labels();
        let labels = LabelSelector::from_labels(of_nodes.iter().map(|(key, value)| (key.as_str(), value.as_str())))?;
        let tolerations = config.tolerations.iter().enumerate().map(|(index, toleration)| {
            toleration::parse(toleration).map_err(|source| ClusterReason::Toleration { index, source })
        });
        let tolerations = tolerations.collect::<Result<Vec<_>, _>>()?;
        let host_tokens = config.host_tokens.as_ref().map(|tokens| HostTokens::new(&*tokens.prefix)).transpose()?;
        let ranges = config.external_ips.iter().enumerate().map(|(index, range)| {
            range.parse::<AddressRange>().map_err(|source| ClusterReason::ExternalIp { index, source })
        });
        let external_ips = ranges.collect::<Result<Vec<_>, _>>()?;
        let name = engine_name(&config.name);
        let guard = Guard::new(of_nodes, tolerations);
        Ok(Self {
            nodes: OwnNodes::new(labels.clone(), Arc::clone(&all.nodes)),
            node_selector: NodeSelector { text: labels.to_string().into(), labels },
            annotations: Annotations::new(&guard, &all.reserved, external_ips),
            guard: Arc::new(guard),
            namespace_rules: Arc::new(
                NamespaceRules::new(all.reserved.keys.clone()).enforcing(config.pod_security.level()),
            ),
            pod_security: config.pod_security.level(),
            root: HostNamespace::root(&name),
            host_tokens,
            name,
            end,
            memory,
            turns: Arc::default(),
            heavy: Heavy::default(),
            places: Places::default(),
            namespaces: Arc::clone(&all.namespaces),
            roles: Arc::clone(&all.roles),
        })
    }

    /// How many nodes it has, as far as is known.
    pub fn count_nodes(&self) -> usize {
        self.nodes.names().len()
    }

    /// Waits until the namespaces of the host are known, shortly after the agent has started. Before that, a namespace of
    /// somebody else could seem not to exist.
    pub async fn namespaces_known(&self) {
        self.namespaces.synced().await;
    }

    /// The names as they are now. Cheap: the index is shared, not copied.
    pub fn mapping(&self) -> Mapping {
        Mapping::new(self.name.clone(), self.namespaces.index())
            .remembering(self.namespaces.late())
            .with_nodes(self.nodes.names())
            .sharing_roles(self.roles.shared())
    }

    /// What is known of the host's cluster roles.
    pub(crate) fn roles(&self) -> &Roles {
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

/// The contract's name of a cluster as the engine's: both are DNS labels, in crates that do not know each other.
pub fn engine_name(name: &protocol::ClusterName) -> rewrite::ClusterName {
    rewrite::ClusterName::new(name.as_str()).expect("protocol::ClusterName checks the same rule, RFC 1123")
}

#[cfg(test)]
mod tests;

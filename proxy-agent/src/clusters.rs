//! The virtual clusters that this agent makes out of its host: what the configuration says of each, in checked form.
//!
//! What is *not* here: what exists on the host ([`namespaces`](crate::namespaces)), and who makes it exist
//! ([`root`](crate::root)).
//!
//! Reading order: [`VirtualClusters`], [`VirtualCluster`], `toleration`, [`host_api`] (what the agent's own loops ask of
//! the host).

pub mod host_api;
mod toleration;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use kube_wire::selector::LabelSelector;
use kube_wire::selector::LabelSelectorError;
use rewrite::{Guard, HostNamespace, Mapping};

use crate::config;
use crate::namespaces::Namespaces;
pub use toleration::TolerationError;

/// Every virtual cluster of this agent, by name.
#[derive(Debug)]
pub struct VirtualClusters {
    by_name: HashMap<protocol::ClusterName, Arc<VirtualCluster>>,
}

/// One slice of the host.
pub struct VirtualCluster {
    /// Its name, as the engine spells it.
    pub name: rewrite::ClusterName,
    /// Its nodes.
    pub node_selector: NodeSelector,
    /// What keeps its pods on its nodes.
    pub guard: Arc<Guard>,
    /// Its cluster scope on the host.
    pub root: HostNamespace,
    namespaces: Arc<Namespaces>,
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
    /// An entry of `tolerations`.
    #[error("tolerations[{index}]")]
    Toleration {
        /// Which one, counted from 0.
        index: usize,
        /// Why.
        source: TolerationError,
    },
}

// === impl VirtualClusters ===

impl VirtualClusters {
    /// Checks what the configuration says; the names of namespaces come from `namespaces`.
    pub fn new<'c>(
        configured: impl IntoIterator<Item = &'c config::VirtualCluster>,
        namespaces: &Arc<Namespaces>,
    ) -> Result<Self, ClusterError> {
        let mut by_name = HashMap::new();
        for config in configured {
            let cluster = VirtualCluster::new(config, Arc::clone(namespaces))
                .map_err(|reason| ClusterError { cluster: config.name.clone(), reason })?;
            by_name.insert(config.name.clone(), Arc::new(cluster));
        }
        Ok(Self { by_name })
    }

    /// The virtual cluster of this name, if it is one of this agent's.
    pub fn get(&self, name: &protocol::ClusterName) -> Option<&Arc<VirtualCluster>> {
        self.by_name.get(name)
    }

    /// All of them, in no order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<VirtualCluster>> {
        self.by_name.values()
    }
}

// === impl VirtualCluster ===

impl VirtualCluster {
    fn new(config: &config::VirtualCluster, namespaces: Arc<Namespaces>) -> Result<Self, ClusterReason> {
        let labels = config.node_selector.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let labels = LabelSelector::from_labels(labels)?;
        let tolerations = config.tolerations.iter().enumerate().map(|(index, toleration)| {
            toleration::parse(toleration).map_err(|source| ClusterReason::Toleration { index, source })
        });
        let tolerations = tolerations.collect::<Result<Vec<_>, _>>()?;
        let name = engine_name(&config.name);
        Ok(Self {
            node_selector: NodeSelector { text: labels.to_string().into(), labels },
            guard: Arc::new(Guard::new(config.node_selector.clone(), tolerations)),
            root: HostNamespace::root(&name),
            name,
            namespaces,
        })
    }

    /// The names as they are now. Cheap: the index is shared, not copied.
    pub fn mapping(&self) -> Mapping {
        Mapping::new(self.name.clone(), self.namespaces.index()).remembering(self.namespaces.late())
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

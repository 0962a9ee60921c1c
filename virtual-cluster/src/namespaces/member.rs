//! A namespace of one of the agent's virtual clusters, and a root namespace.

use std::sync::Arc;

use rewrite::{ClusterName, HostNamespace, VirtualNamespace};

use super::annotations::Annotations;
use super::record::Phase;
use crate::pod_security::Posture;

/// A namespace of one of the agent's virtual clusters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The virtual cluster.
    pub cluster: ClusterName,
    /// The name in the virtual cluster.
    pub name: VirtualNamespace,
    /// The name on the host.
    pub host: HostNamespace,
    /// `metadata.uid`, which is the same in the virtual cluster and on the host.
    pub uid: Arc<str>,
    /// Whether it is being deleted.
    pub phase: Phase,
    /// The state of its Pod Security labels.
    pub posture: Posture,
    /// Its annotations for the admission policies.
    pub annotations: Annotations,
}

/// The root namespace of a virtual cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// `metadata.uid`.
    pub uid: Arc<str>,
    /// Whether it is being deleted.
    pub phase: Phase,
    /// Its annotations for the admission policies.
    pub annotations: Annotations,
}

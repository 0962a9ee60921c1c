//! Which objects of a response are visible.

use crate::name::{HostNamespace, VirtualNamespace};

/// Which objects of a response are visible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// Those whose `metadata.namespace` belongs to the virtual cluster, and none without a namespace.
    ByNamespace,
    /// Those whose name is a namespace that belongs to the virtual cluster: for Namespaces.
    ByName,
    /// Those that are claimed in a namespace that belongs to the virtual cluster: for PersistentVolumes.
    ByClaim,
    /// Those of the virtual cluster's own nodes: for objects with a node.
    ByNode,
    /// Those whose parent is in a namespace of the virtual cluster: for IPAddresses.
    ByParent,
    /// Those that Kubernetes itself creates and maintains, and that nobody has changed: for FlowSchemas and
    /// PriorityLevelConfigurations.
    Autoupdated,
    /// Those of the virtual cluster, and those that every cluster has: for ClusterRoles, and for cluster-scoped custom objects.
    ByRole,
    /// Those of the host's operator, and those with an overlay of the virtual cluster: for shared objects.
    Shared,
    /// All: the request names the object, or the host has selected the objects.
    Everything,
    /// None.
    Nothing,
}

/// Projected objects: objects in a namespace of the host that a virtual cluster sees as if they were in one of its own. They
/// are visible in addition to those of [`Filter::ByNamespace`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectedObjects {
    /// The namespace on the host.
    pub from: HostNamespace,
    /// The namespace in the virtual cluster.
    pub to: VirtualNamespace,
    /// Which.
    pub what: Projected,
    /// Whether objects in other namespaces than `to` are hidden.
    pub only: bool,
}

/// Which objects are projected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Projected {
    /// Those with the name of a node of the virtual cluster.
    NamedLikeNodes,
    /// Events about a node of the virtual cluster.
    AboutNodes,
    /// One object, by its name.
    Named(&'static str),
}

/// Whether an object is visible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is, and was written to the sink.
    Shown,
    /// It does not belong to the virtual cluster. Nothing was written to the sink.
    Foreign,
    /// It is, but the client has not requested it. Nothing was written to the sink.
    Unselected,
    /// It was visible before. Nothing was written to the sink.
    Left,
}

#[cfg(test)]
mod tests;

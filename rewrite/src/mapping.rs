//! Maps names in both directions, for one virtual cluster at one moment.
//!
//! Membership comes from the [`Index`], which the agent fills from labels that only it writes. The *form* of a host name is
//! used only to show a reference to a namespace that does not exist (yet) as the client wrote it.
//!
//! Reading order: [`index`], `namespaces`, [`identity`] (users and groups), [`role`] (cluster roles), [`object`]
//! (cluster-scoped custom objects), `text` (messages), [`Mapping`].

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;

use crate::name::{ClusterName, HostNamespace, VirtualNamespace};
use crate::same::Same;

pub mod identity;
pub mod index;
mod namespaces;
pub mod object;
pub mod role;
mod text;
mod unknown;

pub use index::{Identity, Index, Owner};
pub use namespaces::{FOREIGN_PREFIX, Shown, Taken};
pub use object::RenamedKinds;
pub use role::SharedRoles;
pub(crate) use unknown::UnknownNames;

use identity::{Identities, Seen, Unmappable};
use namespaces::Namespaces;
use object::{CustomObjects, TooLong};
use role::{Roles, SeenRole};
use text::Messages;

/// The names of one virtual cluster, as an immutable snapshot.
#[derive(Clone, Debug)]
pub struct Mapping {
    pub(crate) namespaces: Namespaces,
    identities: Identities,
    roles: Roles,
    /// Cluster-scoped custom objects.
    pub(crate) objects: CustomObjects,
    /// The nodes of the cluster, if they are needed for objects that belong to a node.
    nodes: Arc<NodeNames>,
}

/// Names of nodes, which are the same on both sides.
pub type NodeNames = HashSet<Bytes>;

// === impl Mapping ===

impl Mapping {
    /// The names of `cluster`.
    pub fn new(cluster: ClusterName, index: Arc<Index>) -> Self {
        Self {
            identities: Identities::new(&cluster),
            roles: Roles::default(),
            objects: CustomObjects::default(),
            nodes: Arc::default(),
            namespaces: Namespaces::new(cluster, index),
        }
    }

    /// The same names, with the namespaces of this index.
    #[must_use]
    pub fn with_index(mut self, index: Arc<Index>) -> Self {
        self.namespaces.set_index(index);
        self
    }

    /// The same names, for the response to a request that names `namespace`.
    #[must_use]
    pub fn with_requested_namespace(mut self, namespace: VirtualNamespace) -> Self {
        self.namespaces.note_requested(namespace);
        self
    }

    /// The same names, with the objects of namespaces in `recently_deleted` still visible: a watch can report the deletion of
    /// an object after the index has removed its namespace.
    #[must_use]
    pub fn with_recently_deleted(mut self, recently_deleted: Arc<Index>) -> Self {
        self.namespaces.remember(recently_deleted);
        self
    }

    /// The same names, in a cluster that has these nodes.
    #[must_use]
    pub fn with_nodes(mut self, nodes: Arc<NodeNames>) -> Self {
        self.nodes = nodes;
        self
    }

    /// The same names, on a host whose API server creates these ClusterRoles itself.
    #[must_use]
    pub fn with_shared_roles(mut self, roles: Arc<SharedRoles>) -> Self {
        self.roles = Roles::sharing(roles);
        self
    }

    /// The same names, on a host that has these kinds of cluster-scoped custom objects.
    #[must_use]
    pub fn with_renamed_kinds(mut self, kinds: Arc<RenamedKinds>) -> Self {
        self.objects.set_kinds(kinds);
        self
    }

    /// The same names, for the response to a request about the custom object `name`.
    #[must_use]
    pub fn with_requested_object(mut self, name: &str) -> Self {
        self.objects.note_requested(self.namespaces.cluster(), name);
        self
    }

    /// The `newer` names, for the response to the same request.
    #[must_use]
    pub fn renewed(self, newer: Self) -> Self {
        Self { namespaces: self.namespaces.renewed(newer.namespaces), objects: self.objects, ..newer }
    }

    /// The virtual cluster.
    pub fn cluster(&self) -> &ClusterName {
        self.namespaces.cluster()
    }

    /// Whether a node belongs to the virtual cluster.
    pub(crate) fn has_node(&self, name: &[u8]) -> bool {
        self.nodes.contains(name)
    }

    /// The virtual name of a host namespace that belongs to this virtual cluster.
    #[inline]
    pub fn member(&self, host: &[u8]) -> Option<&VirtualNamespace> {
        self.namespaces.member(host)
    }

    /// Whether a host namespace is known.
    pub fn knows(&self, host: &[u8]) -> bool {
        self.namespaces.knows(host)
    }

    /// How a reference to a host namespace is shown. Unlike [`member`](Self::member) this grants nothing.
    pub fn shown(&self, host: &[u8]) -> Shown {
        self.namespaces.shown(host)
    }

    /// The host name for a virtual one: that of the existing namespace, or the one that a new namespace would get.
    pub fn host(&self, name: &VirtualNamespace) -> Result<HostNamespace, Taken> {
        self.namespaces.host(name)
    }

    /// The virtual cluster's name for a user or group of the host.
    pub fn seen(&self, host: &str) -> Seen {
        self.identities.seen(&self.namespaces, host)
    }

    /// The host's name for a user or group of the virtual cluster.
    pub fn identity(&self, name: &str) -> Result<String, Unmappable> {
        self.identities.host(&self.namespaces, name)
    }

    /// `vc:<cluster>:`, the prefix of this virtual cluster's users, groups and ClusterRoles on the host.
    pub fn identity_prefix(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(self.identities.prefix())
    }

    /// How the virtual cluster sees a ClusterRole of the host.
    pub fn seen_role(&self, host: &[u8]) -> SeenRole {
        self.roles.seen(&self.identities, host)
    }

    /// The host's name for a ClusterRole.
    pub fn role(&self, name: &str) -> Result<String, Unmappable> {
        self.roles.host(&self.identities, name)
    }

    /// Whether every cluster has a role of this name.
    pub fn is_shared_role(&self, name: &str) -> bool {
        self.roles.is_shared(name)
    }

    /// The virtual name of a custom object for its host name. `None` if the host name does not have this cluster's form.
    pub fn seen_object(&self, host: &[u8]) -> Option<Bytes> {
        object::virtual_name(self.cluster(), host)
    }

    /// The host's name for a custom object.
    pub fn object(&self, name: &str) -> Result<String, TooLong> {
        object::host_name(self.cluster(), name)
    }

    /// The message for the virtual cluster. `None` if it does not change.
    pub fn readable(&self, message: &str) -> Option<String> {
        self.messages().readable(message)
    }

    /// The names that are replaced in messages.
    pub(crate) fn messages(&self) -> Messages<'_> {
        Messages { namespaces: &self.namespaces, identities: &self.identities, objects: &self.objects }
    }
}

impl Same for Mapping {
    fn is_same(&self, other: &Self) -> bool {
        // Identities are derived from the name of the cluster, which `namespaces` compares.
        let Self { namespaces, identities: _, roles, objects, nodes } = self;
        namespaces.is_same(&other.namespaces)
            && roles.is_same(&other.roles)
            && objects.is_same(&other.objects)
            && nodes.is_same(&other.nodes)
    }
}

#[cfg(test)]
mod tests;

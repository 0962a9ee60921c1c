//! Maps names in both directions, for one virtual cluster at one moment.
//!
//! Membership comes from the [`Index`], which the agent fills from labels that only it writes. The *form* of a host name is
//! used only to show a reference to a namespace that does not exist (yet) as the client wrote it.
//!
//! Reading order: [`index`], the methods of [`Mapping`], [`identity`] (users and groups), [`role`] (cluster roles),
//! [`object`] (cluster-scoped custom objects), [`text`] (messages).

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use memchr::memmem;

use crate::name::{ClusterName, HostNamespace, VirtualNamespace, is_label};
use crate::parked::PARKED_INFIX;

pub mod identity;
pub mod index;
pub mod object;
pub mod role;
pub mod text;
mod unknown;

pub use index::{Index, Owner};
pub use object::RenamedKinds;
pub(crate) use unknown::UnknownNames;

/// The prefix of a name of the host that has no name in the virtual cluster. No name of a namespace or of a (mapped) user has
/// this prefix, so it can be recognised and refused when a client sends it back.
pub const FOREIGN_PREFIX: &str = "host:";

/// The names of one virtual cluster, as an immutable snapshot.
#[derive(Clone, Debug)]
pub struct Mapping {
    cluster: ClusterName,
    index: Arc<Index>,
    /// Namespaces that the current request names. Responses map them even if they do not exist.
    asked: Vec<(HostNamespace, VirtualNamespace)>,
    /// Namespaces that were deleted a moment ago: events about their objects can still arrive.
    late: Option<Arc<Index>>,
    /// The nodes of the cluster, if they are needed for objects that belong to a node.
    nodes: Arc<NodeNames>,
    /// ClusterRoles that every cluster has.
    shared_roles: Arc<SharedRoles>,
    /// Kinds of cluster-scoped custom objects that have other names on the host.
    renamed: Arc<RenamedKinds>,
    /// The custom object of the current request: its name on the host, and in the virtual cluster.
    about: Option<(Bytes, Bytes)>,
    /// Collects names that are not in the index.
    pub(crate) unknown: UnknownNames,
    /// `vc:<cluster>:`, the prefix of this virtual cluster's users, groups and ClusterRoles on the host.
    identity_prefix: Bytes,
}

/// Names of nodes, which are the same on both sides.
pub type NodeNames = HashSet<Bytes>;

/// Names of ClusterRoles that are the same on both sides.
pub type SharedRoles = HashSet<Bytes>;

/// How a reference to a namespace of the host is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shown {
    /// By this name.
    As(Bytes),
    /// It is not the name of a namespace (empty, or `*`): unchanged.
    Unchanged,
    /// It does not belong to this virtual cluster: with [`FOREIGN_PREFIX`].
    Foreign,
}

/// The host name of a virtual name does not belong to this virtual cluster.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("namespace {name} cannot be used here: its name on the host is taken")]
pub struct Taken {
    /// The virtual name.
    pub name: VirtualNamespace,
}

// === impl Mapping ===

impl Mapping {
    /// The names of `cluster`.
    pub fn new(cluster: ClusterName, index: Arc<Index>) -> Self {
        let identity_prefix = Bytes::from(format!("vc:{cluster}:"));
        Self {
            cluster,
            index,
            asked: Vec::new(),
            late: None,
            nodes: Arc::default(),
            shared_roles: Arc::default(),
            renamed: Arc::default(),
            about: None,
            unknown: UnknownNames::default(),
            identity_prefix,
        }
    }

    /// The same names, for the response to a request that names `namespace`.
    #[must_use]
    pub fn asking_for(mut self, namespace: VirtualNamespace) -> Self {
        if let Ok(host) = self.host(&namespace) {
            self.asked.push((host, namespace));
        }
        self
    }

    /// The same names, with the objects of namespaces in `late` still visible: a watch can report the deletion of an object after
    /// the index has removed its namespace.
    #[must_use]
    pub fn remembering(mut self, late: Arc<Index>) -> Self {
        self.late = Some(late);
        self
    }

    /// The same names, in a cluster that has these nodes.
    #[must_use]
    pub fn with_nodes(mut self, nodes: Arc<NodeNames>) -> Self {
        self.nodes = nodes;
        self
    }

    /// Whether a node belongs to the virtual cluster.
    pub(crate) fn has_node(&self, name: &[u8]) -> bool {
        self.nodes.contains(name)
    }

    /// The virtual cluster.
    pub fn cluster(&self) -> &ClusterName {
        &self.cluster
    }

    /// The virtual name of a host namespace that belongs to this virtual cluster.
    #[inline]
    pub fn member(&self, host: &[u8]) -> Option<&VirtualNamespace> {
        match self.index.owner(host)? {
            Owner::Virtual { cluster, name } if *cluster == self.cluster => Some(name),
            _ => None,
        }
    }

    /// The virtual name of a host namespace whose objects are visible: a member, or a former member.
    #[inline]
    pub(crate) fn member_or_late(&self, host: &[u8]) -> Option<&VirtualNamespace> {
        match (self.index.owner(host), &self.late) {
            (Some(Owner::Virtual { cluster, name }), _) if *cluster == self.cluster => Some(name),
            (Some(_), _) => None,
            (None, late) => match late.as_ref().and_then(|late| late.owner(host)) {
                Some(Owner::Virtual { cluster, name }) if *cluster == self.cluster => Some(name),
                Some(_) => None,
                None => {
                    self.unknown.note(host);
                    None
                }
            },
        }
    }

    /// Whether a host namespace is known.
    pub fn knows(&self, host: &[u8]) -> bool {
        self.index.owner(host).is_some() || self.late.as_ref().is_some_and(|late| late.owner(host).is_some())
    }

    /// How a reference to a host namespace is shown. Unlike [`member`](Self::member) this grants nothing.
    pub fn shown(&self, host: &[u8]) -> Shown {
        match self.index.owner(host) {
            Some(Owner::Virtual { cluster, name }) if *cluster == self.cluster => Shown::As(name.to_bytes()),
            Some(_) => Shown::Foreign,
            None if !is_label(host) => Shown::Unchanged,
            None => {
                if !self.knows(host) && self.asked(host).is_none() {
                    self.unknown.note(host);
                }
                self.written_as(host).map_or(Shown::Foreign, |name| Shown::As(name.to_bytes()))
            }
        }
    }

    /// The virtual name that a client of this cluster must have written, if `host` belongs to nobody.
    fn written_as(&self, host: &[u8]) -> Option<VirtualNamespace> {
        if let Some(name) = self.asked(host) {
            return Some(name.clone());
        }
        let name = host.strip_suffix(self.cluster.as_ref())?.strip_suffix(b"-")?;
        let name = VirtualNamespace::from_bytes(name).ok()?;
        let derived = HostNamespace::derive(&name, &self.cluster);
        (derived.as_ref() == host && !derived.is_root()).then_some(name)
    }

    /// The virtual name of a namespace that the current request names.
    fn asked(&self, host: &[u8]) -> Option<&VirtualNamespace> {
        self.asked.iter().find(|(asked, _)| asked.as_ref() == host).map(|(_, name)| name)
    }

    /// The host name for a virtual one: that of the existing namespace, or the one that a new namespace would get.
    pub fn host(&self, name: &VirtualNamespace) -> Result<HostNamespace, Taken> {
        if let Some(host) = self.index.host(&self.cluster, name) {
            return Ok(host.clone());
        }
        let host = HostNamespace::derive(name, &self.cluster);
        // No client may name a root namespace, or reach a namespace of others by its choice of names.
        if host.is_root() || self.index.owner(host.as_ref()).is_some() {
            return Err(Taken { name: name.clone() });
        }
        Ok(host)
    }

    /// The virtual name of a word in a message, if it is a host namespace of this virtual cluster.
    fn word(&self, word: &[u8]) -> Option<&VirtualNamespace> {
        self.member(word).or_else(|| self.asked(word))
    }

    /// Whether `text` can contain a name of the host.
    fn may_name(&self, text: &[u8]) -> bool {
        // Every host name of this cluster contains a hyphen, and few messages do, so this check saves time.
        self.about.is_some()
            || memchr::memchr(b'-', text).is_some()
            || memmem::find(text, &self.identity_prefix).is_some()
            || memmem::find(text, PARKED_INFIX).is_some()
    }
}

#[cfg(test)]
mod tests;

//! How names become one another, for one virtual cluster at one moment.
//!
//! Membership comes from the [`Index`], which the agent fills from labels that only it writes. The *form* of a host name
//! is looked at in one place only: a reference to a namespace that does not exist (yet) is shown as it was written.
//!
//! Reading order: [`index`], the methods of [`Mapping`], [`identity`] (users and groups), [`role`] (cluster roles),
//! [`object`] (custom objects that are in no namespace), [`text`] (messages).

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

pub use index::{Index, Owner};
pub use object::RenamedKinds;

/// What stands before a name of the host that has no name in the virtual cluster. It is no part of any namespace's or
/// (mapped) user's name, so it can be recognised and refused when a client sends it back.
pub const FOREIGN_PREFIX: &str = "host:";

/// The names of one virtual cluster, as an immutable snapshot.
#[derive(Clone, Debug)]
pub struct Mapping {
    cluster: ClusterName,
    index: Arc<Index>,
    /// Namespaces that the request in hand names: they are to be recognised in the answer even if they do not exist.
    asked: Vec<(HostNamespace, VirtualNamespace)>,
    /// Namespaces that were somebody's until lately: events about what was in them are still on their way.
    late: Option<Arc<Index>>,
    /// The cluster's nodes, as far as anybody has asked for objects that are a node's.
    nodes: Arc<NodeNames>,
    /// Cluster roles that every cluster has.
    shared_roles: Arc<SharedRoles>,
    /// Kinds of custom objects that are in no namespace and have names of their own on the host.
    renamed: Arc<RenamedKinds>,
    /// The one of them that the request in hand is about: its name on the host, and here.
    about: Option<(Bytes, Bytes)>,
    /// `vc:<cluster>:`, with which this virtual cluster's users, groups and cluster roles begin on the host.
    identity_prefix: Bytes,
}

/// Names of nodes, which are the same on either side.
pub type NodeNames = HashSet<Bytes>;

/// Names of cluster roles, which are the same on either side.
pub type SharedRoles = HashSet<Bytes>;

/// How a reference to a namespace of the host is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shown {
    /// By this name.
    As(Bytes),
    /// It is no name of a namespace (empty, or `*`): as it stands.
    Unchanged,
    /// It belongs to someone else: with [`FOREIGN_PREFIX`].
    Foreign,
}

/// The host name that a virtual name leads to is not this virtual cluster's.
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
            identity_prefix,
        }
    }

    /// The same names, for the answer to a request that names `namespace`.
    #[must_use]
    pub fn asking_for(mut self, namespace: VirtualNamespace) -> Self {
        if let Ok(host) = self.host(&namespace) {
            self.asked.push((host, namespace));
        }
        self
    }

    /// The same names, where objects of namespaces in `late` are still shown: a watch tells of an object's end after the
    /// index has told of its namespace's.
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

    /// Whether a node is the virtual cluster's.
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

    /// The virtual name of a host namespace whose objects are shown: a member, or one that was.
    #[inline]
    pub(crate) fn member_or_late(&self, host: &[u8]) -> Option<&VirtualNamespace> {
        match (self.index.owner(host), &self.late) {
            (Some(Owner::Virtual { cluster, name }), _) if *cluster == self.cluster => Some(name),
            (None, Some(late)) => match late.owner(host)? {
                Owner::Virtual { cluster, name } if *cluster == self.cluster => Some(name),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether anything is known of a host namespace.
    pub fn knows(&self, host: &[u8]) -> bool {
        self.index.owner(host).is_some() || self.late.as_ref().is_some_and(|late| late.owner(host).is_some())
    }

    /// How a reference to a host namespace is shown. Unlike [`member`](Self::member) this grants nothing.
    pub fn shown(&self, host: &[u8]) -> Shown {
        match self.index.owner(host) {
            Some(Owner::Virtual { cluster, name }) if *cluster == self.cluster => Shown::As(name.to_bytes()),
            Some(_) => Shown::Foreign,
            None if !is_label(host) => Shown::Unchanged,
            None => match self.written_as(host) {
                Some(name) => Shown::As(name.to_bytes()),
                None => Shown::Foreign,
            },
        }
    }

    /// The virtual name that a client of this cluster must have written, if `host` is in nobody's possession.
    fn written_as(&self, host: &[u8]) -> Option<VirtualNamespace> {
        if let Some(name) = self.asked(host) {
            return Some(name.clone());
        }
        let name = host.strip_suffix(self.cluster.as_ref())?.strip_suffix(b"-")?;
        let name = VirtualNamespace::from_bytes(name).ok()?;
        let derived = HostNamespace::derive(&name, &self.cluster);
        (derived.as_ref() == host && !derived.is_root()).then_some(name)
    }

    /// The virtual name of a namespace that the request in hand names.
    fn asked(&self, host: &[u8]) -> Option<&VirtualNamespace> {
        self.asked.iter().find(|(asked, _)| asked.as_ref() == host).map(|(_, name)| name)
    }

    /// The host name for a virtual one: of the namespace that has it, else the one that creating it would take.
    pub fn host(&self, name: &VirtualNamespace) -> Result<HostNamespace, Taken> {
        if let Some(host) = self.index.host(&self.cluster, name) {
            return Ok(host.clone());
        }
        let host = HostNamespace::derive(name, &self.cluster);
        // A root namespace is nobody's to name, and what belongs to others must not be reached by clever naming.
        if host.is_root() || self.index.owner(host.as_ref()).is_some() {
            return Err(Taken { name: name.clone() });
        }
        Ok(host)
    }

    /// The name that a word of a message stands for, if it is a host namespace of this virtual cluster.
    fn word(&self, word: &[u8]) -> Option<&VirtualNamespace> {
        self.member(word).or_else(|| self.asked(word))
    }

    /// Whether `text` can hold a name of the host at all.
    fn may_name(&self, text: &[u8]) -> bool {
        // Every host name of this cluster holds a hyphen, and so few messages do that this pays.
        self.about.is_some()
            || memchr::memchr(b'-', text).is_some()
            || memmem::find(text, &self.identity_prefix).is_some()
            || memmem::find(text, PARKED_INFIX).is_some()
    }
}

#[cfg(test)]
mod tests;

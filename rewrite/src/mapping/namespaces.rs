//! Namespaces.

use std::sync::Arc;

use bytes::Bytes;

use super::index::{Identity, Index, Owner};
use super::unknown::UnknownNames;
use crate::name::{ClusterName, HostNamespace, VirtualNamespace, is_label};
use crate::same::Same;

/// The prefix of a name of the host that has no name in the virtual cluster. No name of a namespace or of a (mapped) user has
/// this prefix, so it can be recognised and refused when a client sends it back.
pub const FOREIGN_PREFIX: &str = "host:";

/// The namespaces of one virtual cluster.
#[derive(Clone, Debug)]
pub(crate) struct Namespaces {
    cluster: ClusterName,
    index: Arc<Index>,
    /// Namespaces that the current request names. Responses map them even if they do not exist.
    requested: Vec<(HostNamespace, VirtualNamespace)>,
    /// Namespaces that were deleted a moment ago: events about their objects can still arrive.
    recently_deleted: Option<Arc<Index>>,
    /// Collects names that are not in the index.
    pub(crate) unknown: UnknownNames,
}

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

// === impl Namespaces ===

impl Namespaces {
    pub(super) fn new(cluster: ClusterName, index: Arc<Index>) -> Self {
        Self { cluster, index, requested: Vec::new(), recently_deleted: None, unknown: UnknownNames::default() }
    }

    pub(super) fn set_index(&mut self, index: Arc<Index>) {
        self.index = index;
    }

    /// The current request names `namespace`.
    pub(super) fn note_requested(&mut self, namespace: VirtualNamespace) {
        if let Ok(host) = self.host(&namespace) {
            self.requested.push((host, namespace));
        }
    }

    /// The objects of the namespaces in `recently_deleted` are still visible.
    pub(super) fn remember(&mut self, recently_deleted: Arc<Index>) {
        self.recently_deleted = Some(recently_deleted);
    }

    /// The `newer` namespaces, for the response to the same request.
    pub(super) fn renewed(self, newer: Self) -> Self {
        Self { requested: self.requested, unknown: self.unknown, ..newer }
    }

    /// Whether both have the same indexes.
    pub(crate) fn has_index_of(&self, other: &Self) -> bool {
        self.index.is_same(&other.index) && self.recently_deleted.is_same(&other.recently_deleted)
    }

    /// The virtual cluster.
    pub(crate) fn cluster(&self) -> &ClusterName {
        &self.cluster
    }

    /// The uid of a Namespace as the virtual cluster sees it. `None` if it is the host's.
    pub(crate) fn shown_uid(&self, host: &[u8]) -> Option<Bytes> {
        self.identity().filter(|identity| identity.host == host).map(|identity| identity.shown.clone())
    }

    /// The host's uid of a Namespace, if the virtual cluster sees another one.
    pub(crate) fn host_uid(&self, shown: &[u8]) -> Option<Bytes> {
        self.identity().filter(|identity| identity.shown == shown).map(|identity| identity.host.clone())
    }

    /// The uid of its `kube-system`, if the virtual cluster sees another one than the host.
    fn identity(&self) -> Option<&Identity> {
        self.index.identity(&self.cluster)
    }

    /// The virtual name of a host namespace that belongs to this virtual cluster.
    #[inline]
    pub(crate) fn member(&self, host: &[u8]) -> Option<&VirtualNamespace> {
        match self.index.owner(host)? {
            Owner::Virtual { cluster, name } if *cluster == self.cluster => Some(name),
            _ => None,
        }
    }

    /// The virtual name of a host namespace whose objects are visible: a member, or a former member.
    #[inline]
    pub(crate) fn member_or_recently_deleted(&self, host: &[u8]) -> Option<&VirtualNamespace> {
        match (self.index.owner(host), &self.recently_deleted) {
            (Some(Owner::Virtual { cluster, name }), _) if *cluster == self.cluster => Some(name),
            (Some(_), _) => None,
            (None, recent) => match recent.as_ref().and_then(|recent| recent.owner(host)) {
                Some(Owner::Virtual { cluster, name }) if *cluster == self.cluster => Some(name),
                Some(_) => None,
                None => {
                    if self.derived_from(host).is_some() || HostNamespace::may_be_shortened(host) {
                        self.unknown.note_hiding(host);
                    }
                    None
                }
            },
        }
    }

    /// Whether a host namespace is known.
    pub(crate) fn knows(&self, host: &[u8]) -> bool {
        self.index.owner(host).is_some()
            || self.recently_deleted.as_ref().is_some_and(|recent| recent.owner(host).is_some())
    }

    /// How a reference to a host namespace is shown. Unlike [`member`](Self::member) this grants nothing.
    pub(crate) fn shown(&self, host: &[u8]) -> Shown {
        match self.index.owner(host) {
            Some(Owner::Virtual { cluster, name }) if *cluster == self.cluster => Shown::As(name.to_bytes()),
            Some(_) => Shown::Foreign,
            None if !is_label(host) => Shown::Unchanged,
            None => {
                let name = self.written_as(host);
                // If there is a name, it stays the same once the namespace is known.
                if name.is_none() && HostNamespace::may_be_shortened(host) && !self.knows(host) {
                    self.unknown.note(host);
                }
                name.map_or(Shown::Foreign, |name| Shown::As(name.to_bytes()))
            }
        }
    }

    /// The virtual name that a client of this cluster must have written, if `host` has no owner.
    fn written_as(&self, host: &[u8]) -> Option<VirtualNamespace> {
        self.requested(host).cloned().or_else(|| self.derived_from(host))
    }

    /// The virtual name in a host name that is not shortened.
    fn derived_from(&self, host: &[u8]) -> Option<VirtualNamespace> {
        let name = host.strip_suffix(self.cluster.as_ref())?.strip_suffix(b"-")?;
        let name = VirtualNamespace::from_bytes(name).ok()?;
        let derived = HostNamespace::derive(&name, &self.cluster);
        (derived.as_ref() == host && !derived.is_root()).then_some(name)
    }

    /// The virtual name of a namespace that the current request names.
    fn requested(&self, host: &[u8]) -> Option<&VirtualNamespace> {
        self.requested.iter().find(|(requested, _)| requested.as_ref() == host).map(|(_, name)| name)
    }

    /// The host name for a virtual one: that of the existing namespace, or the one that a new namespace would get.
    pub(crate) fn host(&self, name: &VirtualNamespace) -> Result<HostNamespace, Taken> {
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
    pub(super) fn word(&self, word: &[u8]) -> Option<&VirtualNamespace> {
        self.member(word).or_else(|| self.requested(word))
    }
}

impl Same for Namespaces {
    fn is_same(&self, other: &Self) -> bool {
        // `unknown` collects names, and changes none.
        let Self { cluster, index: _, requested, recently_deleted: _, unknown: _ } = self;
        *cluster == other.cluster && self.has_index_of(other) && *requested == other.requested
    }
}

//! The owners of the host's namespaces.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use bytes::Bytes;

use crate::name::{ClusterName, HostNamespace, MAX_LABEL, VirtualNamespace};

/// All namespaces of one host cluster, as an immutable snapshot that is swapped as a whole.
///
/// It should also contain namespaces that belong to no virtual cluster, so that no virtual name can refer to one of them.
#[derive(Clone, Debug, Default)]
pub struct Index {
    by_host: HashMap<HostNamespace, Owner>,
    by_virtual: HashMap<ClusterName, HashMap<VirtualNamespace, HostNamespace>>,
    /// The virtual clusters that were restored.
    identities: HashMap<ClusterName, Identity>,
    /// Bit `n` is set if the index has a host name of `n` bytes. This excludes most words of a message.
    lengths: u64,
}

/// The uid of the `kube-system` of a virtual cluster, which identifies a cluster. After a restore, the host's Namespace has a new
/// uid, and clients of the virtual cluster still see the one from before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The uid on the host.
    pub host: Bytes,
    /// The uid that clients see.
    pub shown: Bytes,
}

/// The owner of a host namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A namespace of a virtual cluster.
    Virtual {
        /// The virtual cluster.
        cluster: ClusterName,
        /// The name of the namespace in it.
        name: VirtualNamespace,
    },
    /// The host itself, or the root namespace of a virtual cluster.
    Host,
}

/// Another host namespace already has the virtual name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("namespace {name} of virtual cluster {cluster} is already {present} on the host")]
pub struct Ambiguous {
    /// The virtual cluster.
    pub cluster: ClusterName,
    /// The name in it.
    pub name: VirtualNamespace,
    /// The host namespace that has the name.
    pub present: HostNamespace,
}

// === impl Index ===

impl Index {
    /// No namespaces.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a namespace of a virtual cluster. A host name has one owner, so this replaces an earlier entry.
    pub fn insert(
        &mut self,
        host: HostNamespace,
        cluster: ClusterName,
        name: VirtualNamespace,
    ) -> Result<(), Ambiguous> {
        let present = self.by_virtual.get(&cluster).and_then(|names| names.get(&name));
        if let Some(present) = present.filter(|present| **present != host) {
            return Err(Ambiguous { present: present.clone(), cluster, name });
        }
        self.remove(&host);
        self.note_length(&host);
        self.by_virtual.entry(cluster.clone()).or_default().insert(name.clone(), host.clone());
        self.by_host.insert(host, Owner::Virtual { cluster, name });
        Ok(())
    }

    /// Adds a namespace that belongs to no virtual cluster.
    pub fn insert_host(&mut self, host: HostNamespace) {
        self.remove(&host);
        self.note_length(&host);
        self.by_host.insert(host, Owner::Host);
    }

    /// Removes a namespace.
    pub fn remove(&mut self, host: &HostNamespace) {
        let Some(Owner::Virtual { cluster, name }) = self.by_host.remove(host) else {
            return;
        };
        if let Entry::Occupied(mut names) = self.by_virtual.entry(cluster) {
            names.get_mut().remove(&name);
            if names.get().is_empty() {
                names.remove();
            }
        }
    }

    /// Shows another uid of this virtual cluster's `kube-system`, or that of the host.
    pub fn identify(&mut self, cluster: &ClusterName, identity: Option<Identity>) {
        match identity {
            Some(identity) => _ = self.identities.insert(cluster.clone(), identity),
            None => _ = self.identities.remove(cluster),
        }
    }

    /// The uid that a restored virtual cluster shows.
    pub fn identity(&self, cluster: &ClusterName) -> Option<&Identity> {
        self.identities.get(cluster)
    }

    /// The owner of a host name. `None` if there is no such namespace.
    #[inline]
    pub fn owner(&self, host: &[u8]) -> Option<&Owner> {
        if host.len() > MAX_LABEL || self.lengths & 1 << host.len() == 0 {
            return None;
        }
        self.by_host.get(host)
    }

    /// The host name of a virtual cluster's namespace.
    pub fn host(&self, cluster: &ClusterName, name: &VirtualNamespace) -> Option<&HostNamespace> {
        self.by_virtual.get(cluster)?.get(name)
    }

    /// The number of namespaces of a virtual cluster.
    pub fn count(&self, cluster: &ClusterName) -> usize {
        self.by_virtual.get(cluster).map_or(0, HashMap::len)
    }

    fn note_length(&mut self, host: &HostNamespace) {
        self.lengths |= 1 << host.as_str().len();
    }
}

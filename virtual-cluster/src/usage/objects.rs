//! What is known about the objects of one resource, in few bytes for each of them.

use std::collections::HashMap;

use rewrite::ClusterName;

use super::accounts::Held;
use super::owners::Owners;

/// The objects of one resource, by the digest of their names.
#[derive(Debug, Default)]
pub(super) struct Objects {
    known: HashMap<u64, Known>,
    /// The virtual clusters of objects with [`Owner::SHARED`].
    sharing: HashMap<u64, Box<[ClusterName]>>,
    clusters: Clusters,
}

/// A version of an object.
#[derive(Clone, Copy, Debug)]
pub(super) struct Version {
    bytes: u32,
    /// A part of the digest of its `resourceVersion`.
    digest: u16,
}

/// What was known about an object.
#[derive(Debug)]
pub(super) struct Before {
    version: Option<Version>,
    /// The virtual clusters of a cluster-scoped object.
    pub(super) clusters: Vec<ClusterName>,
}

/// An object. There can be millions, so the fields need only eight bytes.
#[derive(Clone, Copy, Debug)]
struct Known {
    bytes: u32,
    digest: u16,
    owner: Owner,
}

/// The virtual cluster of a cluster-scoped object, as a position in [`Clusters`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Owner(u16);

/// The virtual clusters that own cluster-scoped objects.
#[derive(Debug, Default)]
struct Clusters {
    names: Vec<ClusterName>,
    owners: HashMap<ClusterName, Owner>,
}

// === impl Objects ===

impl Objects {
    /// The version of an object, if it is the same as `version`.
    pub(super) fn known(&self, key: u64, version: Version) -> Option<Version> {
        self.known.get(&key).copied().map(Known::version).filter(|known| known.digest == version.digest)
    }

    /// Whether several virtual clusters have an object.
    pub(super) fn has_several_owners(&self, key: u64) -> bool {
        self.sharing.get(&key).is_some_and(|sharing| sharing.len() > 1)
    }

    /// Replaces what is known about an object; `None` if it no longer counts. Returns what was known before.
    pub(super) fn replace(&mut self, key: u64, now: Option<(Version, &Owners)>) -> Before {
        let (known, sharing) = match now {
            None => (None, None),
            Some((version, owners)) => {
                let owner = self.clusters.owner(owners);
                let sharing = (owner == Owner::SHARED).then(|| owners.clusters().into());
                (Some(Known { bytes: version.bytes, digest: version.digest, owner }), sharing)
            }
        };
        let before = match known {
            Some(known) => self.known.insert(key, known),
            None => self.known.remove(&key),
        };
        let shared = match sharing {
            Some(sharing) => self.sharing.insert(key, sharing),
            None => self.sharing.remove(&key),
        };
        let one = before.and_then(|before| self.clusters.name(before.owner)).cloned();
        Before {
            version: before.map(Known::version),
            clusters: shared.map_or_else(|| one.into_iter().collect(), Vec::from),
        }
    }
}

// === impl Known ===

impl Known {
    fn version(self) -> Version {
        Version { bytes: self.bytes, digest: self.digest }
    }
}

// === impl Version ===

impl Version {
    /// A version of this length. `digest` is that of its `resourceVersion`.
    pub(super) fn new(digest: u64, length: usize) -> Self {
        Self {
            bytes: u32::try_from(length).unwrap_or(u32::MAX),
            digest: u16::try_from(digest >> 48).unwrap_or_default(),
        }
    }

    /// The same version, with the larger one of both lengths.
    pub(super) fn max(self, other: Self) -> Self {
        Self { bytes: self.bytes.max(other.bytes), ..self }
    }

    pub(super) fn bytes(self) -> u64 {
        self.bytes.into()
    }

    /// What the object counts. Some objects count only with their bytes.
    pub(super) fn held(self, is_object: bool) -> Held {
        Held { objects: is_object.into(), bytes: self.bytes() }
    }
}

// === impl Before ===

impl Before {
    /// What the object counted.
    pub(super) fn held(&self, is_object: bool) -> Held {
        self.version.map_or_else(Held::default, |version| version.held(is_object))
    }
}

// === impl Owner ===

impl Owner {
    /// The namespace of the object decides.
    const NAMESPACE: Self = Self(u16::MAX);
    /// Several virtual clusters, or one for which there is no position left.
    const SHARED: Self = Self(u16::MAX - 1);
}

// === impl Clusters ===

impl Clusters {
    fn owner(&mut self, owners: &Owners) -> Owner {
        let cluster = match owners {
            Owners::Namespace { .. } => return Owner::NAMESPACE,
            Owners::Sharing(_) => return Owner::SHARED,
            Owners::Cluster(cluster) => cluster,
        };
        if let Some(owner) = self.owners.get(cluster) {
            return *owner;
        }
        let position = u16::try_from(self.names.len()).ok().filter(|position| *position < Owner::SHARED.0);
        let Some(position) = position else { return Owner::SHARED };
        self.names.push(cluster.clone());
        self.owners.insert(cluster.clone(), Owner(position));
        Owner(position)
    }

    fn name(&self, owner: Owner) -> Option<&ClusterName> {
        self.names.get(usize::from(owner.0))
    }
}

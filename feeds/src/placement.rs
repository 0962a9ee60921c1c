//! The virtual clusters to which an object belongs.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hub::{ClusterId, Place, ResourceVersion};
use rewrite::facts::Facts;
use rewrite::mapping::Owner;
use rewrite::{HostNamespace, Index};
use tokio::time::{Instant, timeout};
use virtual_cluster::namespaces::{NamespaceEvent, Namespaces, Subscription};

use crate::clusters::Clusters;
use crate::wait_budget::WaitBudget;

/// How the virtual clusters of a resource's objects are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Membership {
    /// An object belongs to the virtual cluster of its namespace.
    Namespaced,
    /// The same. Also, the objects of a root namespace belong to its virtual cluster.
    NamespacedOrRoot,
    /// The object is a Namespace, and belongs to its virtual cluster.
    Namespace,
    /// All virtual clusters get all objects, and afterwards the filter of the request decides what they see.
    Everybody,
}

/// Decides to which virtual clusters an object belongs.
pub trait Placement: fmt::Debug + Send + Sync {
    /// The source of changes of membership.
    type Moves: Moves + Send;

    /// The virtual clusters of an object with this version, in this namespace. It may wait a short time.
    fn place(
        &self,
        membership: Membership,
        namespace: &str,
        version: ResourceVersion,
    ) -> impl Future<Output = Placed> + Send;

    /// The virtual clusters of the objects in a namespace. `None` if there is no such namespace.
    fn place_of(&self, membership: Membership, namespace: &str) -> Option<Place>;

    /// All namespaces of a virtual cluster that can have such objects.
    fn namespaces_of(&self, membership: Membership, cluster: ClusterId) -> Vec<HostNamespace>;

    /// Future changes of membership.
    fn moves(&self) -> Self::Moves;
}

/// The place of an object, which may change when the namespace of the object changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placed {
    /// The namespace exists, or may exist without being known yet.
    Now(Place),
    /// The namespace has been deleted since.
    Formerly(Place),
}

/// Changes of membership: which namespaces belong to which virtual clusters.
pub trait Moves {
    /// The next change. Cancel-safe.
    fn next(&mut self) -> impl Future<Output = Move> + Send;
}

/// A possible change of membership.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Move {
    /// This namespace may belong to another virtual cluster.
    Namespace(HostNamespace),
    /// Any namespace may.
    Everything,
}

/// An object belongs to the virtual cluster of its namespace.
pub struct ByNamespace {
    namespaces: Arc<Namespaces>,
    clusters: Arc<Clusters>,
    wait_budget: Mutex<WaitBudget>,
}

// === impl Membership ===

impl Membership {
    /// The name of the namespace that decides. `None` if none does.
    pub(crate) fn namespace<'f>(self, facts: &'f Facts<'_>) -> Option<&'f str> {
        match self {
            Self::Namespaced | Self::NamespacedOrRoot => Some(&facts.namespace),
            Self::Namespace => Some(&facts.name),
            Self::Everybody => None,
        }
    }
}

// === impl ByNamespace ===

impl ByNamespace {
    /// With the index of the host's namespaces.
    pub fn new(namespaces: Arc<Namespaces>, clusters: Arc<Clusters>) -> Self {
        Self { namespaces, clusters, wait_budget: Mutex::new(WaitBudget::new()) }
    }

    /// Waits until the index has a namespace, or is newer than one of the namespace's objects. It does not wait for long.
    async fn arrival(&self, membership: Membership, namespace: &str, version: ResourceVersion) {
        let is_decided = || self.has_seen(version) || self.place_of(membership, namespace).is_some();
        let begun = Instant::now();
        let limit = self.wait_budget().left(begun);
        if limit.is_zero() {
            return;
        }
        // The wait has a limit, so it does not matter whether it was long enough.
        let _ = timeout(limit, self.namespaces.until(is_decided)).await;
        self.wait_budget().spend(begun.elapsed());
    }

    fn has_seen(&self, version: ResourceVersion) -> bool {
        self.namespaces.has_seen(version.number())
    }

    fn wait_budget(&self) -> MutexGuard<'_, WaitBudget> {
        self.wait_budget.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The owner of a namespace, if it is in this index.
    fn owner(&self, index: &Index, namespace: &str) -> Option<Place> {
        Some(match index.owner(namespace.as_bytes())? {
            Owner::Virtual { cluster, .. } => Place::One(self.clusters.number(cluster)),
            Owner::Host => Place::Nobody,
        })
    }
}

impl Placement for ByNamespace {
    type Moves = Subscription;

    async fn place(&self, membership: Membership, namespace: &str, version: ResourceVersion) -> Placed {
        if self.place_of(membership, namespace).is_none() {
            self.arrival(membership, namespace, version).await;
        }
        if let Some(place) = self.place_of(membership, namespace) {
            return Placed::Now(place);
        }
        match self.owner(&self.namespaces.recently_deleted(), namespace) {
            Some(place) => Placed::Formerly(place),
            // If the index is newer than the object, the namespace has been deleted since.
            None if self.has_seen(version) => Placed::Formerly(Place::Nobody),
            None => Placed::Now(Place::Nobody),
        }
    }

    fn place_of(&self, membership: Membership, namespace: &str) -> Option<Place> {
        let place = self.owner(&self.namespaces.index(), namespace)?;
        if place != Place::Nobody || membership != Membership::NamespacedOrRoot {
            return Some(place);
        }
        let root = self.namespaces.cluster_of_root(namespace);
        Some(root.map_or(place, |cluster| Place::One(self.clusters.number(&cluster))))
    }

    fn namespaces_of(&self, membership: Membership, cluster: ClusterId) -> Vec<HostNamespace> {
        let Some(cluster) = self.clusters.name(cluster) else { return Vec::new() };
        let members = self.namespaces.members(&cluster).into_iter().map(|member| member.host);
        let roots = HostNamespace::former_root(&cluster).into_iter().chain([HostNamespace::root(&cluster)]);
        let has_roots = membership == Membership::NamespacedOrRoot;
        members.chain(roots.filter(|_| has_roots)).collect()
    }

    fn moves(&self) -> Subscription {
        self.namespaces.subscribe()
    }
}

impl fmt::Debug for ByNamespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByNamespace").finish_non_exhaustive()
    }
}

// === impl Moves ===

impl Moves for Subscription {
    async fn next(&mut self) -> Move {
        match Self::next(self).await {
            Some(NamespaceEvent::Changed(host)) => Move::Namespace(host),
            Some(NamespaceEvent::Everything) => Move::Everything,
            // The index lives as long as the placement.
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests;

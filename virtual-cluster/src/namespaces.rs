//! The index of the host's namespaces and their owners, for all mappings.
//!
//! One list and watch of the host's Namespaces updates the index. The responses to the agent's own creations also
//! update it, so that it contains a namespace before the client gets the response. It also contains namespaces without
//! an owner, because the agent must recognise names that are taken. What is *not* here: creating anything on the host
//! ([`provisioner`](crate::provisioner)).
//!
//! Reading order: [`Namespaces`], `record` (what is kept of a Namespace object), `ledger` (which of two states is
//! newer), `moves`, [`Subscription`], [`annotations`] and [`Full`] (for the admission policies).

pub mod annotations;
mod full;
mod ledger;
mod member;
mod moves;
mod record;
mod subscription;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use rewrite::{ClusterName, HostNamespace, Index};
use serde_json::Value;
use tokio::sync::{broadcast, watch};
use tracing::warn;

pub use annotations::Annotations;
pub use full::{FULL, Full};
use host_client::api::Change;
use host_client::api::Following;
use ledger::{Ledger, Source};
pub use member::{Member, Root};
use moves::Moves;
pub use record::{IDENTITY, NotANamespace, Phase, claim};
pub use subscription::{NamespaceEvent, Subscription};

/// The path of all Namespaces.
pub const PATH: &str = "/api/v1/namespaces";

/// A name that no namespace has: DNS labels contain no dots.
pub const NOBODYS: &str = "taken.by.somebody.else";

/// The number of changes that a subscriber may be behind. After that, it gets [`NamespaceEvent::Everything`].
const BACKLOG: usize = 1024;

/// The known namespaces of the host.
pub struct Namespaces {
    ledger: Mutex<Ledger>,
    index: ArcSwap<Index>,
    recently_deleted: ArcSwap<Index>,
    /// Tells of each new index.
    published: watch::Sender<()>,
    synced: watch::Sender<bool>,
    changes: broadcast::Sender<HostNamespace>,
    moves: Moves,
}

// === impl Namespaces ===

impl Namespaces {
    /// An empty index. Namespaces of `clusters` will be members.
    pub fn new(clusters: impl IntoIterator<Item = ClusterName>) -> Self {
        let ledger = Ledger::new(clusters);
        Self {
            index: ArcSwap::new(ledger.index()),
            recently_deleted: ArcSwap::new(ledger.recently_deleted()),
            ledger: Mutex::new(ledger),
            published: watch::Sender::new(()),
            synced: watch::Sender::new(false),
            changes: broadcast::Sender::new(BACKLOG),
            moves: Moves::default(),
        }
    }

    /// Makes the namespaces of exactly these clusters members.
    pub fn serve(&self, clusters: impl IntoIterator<Item = ClusterName>) {
        let mut ledger = self.lock();
        let moved = ledger.serve(clusters);
        // First, because a subscriber reads the index.
        self.publish(&ledger);
        for host in moved {
            tell(&self.changes, host);
        }
    }

    /// Keeps the index up to date forever.
    pub async fn follow(&self, mut following: impl Following) {
        loop {
            match following.next().await {
                Change::Applied(namespace) => {
                    if let Err(error) = self.take(&namespace, Source::Watch) {
                        warn!(%error, "the host returned an invalid Namespace");
                    }
                }
                Change::Deleted(namespace) => self.forget(&namespace),
                Change::Synced => self.complete(),
            }
        }
    }

    /// Adds a Namespace from a response of the host, unless the index has a newer state, or the namespace has been
    /// deleted since. Returns it if it is a member.
    pub fn learn(&self, namespace: &Value) -> Result<Option<Member>, NotANamespace> {
        self.take(namespace, Source::Response)
    }

    /// Removes a Namespace. `namespace` is its last state, or its `metadata` with name and uid.
    pub fn forget(&self, namespace: &Value) {
        let Ok((host, gone)) = record::gone(namespace) else { return };
        let mut ledger = self.lock();
        if ledger.forget(&host, &gone) {
            self.publish(&ledger);
            tell(&self.changes, host);
        }
    }

    /// The current index.
    pub fn index(&self) -> Arc<Index> {
        self.index.load_full()
    }

    /// Waits until the index meets a condition, which this function checks whenever the index changes.
    pub async fn until(&self, mut is_met: impl FnMut() -> bool) {
        let mut published = self.published.subscribe();
        while !is_met() {
            published.changed().await.expect("the sender is borrowed from self");
        }
    }

    /// Whether the index has all changes up to this resource version. It may have more without knowing it.
    pub fn has_seen(&self, version: u64) -> bool {
        self.lock().has_seen(version)
    }

    /// Members that were deleted recently.
    pub fn recently_deleted(&self) -> Arc<Index> {
        self.recently_deleted.load_full()
    }

    /// The namespace with this host name, if it is a member.
    pub fn member(&self, host: &HostNamespace) -> Option<Member> {
        self.lock().member(host)
    }

    /// Whether the namespace with this host name is a member that is being deleted.
    pub fn is_ending(&self, host: &HostNamespace) -> bool {
        self.lock().is_ending(host)
    }

    /// The virtual cluster whose root namespace has this host name, if it is served.
    pub fn cluster_of_root(&self, host: &str) -> Option<ClusterName> {
        self.lock().cluster_of_root(host)
    }

    /// Another virtual cluster of the host, whose namespaces can have the same host names as those of this new one.
    pub(crate) fn name_conflict(&self, cluster: &ClusterName) -> Option<ClusterName> {
        self.lock().name_conflict(cluster)
    }

    /// All namespaces of a virtual cluster.
    pub fn members(&self, cluster: &ClusterName) -> Vec<Member> {
        self.lock().members(cluster)
    }

    /// The root namespace of a virtual cluster. `None` if it does not exist, or does not have the label of one.
    pub fn root(&self, cluster: &ClusterName) -> Option<Root> {
        self.lock().root(cluster)
    }

    /// The keys of the labels by which virtual clusters select their nodes. Includes virtual clusters of other agents.
    pub fn node_labels(&self) -> BTreeSet<String> {
        self.lock().node_labels()
    }

    /// The virtual clusters that have reached limits for what they store. Includes virtual clusters of other agents.
    pub fn full(&self) -> BTreeMap<ClusterName, Full> {
        self.lock().full()
    }

    /// Whether the first list is complete. Before that, a namespace may exist that is not in the index.
    pub fn is_synced(&self) -> bool {
        *self.synced.borrow()
    }

    /// Waits until [`is_synced`](Self::is_synced).
    pub async fn synced(&self) {
        if self.is_synced() {
            return;
        }
        let mut synced = self.synced.subscribe();
        synced.wait_for(|synced| *synced).await.expect("the sender is borrowed from self");
    }

    /// Completes when a watch of this virtual cluster that begins now must end, because an existing namespace has joined or left
    /// the cluster.
    pub fn moved(&self, cluster: &ClusterName) -> impl Future<Output = ()> + Send + 'static {
        self.moves.next(cluster)
    }

    /// Subscribes to future changes of members and root namespaces.
    pub fn subscribe(&self) -> Subscription {
        Subscription::new(self.changes.subscribe())
    }

    fn take(&self, namespace: &Value, source: Source) -> Result<Option<Member>, NotANamespace> {
        let (host, record) = record::parse(namespace)?;
        let mut ledger = self.lock();
        let (was_known, before) = (ledger.knows(&host), ledger.member(&host));
        let member = ledger.member_of(&host, &record);
        if ledger.learn(&host, record, source) {
            self.publish(&ledger);
            let identity = |member: &Option<Member>| member.as_ref().map(|it| (it.cluster.clone(), it.name.clone()));
            if was_known && identity(&before) != identity(&member) {
                before.iter().chain(&member).for_each(|it| self.moves.note(&it.cluster));
            }
            if member.is_some() || before.is_some() || host.is_root() {
                tell(&self.changes, host);
            }
        }
        Ok(member)
    }

    fn complete(&self) {
        let mut ledger = self.lock();
        ledger.complete();
        self.publish(&ledger);
        drop(ledger);
        self.synced.send_replace(true);
    }

    /// Call this only while the ledger is locked, so that snapshots are published in order.
    fn publish(&self, ledger: &Ledger) {
        // During the first list, no request is served, so no snapshot is needed.
        if ledger.is_complete() {
            self.recently_deleted.store(ledger.recently_deleted());
            self.index.store(ledger.index());
            self.published.send_replace(());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn tell(changes: &broadcast::Sender<HostNamespace>, host: HostNamespace) {
    // This fails if there is no subscriber.
    let _ = changes.send(host);
}

impl fmt::Debug for Namespaces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Namespaces").field("synced", &self.is_synced()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;

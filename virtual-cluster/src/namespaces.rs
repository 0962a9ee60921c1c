//! The namespaces of the host and their owners: the index for all mappings.
//!
//! One list and watch of the host's Namespaces feeds it, and so do the responses to the agent's own creations, so that
//! a namespace is in it before its creator gets a response. Namespaces without an owner are in it too, because the
//! agent must recognise names that are taken. What is *not* here: creating anything on the host
//! ([`provisioner`](crate::provisioner)).
//!
//! Reading order: [`Namespaces`], `record` (what a Namespace object says), `ledger` (which of two states is the later
//! one), [`Subscription`], [`annotations`] (what admission policies read).

pub mod annotations;
mod ledger;
mod record;
mod subscription;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use rewrite::{ClusterName, HostNamespace, Index, VirtualNamespace};
use serde_json::Value;
use tokio::sync::{broadcast, watch};
use tracing::warn;

use crate::pod_security::Posture;
pub use annotations::Annotations;
use host_client::api::Change;
use host_client::api::Following;
use ledger::{Ledger, Source};
pub use record::{NotANamespace, Phase};
pub use subscription::{NamespaceEvent, Subscription};

/// The path of all Namespaces.
pub const PATH: &str = "/api/v1/namespaces";

/// Changes that a subscriber may be behind before it is told to look at everything instead.
const BACKLOG: usize = 1024;

/// The host's namespaces, as far as this agent knows.
pub struct Namespaces {
    ledger: Mutex<Ledger>,
    index: ArcSwap<Index>,
    recently_deleted: ArcSwap<Index>,
    synced: watch::Sender<bool>,
    changes: broadcast::Sender<HostNamespace>,
}

/// A namespace of a virtual cluster of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Whose it is.
    pub cluster: ClusterName,
    /// Its name there.
    pub name: VirtualNamespace,
    /// Its name on the host.
    pub host: HostNamespace,
    /// `metadata.uid`, the same on either side.
    pub uid: Arc<str>,
    /// Whether it is being deleted.
    pub phase: Phase,
    /// The state of its Pod Security labels.
    pub posture: Posture,
    /// Its annotations for the admission policies.
    pub annotations: Annotations,
}

// === impl Namespaces ===

impl Namespaces {
    /// Nothing is known yet; namespaces of `clusters` will be members.
    pub fn new(clusters: impl IntoIterator<Item = ClusterName>) -> Self {
        let ledger = Ledger::new(clusters);
        Self {
            index: ArcSwap::new(ledger.index()),
            recently_deleted: ArcSwap::new(ledger.recently_deleted()),
            ledger: Mutex::new(ledger),
            synced: watch::Sender::new(false),
            changes: broadcast::Sender::new(BACKLOG),
        }
    }

    /// From now on, namespaces of exactly these clusters are members.
    pub fn serve(&self, clusters: impl IntoIterator<Item = ClusterName>) {
        let mut ledger = self.lock();
        for host in ledger.serve(clusters) {
            self.tell(host);
        }
        self.publish(&ledger);
    }

    /// Keeps this up to date, for ever.
    pub async fn follow(&self, mut following: impl Following) {
        loop {
            match following.next().await {
                Change::Applied(namespace) => {
                    if let Err(error) = self.take(&namespace, Source::Watch) {
                        warn!(%error, "the host has a namespace that is none");
                    }
                }
                Change::Deleted(namespace) => self.forget(&namespace),
                Change::Synced => self.complete(),
            }
        }
    }

    /// Takes in a Namespace that the host has answered with. What is known to be later stays; one that was deleted
    /// since is not brought back. Returns whose it is, if it is ours.
    pub fn learn(&self, namespace: &Value) -> Result<Option<Member>, NotANamespace> {
        self.take(namespace, Source::Answer)
    }

    /// Takes in that a Namespace is gone: its last state, or its `metadata` with name and uid.
    pub fn forget(&self, namespace: &Value) {
        let Ok((host, gone)) = record::gone(namespace) else { return };
        let mut ledger = self.lock();
        if ledger.forget(&host, &gone) {
            self.publish(&ledger);
            self.tell(host);
        }
    }

    /// Who has what, now.
    pub fn index(&self) -> Arc<Index> {
        self.index.load_full()
    }

    /// Members that were deleted lately.
    pub fn recently_deleted(&self) -> Arc<Index> {
        self.recently_deleted.load_full()
    }

    /// The namespace of this host name, if it is a member.
    pub fn member(&self, host: &HostNamespace) -> Option<Member> {
        self.lock().member(host)
    }

    /// All namespaces of a virtual cluster.
    pub fn members(&self, cluster: &ClusterName) -> Vec<Member> {
        self.lock().members(cluster)
    }

    /// The keys of the labels by which the virtual clusters of the host, also those of other agents, select their
    /// nodes.
    pub fn node_labels(&self) -> BTreeSet<String> {
        self.lock().node_labels()
    }

    /// Whether everything was told once. Before that, what is not in the index may exist.
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

    /// Tells of members and root namespaces that come, change and go from now on.
    pub fn subscribe(&self) -> Subscription {
        Subscription::new(self.changes.subscribe())
    }

    fn take(&self, namespace: &Value, source: Source) -> Result<Option<Member>, NotANamespace> {
        let (host, record) = record::parse(namespace)?;
        let mut ledger = self.lock();
        let member = ledger.member_of(&host, &record);
        if ledger.learn(&host, record, source) {
            self.publish(&ledger);
            if member.is_some() || host.is_root() {
                self.tell(host);
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

    /// Only while the ledger is locked, so that snapshots follow one another in its order.
    fn publish(&self, ledger: &Ledger) {
        // During the first list each snapshot would be a copy for nobody: nothing is served before the end of it.
        if ledger.is_complete() {
            self.recently_deleted.store(ledger.recently_deleted());
            self.index.store(ledger.index());
        }
    }

    fn tell(&self, host: HostNamespace) {
        // It fails when nobody has subscribed.
        let _ = self.changes.send(host);
    }

    fn lock(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Namespaces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Namespaces").field("synced", &self.is_synced()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;

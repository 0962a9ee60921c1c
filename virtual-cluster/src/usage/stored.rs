//! The limits of each virtual cluster, and how much of them it uses.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use kube_wire::gvr::GroupResource;
use rewrite::ClusterName;
use rewrite::mapping::Owner;
use serde_json::Value;
use tokio::time::Instant;

use super::accounts::{Accounts, Held};
use super::no_room::NoRoom;
use super::{resource, written};
use crate::config::Shares;
use crate::namespaces::{Full, NamespaceEvent, Namespaces, Subscription};
use crate::shared::Revision;

/// What each virtual cluster stores on the host, and its limits.
pub struct Usage {
    namespaces: Arc<Namespaces>,
    accounts: Mutex<Accounts>,
    shares: ArcSwap<HashMap<ClusterName, Shares>>,
    /// When this agent began to count.
    since: Instant,
}

// === impl Usage ===

impl Usage {
    /// Nothing is counted until [`keep`](super::keep) runs.
    pub fn new(namespaces: Arc<Namespaces>) -> Self {
        Self { namespaces, accounts: Mutex::default(), shares: ArcSwap::default(), since: Instant::now() }
    }

    /// From now on, these limits apply.
    pub fn limit(&self, shares: HashMap<ClusterName, Shares>) {
        self.accounts().retain_written(|cluster| shares.contains_key(cluster));
        self.shares.store(Arc::new(shares));
    }

    /// What this virtual cluster stores.
    pub fn held(&self, cluster: &ClusterName) -> Held {
        self.accounts().of(cluster).total
    }

    /// The number of bytes of all versions of objects that were written in this virtual cluster within the last ten minutes.
    pub fn written(&self, cluster: &ClusterName) -> u64 {
        self.accounts().written(cluster, Instant::now())
    }

    /// Whether this virtual cluster may create an object of this resource, whose JSON has this length. The known state may
    /// be slightly out of date.
    pub fn room(&self, cluster: &ClusterName, resource: GroupResource<'_>, bytes: u64) -> Result<(), NoRoom> {
        let shares = self.shares.load();
        let Some(shares) = shares.get(cluster) else { return Ok(()) };
        let resource = resource::name(resource);
        let accounts = self.accounts();
        let account = accounts.of(cluster);
        let (used, limit) = (account.objects(&resource), shares.objects_of(&resource));
        if used >= limit {
            return Err(NoRoom::Objects { resource: resource.into(), used, limit });
        }
        let (used, limit) = (account.total.bytes, shares.bytes());
        if used.saturating_add(bytes) > limit {
            return Err(NoRoom::Bytes { requested: bytes, used, limit });
        }
        room_for_version(&accounts, cluster, bytes, shares.written_bytes())
    }

    /// Whether this virtual cluster may change objects, with a body of this length. Any change can make an object larger.
    pub fn room_to_grow(&self, cluster: &ClusterName, bytes: u64) -> Result<(), NoRoom> {
        let Some(limit) = self.shares.load().get(cluster).map(Shares::bytes) else { return Ok(()) };
        let used = self.accounts().of(cluster).total.bytes;
        if used >= limit { Err(NoRoom::Bytes { requested: bytes, used, limit }) } else { Ok(()) }
    }

    /// Whether this virtual cluster may write a version of an object of this length.
    pub fn room_for_version(&self, cluster: &ClusterName, bytes: u64) -> Result<(), NoRoom> {
        let Some(limit) = self.shares.load().get(cluster).map(Shares::written_bytes) else { return Ok(()) };
        room_for_version(&self.accounts(), cluster, bytes, limit)
    }

    /// Whether all objects of a custom resource were counted after its definition got this revision. If not, a further change of the
    /// definition could hide what is stored by then. Before this agent counts anything, it does not know.
    pub fn is_counted(&self, definition: &str, revision: &Revision) -> bool {
        let accounts = self.accounts();
        !accounts.has_begun() || accounts.is_listed_at(definition, revision)
    }

    /// Counts a version of an object that is in no namespace.
    pub fn wrote(&self, cluster: &ClusterName, bytes: u64) {
        self.accounts().wrote_in(cluster.clone(), bytes, Instant::now());
    }

    /// The limits that this virtual cluster has reached.
    pub fn reached(&self, cluster: &ClusterName) -> Full {
        let shares = self.shares.load();
        let Some(shares) = shares.get(cluster) else { return Full::default() };
        let accounts = self.accounts();
        let account = accounts.of(cluster);
        let full = account.by_resource().filter_map(|(resource, held)| {
            let limit = shares.objects_of(resource);
            (held.objects >= limit).then(|| (Arc::clone(resource), limit))
        });
        let storage = (account.total.bytes >= shares.bytes()).then(|| (Full::STORAGE.into(), shares.bytes()));
        let written = accounts.written(cluster, Instant::now()) >= shares.written_bytes();
        let written = written.then(|| (Full::WRITTEN.into(), shares.written_bytes()));
        full.chain(storage).chain(written).collect()
    }

    /// The limits that virtual clusters have reached, as the host's admission policies know it.
    pub(super) fn declared(&self) -> BTreeMap<ClusterName, Full> {
        self.namespaces.full()
    }

    /// The virtual clusters that have limits.
    pub(super) fn clusters(&self) -> Vec<ClusterName> {
        self.shares.load().keys().cloned().collect()
    }

    /// Whether all resources have been listed.
    pub(super) fn is_complete(&self) -> bool {
        self.accounts().is_complete()
    }

    /// Whether this agent has counted for so long that it knows all recent versions. Another agent may know earlier ones.
    pub(super) fn knows_recent_versions(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.since) >= written::COUNTED
    }

    pub(super) fn subscribe(&self) -> Subscription {
        self.namespaces.subscribe()
    }

    pub(super) async fn namespaces_known(&self) {
        self.namespaces.synced().await;
    }

    /// A state of a Namespace, from a response of the host.
    pub(super) fn learn(&self, namespace: &Value) {
        // The host accepted the name, so this succeeds. If it does not, the watch reports the error.
        let _ = self.namespaces.learn(namespace);
    }

    pub(super) fn moved(&self, event: &NamespaceEvent) {
        let owner = |namespace: &str| self.owner(namespace);
        match event {
            NamespaceEvent::Changed(host) => self.accounts().moved(host.as_str(), owner),
            NamespaceEvent::Everything => self.accounts().all_moved(owner),
        }
    }

    /// The virtual cluster to which a namespace of the host belongs now.
    pub(super) fn owner(&self, namespace: &str) -> Option<ClusterName> {
        match self.namespaces.index().owner(namespace.as_bytes()) {
            Some(Owner::Virtual { cluster, .. }) => Some(cluster.clone()),
            Some(Owner::Host) | None => self.namespaces.cluster_of_root(namespace),
        }
    }

    pub(super) fn accounts(&self) -> MutexGuard<'_, Accounts> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn room_for_version(accounts: &Accounts, cluster: &ClusterName, bytes: u64, limit: u64) -> Result<(), NoRoom> {
    let used = accounts.written(cluster, Instant::now());
    if used.saturating_add(bytes) > limit { Err(NoRoom::Written { requested: bytes, used, limit }) } else { Ok(()) }
}

impl fmt::Debug for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Usage").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;

//! The cache, which one watch of the host keeps up to date.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use bytes::Bytes;
use host_client::api::{ApiError, Change, Following, HostApi};
use rewrite::ClusterName;
use rewrite::mapping::SharedRoles;
use serde_json::Value;
use tokio::sync::watch;

use super::all_roles::{AllRoles, Owner, owner};
use super::role::Role;
use super::room::NoRoom;
use super::sum::Snapshot;
use super::texts::Texts;
use super::version::Version;
use super::{copies, room};

/// The cache of ClusterRoles.
#[derive(Debug, Default)]
pub struct Roles {
    /// Locked only to look up or copy references.
    all: Mutex<AllRoles>,
    /// The names of the shared roles, which every request reads.
    names: ArcSwap<SharedRoles>,
    texts: Texts,
    synced: watch::Sender<bool>,
    /// The number of changes.
    changed: watch::Sender<u64>,
}

// === impl Roles ===

impl Roles {
    /// Keeps the cache up to date forever.
    pub async fn follow(&self, mut following: impl Following) {
        loop {
            self.take(&following.next().await);
        }
    }

    /// The current names of the shared roles.
    pub fn shared(&self) -> Arc<SharedRoles> {
        self.names.load_full()
    }

    /// Whether the first list is complete.
    pub fn is_synced(&self) -> bool {
        *self.synced.borrow()
    }

    /// Whether a role of a virtual cluster is aggregated.
    pub fn aggregates(&self, cluster: &ClusterName, name: &str) -> bool {
        let all = self.lock();
        let role = all.own.get(cluster).and_then(|own| own.roles.get(name));
        role.is_some_and(|role| role.aggregation.is_some())
    }

    /// The version of the roles that a virtual cluster sees; `None` if it has no roles of its own.
    pub(super) fn version(&self, cluster: &ClusterName) -> Option<Version> {
        self.lock().version(cluster)
    }

    /// The roles that a virtual cluster sees; `None` if it has no roles of its own.
    pub(super) fn snapshot(&self, cluster: &ClusterName) -> Option<Snapshot> {
        self.lock().snapshot(cluster)
    }

    /// Subscribes to the number of changes.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Whether a virtual cluster may have a role of this weight, in place of the role with the same name. The known
    /// state may be slightly out of date.
    pub fn has_room(&self, cluster: &ClusterName, name: &str, weight: usize) -> Result<(), NoRoom> {
        let all = self.lock();
        let none = BTreeMap::new();
        room::check(all.own.get(cluster).map_or(&none, |own| &own.roles), name, weight)
    }

    /// Creates the copies that this cluster does not have yet. Existing copies stay as the cluster has changed them.
    pub async fn copy(&self, api: &impl HostApi, cluster: &ClusterName) -> Result<(), ApiError> {
        self.synced().await;
        let missing = copies::missing(&self.lock(), cluster);
        copies::create(api, &missing).await
    }

    /// Waits until the first list is complete.
    pub async fn synced(&self) {
        let mut synced = self.synced.subscribe();
        synced.wait_for(|synced| *synced).await.expect("the sender is borrowed from self");
    }

    pub(super) fn take(&self, change: &Change) {
        match change {
            Change::Synced => drop(self.synced.send_replace(true)),
            Change::Applied(object) => self.put(object, Some(Arc::new(self.texts.share(Role::of(object))))),
            Change::Deleted(object) => self.put(object, None),
        }
    }

    fn put(&self, object: &Value, role: Option<Arc<Role>>) {
        let Some(name) = object["metadata"]["name"].as_str() else { return };
        let owner = owner(object, name);
        let mut all = self.lock();
        if !matches!(owner, Some(Owner::Shared(_))) && all.shared.remove(name).is_some() {
            self.rename(&mut all);
        }
        if !matches!(owner, Some(Owner::Copied(_))) {
            all.copied.remove(name);
        }
        match owner {
            None => return,
            Some(Owner::Shared(name)) => {
                set(&mut all.shared, name, role);
                self.rename(&mut all);
            }
            Some(Owner::Copied(name)) => set(&mut all.copied, name, role),
            Some(Owner::Cluster(cluster, name)) => {
                let own = all.own.entry(cluster).or_default();
                set(&mut own.roles, name, role);
                own.changes += 1;
            }
        }
        drop(all);
        self.changed.send_modify(|changes| *changes += 1);
    }

    /// Records a change of shared roles.
    fn rename(&self, all: &mut AllRoles) {
        all.changes += 1;
        let names = self.names.load();
        if names.len() != all.shared.len() || !all.shared.keys().all(|name| names.contains(name.as_bytes())) {
            let names = all.shared.keys().map(|name| Bytes::copy_from_slice(name.as_bytes())).collect();
            self.names.store(Arc::new(names));
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, AllRoles> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn set(roles: &mut BTreeMap<String, Arc<Role>>, name: String, role: Option<Arc<Role>>) {
    match role {
        Some(role) => roles.insert(name, role),
        None => roles.remove(&name),
    };
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    impl Roles {
        /// The roles of a host that has exactly these.
        pub fn with(roles: impl IntoIterator<Item = Value>) -> Arc<Self> {
            let known = Self::default();
            for change in roles.into_iter().map(Change::Applied).chain([Change::Synced]) {
                known.take(&change);
            }
            Arc::new(known)
        }
    }

    fn role(name: &str, labels: &Value) -> Change {
        Change::Applied(json!({"metadata": {"name": name, "labels": labels}, "rules": []}))
    }

    #[tokio::test]
    async fn shared_roles_are_added_and_removed() {
        let roles = Roles::default();
        roles.take(&role("view", &json!({"kubernetes.io/bootstrapping": "rbac-defaults"})));
        roles.take(&role("operators", &json!({"a": "b"})));
        roles.take(&role("vc:ke:a", &json!({"atoll.dev/virtual-cluster": "ke", "parked.atoll.dev/a": "b"})));
        roles.take(&role("vc:ke:b", &json!({"atoll.dev/virtual-cluster": "hz"})));
        roles.take(&Change::Synced);
        roles.synced().await;
        assert_eq!(*roles.shared(), SharedRoles::from([Bytes::from("view")]));
        let own = roles.lock().own.remove(&"ke".parse::<ClusterName>().unwrap()).unwrap();
        assert_eq!((own.roles.len(), own.roles["a"].labels["a"].as_str()), (1, "b"));
        // The operator has taken it over.
        roles.take(&role("view", &json!({})));
        assert!(roles.shared().is_empty());
    }
}

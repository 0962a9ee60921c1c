//! How many objects each namespace holds, and the sums of each virtual cluster.
//!
//! A cluster-scoped object says itself which virtual clusters have it. For all others, their namespace decides.
//! The sums of a namespace do not depend on its owner, which comes from another watch and can change. If it changes, the
//! sums move.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::mem;
use std::ops::{AddAssign, SubAssign};
use std::sync::Arc;

use rewrite::ClusterName;
use tokio::time::Instant;

use super::written::Written;
use crate::shared::Revision;

/// A number of objects, and their size in bytes of JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// The number.
    pub objects: u64,
    /// The size.
    pub bytes: u64,
}

/// The sums.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    spaces: HashMap<Box<str>, Space>,
    /// What each virtual cluster holds of each cluster-scoped resource.
    cluster_scoped: BTreeMap<Arc<str>, BTreeMap<ClusterName, Held>>,
    clusters: HashMap<ClusterName, Account>,
    none: Account,
    /// Separate from `clusters`, because an account ends with its last object.
    written: HashMap<ClusterName, Written>,
    /// Of the resources that were known first, those whose first list is not complete; `None` if no resources are known.
    unlisted: Option<BTreeSet<Arc<str>>>,
    /// For each custom resource, the revision of its definition for which all objects were listed.
    listed: HashMap<Arc<str>, Revision>,
}

/// What a virtual cluster holds.
#[derive(Debug, Default)]
pub(super) struct Account {
    pub(super) total: Held,
    by_resource: BTreeMap<Arc<str>, Held>,
}

/// What a namespace holds.
#[derive(Debug)]
struct Space {
    owner: Option<ClusterName>,
    by_resource: BTreeMap<Arc<str>, Held>,
}

// === impl Accounts ===

impl Accounts {
    /// What a virtual cluster holds.
    pub(super) fn of(&self, cluster: &ClusterName) -> &Account {
        self.clusters.get(cluster).unwrap_or(&self.none)
    }

    /// The number of bytes that a virtual cluster has written within the last ten minutes.
    pub(super) fn written(&self, cluster: &ClusterName, now: Instant) -> u64 {
        self.written.get(cluster).map_or(0, |written| written.total(now))
    }

    /// A version of an object of this many bytes was written. `owner` returns the owner of a namespace that holds nothing.
    pub(super) fn wrote(
        &mut self,
        namespace: &str,
        bytes: u64,
        now: Instant,
        owner: impl FnOnce(&str) -> Option<ClusterName>,
    ) {
        let owner = match self.spaces.get(namespace) {
            Some(space) => space.owner.clone(),
            None => owner(namespace),
        };
        // This does not end with the objects: a deletion removes no earlier version.
        if let Some(cluster) = owner {
            self.wrote_in(cluster, bytes, now);
        }
    }

    /// A version of an object of this many bytes was written in a virtual cluster.
    pub(super) fn wrote_in(&mut self, cluster: ClusterName, bytes: u64, now: Instant) {
        self.written.entry(cluster).or_insert_with(|| Written::nothing(now)).add(bytes, now);
    }

    /// Forgets what all virtual clusters have written but those that `is_known` accepts.
    pub(super) fn retain_written(&mut self, is_known: impl Fn(&ClusterName) -> bool) {
        self.written.retain(|cluster, _| is_known(cluster));
    }

    /// A namespace now holds `after` instead of `before` of the objects of a resource. `owner` returns the owner of a
    /// namespace that held nothing before.
    pub(super) fn change_namespaced(
        &mut self,
        namespace: &str,
        resource: &Arc<str>,
        [before, after]: [Held; 2],
        owner: impl FnOnce(&str) -> Option<ClusterName>,
    ) {
        if before == after {
            return;
        }
        if !self.spaces.contains_key(namespace) {
            let space = Space { owner: owner(namespace), by_resource: BTreeMap::new() };
            self.spaces.insert(namespace.into(), space);
        }
        let Some(space) = self.spaces.get_mut(namespace) else { return };
        exchange(&mut space.by_resource, resource, [before, after]);
        let cluster = space.owner.clone();
        if space.by_resource.is_empty() {
            self.spaces.remove(namespace);
        }
        if let Some(cluster) = cluster {
            self.charge(&cluster, resource, [before, after]);
        }
    }

    /// A virtual cluster now has `after` instead of `before` of the objects of a cluster-scoped resource.
    pub(super) fn change_cluster_scoped(
        &mut self,
        cluster: &ClusterName,
        resource: &Arc<str>,
        [before, after]: [Held; 2],
    ) {
        if before == after {
            return;
        }
        let held = self.cluster_scoped.entry(Arc::clone(resource)).or_default();
        exchange(held, cluster, [before, after]);
        if held.is_empty() {
            self.cluster_scoped.remove(resource);
        }
        self.charge(cluster, resource, [before, after]);
    }

    /// All objects of a cluster-scoped resource are these now.
    pub(super) fn replace_cluster_scoped(
        &mut self,
        resource: &Arc<str>,
        by_cluster: impl IntoIterator<Item = (ClusterName, Held)>,
    ) {
        for (cluster, before) in self.cluster_scoped.remove(resource).unwrap_or_default() {
            self.charge(&cluster, resource, [before, Held::default()]);
        }
        for (cluster, after) in by_cluster {
            self.change_cluster_scoped(&cluster, resource, [Held::default(), after]);
        }
    }

    /// All objects of a namespaced resource are these now.
    pub(super) fn replace_namespaced(
        &mut self,
        resource: &Arc<str>,
        mut by_namespace: HashMap<Box<str>, Held>,
        owner: impl Fn(&str) -> Option<ClusterName>,
    ) {
        let held = self.spaces.iter().filter_map(|(name, space)| Some((name, *space.by_resource.get(resource)?)));
        let before: Vec<_> = held.map(|(name, held)| (name.clone(), held)).collect();
        for (namespace, before) in before {
            let after = by_namespace.remove(&namespace).unwrap_or_default();
            self.change_namespaced(&namespace, resource, [before, after], &owner);
        }
        for (namespace, after) in by_namespace {
            self.change_namespaced(&namespace, resource, [Held::default(), after], &owner);
        }
    }

    /// Forgets all objects of a resource.
    pub(super) fn forget(&mut self, resource: &Arc<str>) {
        self.replace_namespaced(resource, HashMap::new(), |_| None);
        self.replace_cluster_scoped(resource, []);
        self.listed(resource);
        self.listed.remove(resource);
    }

    /// A namespace may belong to another virtual cluster.
    pub(super) fn moved(&mut self, namespace: &str, owner: impl FnOnce(&str) -> Option<ClusterName>) {
        let Some(space) = self.spaces.get_mut(namespace) else { return };
        let owner = owner(namespace);
        if owner == space.owner {
            return;
        }
        let before = mem::replace(&mut space.owner, owner.clone());
        for (resource, held) in space.by_resource.clone() {
            if let Some(before) = &before {
                self.charge(before, &resource, [held, Held::default()]);
            }
            if let Some(owner) = &owner {
                self.charge(owner, &resource, [Held::default(), held]);
            }
        }
    }

    /// The agent begins to count these resources. Later ones are not waited for. Most are new and empty, and a client that creates
    /// definitions must not keep the limits of others in force.
    pub(super) fn begin(&mut self, resources: impl IntoIterator<Item = Arc<str>>) {
        self.unlisted.get_or_insert_with(|| resources.into_iter().collect());
    }

    /// The first list of a resource has ended, or there is nothing to wait for.
    pub(super) fn listed(&mut self, resource: &str) {
        if let Some(unlisted) = &mut self.unlisted {
            unlisted.remove(resource);
        }
    }

    /// All objects of a custom resource were listed after its definition got this revision.
    pub(super) fn listed_at(&mut self, resource: &Arc<str>, revision: Revision) {
        self.listed.insert(Arc::clone(resource), revision);
    }

    /// Whether all objects of a custom resource were listed after its definition got this revision.
    pub(super) fn is_listed_at(&self, resource: &str, revision: &Revision) -> bool {
        self.listed.get(resource) == Some(revision)
    }

    /// Whether the resources are known.
    pub(super) fn has_begun(&self) -> bool {
        self.unlisted.is_some()
    }

    /// Whether the first list of every resource has ended.
    pub(super) fn is_complete(&self) -> bool {
        self.unlisted.as_ref().is_some_and(BTreeSet::is_empty)
    }

    /// Any namespace may belong to another virtual cluster.
    pub(super) fn all_moved(&mut self, owner: impl Fn(&str) -> Option<ClusterName>) {
        let namespaces: Vec<_> = self.spaces.keys().cloned().collect();
        for namespace in namespaces {
            self.moved(&namespace, &owner);
        }
    }

    fn charge(&mut self, cluster: &ClusterName, resource: &Arc<str>, [before, after]: [Held; 2]) {
        let account = self.clusters.entry(cluster.clone()).or_default();
        account.total -= before;
        account.total += after;
        exchange(&mut account.by_resource, resource, [before, after]);
        if account.by_resource.is_empty() {
            self.clusters.remove(cluster);
        }
    }
}

fn exchange<K: Clone + Ord>(sums: &mut BTreeMap<K, Held>, key: &K, [before, after]: [Held; 2]) {
    let held = sums.entry(key.clone()).or_default();
    *held -= before;
    *held += after;
    if *held == Held::default() {
        sums.remove(key);
    }
}

// === impl Account ===

impl Account {
    /// The number of objects of a resource.
    pub(super) fn objects(&self, resource: &str) -> u64 {
        self.by_resource.get(resource).map_or(0, |held| held.objects)
    }

    /// The objects of each resource.
    pub(super) fn by_resource(&self) -> impl Iterator<Item = (&Arc<str>, Held)> {
        self.by_resource.iter().map(|(resource, held)| (resource, *held))
    }
}

// === impl Held ===

impl AddAssign for Held {
    fn add_assign(&mut self, other: Self) {
        self.objects = self.objects.saturating_add(other.objects);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

impl SubAssign for Held {
    fn sub_assign(&mut self, other: Self) {
        self.objects = self.objects.saturating_sub(other.objects);
        self.bytes = self.bytes.saturating_sub(other.bytes);
    }
}

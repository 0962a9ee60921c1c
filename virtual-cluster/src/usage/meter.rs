//! Counts the objects of one resource.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use host_client::api::{ApiError, Read};
use kube_wire::watch::EventType;
use rewrite::ClusterName;
use rewrite::facts::{Facts, Frame, frame};
use rewrite::name::is_root;
use tracing::debug;

use super::accounts::{Accounts, Held};
use super::objects::{Objects, Version};
use super::owners::{Owners, Payer};

/// The objects of one resource of the host.
#[derive(Debug)]
pub(super) struct Meter {
    resource: Arc<str>,
    /// Random, so that nobody can find two names with the same digest.
    digests: RandomState,
    objects: Objects,
    listed: Listed,
    /// Whether all objects that existed earlier are known. An unknown version was then written since.
    knows_all: bool,
    /// Whether the events come from a watch with a former schema.
    is_outdated: bool,
    /// The objects in such events.
    uncertain: HashSet<u64>,
}

/// The objects of the current list so far.
#[derive(Debug, Default)]
struct Listed {
    objects: Objects,
    by_namespace: HashMap<Box<str>, Held>,
    by_cluster: HashMap<ClusterName, Held>,
    /// The bytes of the versions that were not known before.
    new: HashMap<Payer, u64>,
}

/// What follows from a part of the list or the watch.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing.
    Continue,
    /// The watch has reached this version.
    Reached(String),
    /// The list is complete.
    Listed,
    /// The host does not serve the resource.
    Refused,
}

// === impl Meter ===

impl Meter {
    /// If the resource is new, all of its objects are new, too. Otherwise, nobody knows when those of the first list were written.
    pub(super) fn new(resource: Arc<str>, is_new: bool) -> Self {
        Self {
            resource,
            digests: RandomState::new(),
            objects: Objects::default(),
            listed: Listed::default(),
            knows_all: is_new,
            is_outdated: false,
            uncertain: HashSet::new(),
        }
    }

    /// The definition has changed. Until the next list, events come from a watch with the former schema.
    pub(super) fn outdate(&mut self) {
        self.is_outdated = true;
    }

    /// A new source begins with a list.
    pub(super) fn begin(&mut self) {
        self.is_outdated = false;
        self.restart();
    }

    /// Forgets the current list, because a new one begins.
    fn restart(&mut self) {
        self.listed = Listed::default();
    }

    /// Counts what was read. `owner` is the virtual cluster of a namespace.
    pub(super) fn take(
        &mut self,
        read: Read,
        accounts: &mut Accounts,
        owner: impl Fn(&str) -> Option<ClusterName>,
    ) -> Result<Step, ApiError> {
        match read {
            Read::Item(item) => {
                // An object that cannot be read must not prevent others from being counted.
                match Facts::read(item.get().as_bytes(), &[]) {
                    Ok(facts) => self.item(&facts, item.get().as_bytes()),
                    Err(error) => debug!(%error, resource = &*self.resource, "an object cannot be counted"),
                }
                Ok(Step::Continue)
            }
            Read::Listed(_) => {
                self.end_list(accounts, owner);
                Ok(Step::Listed)
            }
            Read::Frame(bytes) => match frame(&bytes, &[]).map_err(ApiError::unreadable)? {
                Frame::Change { event, object, facts } => {
                    self.event(event, &facts, &bytes[object], accounts, owner);
                    Ok(Step::Reached(facts.resource_version.into_owned()))
                }
                Frame::Bookmark(bookmark) => {
                    Ok(Step::Reached(String::from_utf8_lossy(&bookmark.resource_version).into_owned()))
                }
                Frame::Error { status } => Err(ApiError::of_event(&bytes[status])),
            },
            Read::Restarted { .. } => {
                self.restart();
                Ok(Step::Continue)
            }
            Read::Refused => {
                self.restart();
                Ok(Step::Refused)
            }
        }
    }

    fn item(&mut self, facts: &Facts<'_>, object: &[u8]) {
        let Some(owners) = Owners::of(facts, object) else { return };
        let key = digest(&self.digests, facts);
        let version = self.version(key, facts, object);
        let unpaid = match self.objects.known(key, version) {
            None if self.knows_all => version.bytes(),
            // It was paid for without the fields that the former schema hid.
            Some(known) if self.uncertain.contains(&key) => version.bytes() - known.bytes(),
            None | Some(_) => 0,
        };
        if unpaid > 0
            && !self.objects.has_several_owners(key)
            && let Some(payer) = Payer::of(facts, Some(&owners))
        {
            *self.listed.new.entry(payer).or_default() += unpaid;
        }
        let Listed { objects, by_namespace, by_cluster, .. } = &mut self.listed;
        // Between two pages, the object may have been deleted and created again.
        let before = objects.replace(key, Some((version, &owners)));
        if let Owners::Namespace { is_root } = owners {
            let held = by_namespace.entry((*facts.namespace).into()).or_default();
            *held -= before.held(!is_root);
            *held += version.held(!is_root);
        }
        for cluster in &before.clusters {
            *by_cluster.entry(cluster.clone()).or_default() -= before.held(true);
        }
        for cluster in owners.clusters() {
            *by_cluster.entry(cluster.clone()).or_default() += version.held(true);
        }
    }

    fn end_list(&mut self, accounts: &mut Accounts, owner: impl Fn(&str) -> Option<ClusterName>) {
        let Listed { objects, by_namespace, by_cluster, new } = std::mem::take(&mut self.listed);
        self.objects = objects;
        self.knows_all = true;
        if !self.is_outdated {
            self.uncertain.clear();
        }
        accounts.replace_namespaced(&self.resource, by_namespace, &owner);
        accounts.replace_cluster_scoped(&self.resource, by_cluster);
        for (payer, bytes) in new {
            payer.pay(bytes, accounts, &owner);
        }
    }

    fn event(
        &mut self,
        event: EventType,
        facts: &Facts<'_>,
        object: &[u8],
        accounts: &mut Accounts,
        owner: impl Fn(&str) -> Option<ClusterName>,
    ) {
        let key = digest(&self.digests, facts);
        let exists = event != EventType::Deleted;
        let owners = if exists { Owners::of(facts, object) } else { None };
        let version = self.version(key, facts, object);
        if self.is_outdated {
            self.uncertain.insert(key);
        }
        // The version with which a virtual cluster leaves a shared object is not that of the remaining one.
        if exists
            && self.objects.known(key, version).is_none()
            && !self.objects.has_several_owners(key)
            && let Some(payer) = Payer::of(facts, owners.as_ref())
        {
            payer.pay(version.bytes(), accounts, &owner);
        }
        let before = self.objects.replace(key, owners.as_ref().map(|owners| (version, owners)));
        if !facts.namespace.is_empty() {
            let is_object = !is_root(&facts.namespace);
            let after = owners.map_or_else(Held::default, |_| version.held(is_object));
            let change = [before.held(is_object), after];
            return accounts.change_namespaced(&facts.namespace, &self.resource, change, owner);
        }
        for cluster in &before.clusters {
            accounts.change_cluster_scoped(cluster, &self.resource, [before.held(true), Held::default()]);
        }
        for cluster in owners.iter().flat_map(Owners::clusters) {
            accounts.change_cluster_scoped(cluster, &self.resource, [Held::default(), version.held(true)]);
        }
    }

    /// The version of an object that was read.
    ///
    /// What etcd stores for a version never changes. A version that looks smaller than before belongs to a custom resource: its
    /// definition has changed, or the agent now reads it in another version.
    fn version(&self, key: u64, facts: &Facts<'_>, object: &[u8]) -> Version {
        let read = Version::new(self.digests.hash_one(&*facts.resource_version), object.len());
        self.objects.known(key, read).map_or(read, |known| known.max(read))
    }
}

fn digest(digests: &RandomState, facts: &Facts<'_>) -> u64 {
    digests.hash_one((&*facts.namespace, &*facts.name))
}

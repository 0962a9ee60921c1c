//! Counts the objects of one resource.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use host_client::api::{ApiError, Read};
use kube_wire::watch::EventType;
use rewrite::ClusterName;
use rewrite::facts::{Facts, Frame, frame};
use rewrite::name::{CLUSTER_LABEL, OVERLAY_PREFIX, SHARED_LABEL};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::Instant;
use tracing::debug;

use super::accounts::{Accounts, Held};
use crate::provisioner::MIRROR_LABEL;

/// The objects of one resource of the host.
#[derive(Debug)]
pub(super) struct Meter {
    resource: Arc<str>,
    /// Random, so that nobody can find two names with the same digest.
    digests: RandomState,
    objects: Objects,
    listed: Listed,
}

/// All objects, by the digest of their names.
#[derive(Debug, Default)]
struct Objects {
    versions: HashMap<u64, Version>,
    /// The virtual clusters of each cluster-scoped object.
    owners: HashMap<u64, Vec<ClusterName>>,
}

/// A version of an object.
#[derive(Clone, Copy, Debug)]
struct Version {
    /// The digest of its `resourceVersion`.
    digest: u32,
    bytes: u32,
}

/// The virtual clusters to which an object counts.
#[derive(Debug)]
enum Owners {
    /// The one that has its namespace.
    OfNamespace,
    /// The object is cluster-scoped, and these have it. There is at least one.
    Clusters(Vec<ClusterName>),
}

/// The objects of the current list so far.
#[derive(Debug, Default)]
struct Listed {
    objects: Objects,
    by_namespace: HashMap<Box<str>, Held>,
    by_cluster: HashMap<ClusterName, Held>,
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
    pub(super) fn new(resource: Arc<str>) -> Self {
        Self { resource, digests: RandomState::new(), objects: Objects::default(), listed: Listed::default() }
    }

    /// A new list begins.
    pub(super) fn restart(&mut self) {
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
                let Listed { objects, by_namespace, by_cluster } = std::mem::take(&mut self.listed);
                self.objects = objects;
                accounts.replace(&self.resource, by_namespace, owner);
                accounts.replace_of_clusters(&self.resource, by_cluster);
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
        let Some(owners) = owners(facts, object) else { return };
        let key = digest(&self.digests, facts);
        let version = self.version(key, facts, object);
        let Listed { objects, by_namespace, by_cluster } = &mut self.listed;
        // Between two pages, the object may have been deleted and created again.
        let [before, after] = [objects.versions.insert(key, version), Some(version)].map(Version::held);
        match owners {
            Owners::OfNamespace => {
                let held = by_namespace.entry((*facts.namespace).into()).or_default();
                *held -= before;
                *held += after;
            }
            Owners::Clusters(clusters) => {
                for cluster in &clusters {
                    *by_cluster.entry(cluster.clone()).or_default() += after;
                }
                for cluster in objects.owners.insert(key, clusters).into_iter().flatten() {
                    *by_cluster.entry(cluster).or_default() -= before;
                }
            }
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
        // Copies of ClusterRoleBindings, too: clients decide how often they change.
        if exists && !facts.namespace.is_empty() {
            accounts.wrote(&facts.namespace, clamped(object.len()).into(), Instant::now(), &owner);
        }
        let owners = if exists { owners(facts, object) } else { None };
        let version = owners.is_some().then(|| self.version(key, facts, object));
        let before = match version {
            Some(version) => self.objects.versions.insert(key, version),
            None => self.objects.versions.remove(&key),
        };
        let [before, after] = [before, version].map(Version::held);
        if !facts.namespace.is_empty() {
            return accounts.change(&facts.namespace, &self.resource, [before, after], owner);
        }
        for cluster in self.objects.owners.remove(&key).into_iter().flatten() {
            accounts.change_of(&cluster, &self.resource, [before, Held::default()]);
        }
        if let Some(Owners::Clusters(clusters)) = owners {
            for cluster in &clusters {
                accounts.change_of(cluster, &self.resource, [Held::default(), after]);
            }
            self.objects.owners.insert(key, clusters);
        }
    }

    /// The version of an object that was read.
    ///
    /// What etcd stores for a version never changes. A version that looks smaller than before belongs to a custom resource whose
    /// definition has changed: the host hides fields that are no longer in the schema, and etcd still stores them.
    fn version(&self, key: u64, facts: &Facts<'_>, object: &[u8]) -> Version {
        let digest = clamped_digest(self.digests.hash_one(&*facts.resource_version));
        let known = self.objects.versions.get(&key).filter(|known| known.digest == digest);
        let bytes = clamped(object.len());
        Version { digest, bytes: known.map_or(bytes, |known| known.bytes.max(bytes)) }
    }
}

// === impl Version ===

impl Version {
    /// What an object with this version counts.
    fn held(version: Option<Self>) -> Held {
        version.map_or_else(Held::default, |version| Held::one(version.bytes.into()))
    }
}

/// The virtual clusters to which an object counts; `None` if it counts to none.
fn owners(facts: &Facts<'_>, object: &[u8]) -> Option<Owners> {
    let label = |key: &str| facts.labels.iter().find(|label| label.key == key);
    if !facts.namespace.is_empty() {
        // Copies of ClusterRoleBindings have limits of their own, and only the agent can write the label.
        return label(MIRROR_LABEL).is_none().then_some(Owners::OfNamespace);
    }
    // Only agents write the keys by which they recognise the virtual clusters of a cluster-scoped object.
    let clusters: Vec<_> = if let Some(cluster) = label(CLUSTER_LABEL) {
        ClusterName::new(&cluster.value).into_iter().collect()
    } else if label(SHARED_LABEL).is_some() {
        let object: Annotated<'_> = serde_json::from_slice(object).ok()?;
        let overlays = object.metadata.annotations.keys().filter_map(|key| key.strip_prefix(OVERLAY_PREFIX));
        overlays.filter_map(|cluster| ClusterName::new(cluster).ok()).collect()
    } else {
        Vec::new()
    };
    (!clusters.is_empty()).then_some(Owners::Clusters(clusters))
}

/// The keys of the annotations of an object.
#[derive(Deserialize)]
struct Annotated<'a> {
    #[serde(borrow)]
    metadata: Metadata<'a>,
}

#[derive(Deserialize)]
struct Metadata<'a> {
    #[serde(borrow, default)]
    annotations: BTreeMap<String, &'a RawValue>,
}

fn digest(digests: &RandomState, facts: &Facts<'_>) -> u64 {
    digests.hash_one((&*facts.namespace, &*facts.name))
}

fn clamped(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// A half of a digest.
fn clamped_digest(digest: u64) -> u32 {
    u32::try_from(digest >> 32).unwrap_or_default()
}

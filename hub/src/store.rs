//! The objects of all virtual clusters, and the latest events.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::admission::Refusal;
use crate::budget::Usage;
use crate::latest::Latest;
use crate::limits::Limits;
use crate::moment::Moment;
use crate::object::{Key, NewObject, Object, ResourceVersion};
use crate::partition::{Closing, Partition};
use crate::place::{ClusterId, Place};
use crate::snapshot::{Objects, Snapshot};
use crate::window::{Before, Event, EventKind, Window};

/// Even over the memory limit, an event stays in the window for this time, so that a watcher can read it.
pub(crate) const MINIMUM: Duration = Duration::from_secs(15);

#[derive(Debug)]
pub(crate) struct Store<T> {
    /// The version up to which the store has all events. `None` until the list is complete.
    pub(crate) version: Option<ResourceVersion>,
    pub(crate) window: Window<T>,
    /// The objects of clusters that are not closed, and of everybody.
    pub(crate) objects: HashMap<Key, Arc<Object<T>>>,
    pub(crate) partitions: HashMap<ClusterId, Partition<T>>,
    /// The objects of everybody.
    shared: Objects<T>,
    /// The window has all events after this version.
    floor: ResourceVersion,
    /// The host has said that it no longer has the events after this version.
    expired: ResourceVersion,
    /// While a cluster is being opened.
    latest: Latest,
    usage: Arc<Usage>,
}

// === impl Store ===

impl<T> Store<T> {
    pub(crate) fn new(usage: Arc<Usage>) -> Self {
        Self {
            version: None,
            window: Window::new(),
            objects: HashMap::new(),
            partitions: HashMap::new(),
            shared: Objects::default(),
            floor: ResourceVersion::default(),
            expired: ResourceVersion::default(),
            latest: Latest::default(),
            usage,
        }
    }

    /// The list is complete, and has this version.
    pub(crate) fn synced(&mut self, version: ResourceVersion) {
        self.version = Some(version);
        self.floor = version;
        self.partitions.values_mut().for_each(|partition| partition.synced(version));
    }

    /// Stores an object if a cluster that is not closed has it.
    pub(crate) fn insert(&mut self, object: NewObject<T>) {
        let object = object.charged_to(&self.usage);
        self.insert_charged(&object);
    }

    fn insert_charged(&mut self, object: &Arc<Object<T>>) {
        let mut wanted = object.place == Place::Everybody;
        if wanted {
            self.shared.insert_mut(object.key.clone(), Arc::clone(object));
        }
        for cluster in object.place.listed() {
            let partition = self.partition(*cluster);
            if partition.is_kept() {
                partition.insert(object);
                wanted = true;
            }
        }
        if wanted {
            self.objects.insert(object.key.clone(), Arc::clone(object));
        }
    }

    fn remove(&mut self, key: &Key) -> Option<Arc<Object<T>>> {
        let object = self.objects.remove(key)?;
        if object.place == Place::Everybody {
            self.shared.remove_mut(key);
        }
        for cluster in object.place.listed() {
            if let Some(partition) = self.partitions.get_mut(cluster) {
                partition.remove(key);
            }
        }
        Some(object)
    }

    /// Applies an event. Returns it if it concerns a virtual cluster that is not closed.
    pub(crate) fn apply(&mut self, kind: EventKind, object: NewObject<T>, at: Moment) -> Option<Arc<Event<T>>> {
        if self.version.is_none_or(|version| object.version <= version) {
            return None;
        }
        self.version = Some(object.version);
        self.latest.event(&object);
        let object = object.charged_to(&self.usage);
        let former = self.remove(&object.key);
        if kind == EventKind::Written {
            self.insert_charged(&object);
        }
        // Only closed clusters had it, and have it now.
        if former.is_none() && (kind == EventKind::Deleted || !self.is_kept(&object.place)) {
            return None;
        }
        let event = Arc::new(Event { kind, before: Before::of(former, &object), object, at });
        if event.concerns_everybody() {
            self.partitions.values_mut().for_each(|partition| partition.push(&event));
        } else {
            event.clusters().for_each(|cluster| self.partition(cluster).push(&event));
        }
        self.window.push(Arc::clone(&event));
        Some(event)
    }

    /// The partition of a cluster. A new one begins with the events that concern everybody.
    pub(crate) fn partition(&mut self, cluster: ClusterId) -> &mut Partition<T> {
        let (floor, window) = (self.floor, &self.window);
        self.partitions.entry(cluster).or_insert_with(|| {
            let events = window.iter().filter(|event| event.concerns_everybody()).map(Arc::clone);
            Partition::new(floor, events.collect::<VecDeque<_>>())
        })
    }

    /// The current objects of a cluster.
    pub(crate) fn snapshot(&self, cluster: ClusterId) -> Snapshot<T> {
        let own = self.partitions.get(&cluster).map(|partition| partition.objects().clone());
        Snapshot::new(own.unwrap_or_default(), self.shared.clone())
    }

    /// The version of the state, if the hub serves the cluster.
    pub(crate) fn state_of(&self, cluster: ClusterId, at_least: ResourceVersion) -> Result<ResourceVersion, Refusal> {
        let version = self.version.ok_or(Refusal::Closed)?;
        match self.partitions.get(&cluster) {
            Some(partition) => partition.state(version, at_least),
            None if version < at_least => Err(Refusal::NotYet(at_least)),
            None => Ok(version),
        }
    }

    /// Whether the window has all events of the cluster after a version.
    pub(crate) fn has_events_after(&self, cluster: ClusterId, version: ResourceVersion) -> Result<(), Refusal> {
        if let Some(partition) = self.partitions.get(&cluster) {
            return partition.has_events_after(version, self.expired, self.version);
        }
        let newest = self.version.ok_or(Refusal::Closed)?;
        match version {
            version if version >= self.floor => Ok(()),
            version if version <= self.expired => Err(Refusal::Expired(newest)),
            _ => Err(Refusal::BeforeWindow),
        }
    }

    /// Forgets a cluster's objects and events, and takes no more of them.
    pub(crate) fn close(&mut self, cluster: ClusterId, closing: Closing) {
        let objects = self.partition(cluster).close(closing);
        self.forget(&objects);
    }

    /// Removes the objects that no cluster has any more. A cluster that is being opened does not have those of its list yet.
    fn forget(&mut self, objects: &Objects<T>) {
        for key in objects.keys() {
            let has = |cluster: &ClusterId| self.partitions.get(cluster).is_some_and(|partition| partition.has(key));
            let is_wanted = |place: &Place| *place == Place::Everybody || place.listed().iter().any(has);
            if self.objects.get(key).is_some_and(|object| !is_wanted(&object.place)) {
                self.objects.remove(key);
            }
        }
        self.forget_latest();
    }

    /// Removes the events that concern only closed clusters.
    pub(crate) fn forget_closed(&mut self) {
        let partitions = &self.partitions;
        self.window.retain(|cluster| partitions.get(&cluster).is_some_and(Partition::is_kept));
    }

    /// Whether a cluster that is not closed has objects with this place.
    fn is_kept(&self, place: &Place) -> bool {
        let is_kept = |cluster| self.partitions.get(cluster).is_some_and(Partition::is_kept);
        *place == Place::Everybody || place.listed().iter().any(is_kept)
    }

    pub(crate) fn is_being_opened(&self, cluster: ClusterId) -> bool {
        self.partitions.get(&cluster).is_some_and(Partition::is_opening)
    }

    /// Forgets the objects and events of a cluster that is being opened.
    pub(crate) fn abandon(&mut self, cluster: ClusterId) {
        let objects = self.partition(cluster).abandon();
        self.forget(&objects);
    }

    /// Takes objects and events of a closed cluster, but does not serve it yet.
    pub(crate) fn begin_opening(&mut self, cluster: ClusterId) {
        self.partition(cluster).begin_opening();
        self.latest.begin();
    }

    /// Takes an object of a cluster that is being opened, unless its last event is newer.
    pub(crate) fn take_listed(&mut self, cluster: ClusterId, object: NewObject<T>) {
        // Newer objects arrive as events before the hub reaches the version of the list.
        let is_reached = self.version.is_some_and(|version| object.version <= version);
        if !object.place.contains(cluster) || !is_reached {
            return;
        }
        match self.objects.get(&object.key).map(Arc::clone) {
            None if !self.latest.supersedes(&object) => self.insert(object),
            // An event has come since, or another cluster has it, too.
            Some(known) if known.place.listed().contains(&cluster) => self.partition(cluster).insert(&known),
            None | Some(_) => {}
        }
    }

    /// Serves a cluster whose objects have been listed at the version `since`.
    pub(crate) fn open(&mut self, cluster: ClusterId, since: ResourceVersion) {
        // An event that arrived before its object was listed looks like a creation, so no watch may begin before the
        // current version.
        let floor = since.max(self.version.unwrap_or_default());
        self.partition(cluster).open(since, floor);
        self.forget_latest();
    }

    fn forget_latest(&mut self) {
        if self.latest.is_needed() && !self.partitions.values().any(Partition::is_opening) {
            self.latest.end();
        }
    }

    /// Forgets all objects and events. The host has no events after `expired`.
    pub(crate) fn clear(&mut self, expired: Option<ResourceVersion>) {
        self.expired = self.expired.max(expired.unwrap_or_default());
        self.version = None;
        self.objects.clear();
        self.shared = Objects::default();
        self.window.clear();
        self.latest.end();
        self.partitions.values_mut().for_each(Partition::clear);
    }

    /// Removes old events, and frees at least `excess` bytes, if it can. Old events go first. Then the clusters with the
    /// most bytes are closed, because one tenant must not take the hub from the others. Returns these clusters.
    pub(crate) fn retain(&mut self, limits: &Limits, excess: usize, now: Moment) -> Vec<ClusterId> {
        let target = self.usage.bytes().saturating_sub(excess);
        let is_over = |store: &Self| store.usage.bytes() > target;
        self.evict(limits.oldest, now, |_| true);
        self.evict(limits.fresh, now, is_over);
        self.evict(MINIMUM.min(limits.fresh), now, is_over);
        let mut closed = Vec::new();
        // What watchers still hold is freed later, so the usage does not tell when this is enough.
        let mut excess = self.usage.bytes().saturating_sub(target);
        while excess > 0 {
            let Some((cluster, bytes)) = self.largest() else { break };
            self.close(cluster, Closing::Evicted);
            closed.push(cluster);
            excess = excess.saturating_sub(bytes);
        }
        if !closed.is_empty() {
            self.forget_closed();
        }
        closed
    }

    /// Removes events that are older than `age`, while the condition holds.
    fn evict(&mut self, age: Duration, now: Moment, condition: impl Fn(&Self) -> bool) {
        while condition(self) {
            let Some(event) = self.window.pop_older_than(age, now) else { break };
            self.floor = event.version();
            if event.concerns_everybody() {
                self.partitions.values_mut().for_each(|partition| partition.evict(&event));
                continue;
            }
            for cluster in event.clusters() {
                if let Some(partition) = self.partitions.get_mut(&cluster) {
                    partition.evict(&event);
                }
            }
        }
    }

    /// The cluster with the most bytes that is not closed.
    fn largest(&self) -> Option<(ClusterId, usize)> {
        let kept = self.partitions.iter().filter(|(_, partition)| partition.is_kept());
        let sized = kept.map(|(cluster, partition)| (*cluster, partition.bytes())).filter(|(_, bytes)| *bytes > 0);
        // Of equal ones, the same is chosen each time.
        sized.max_by_key(|(cluster, bytes)| (*bytes, *cluster))
    }
}

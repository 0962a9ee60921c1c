//! The objects of all virtual clusters, and the latest events.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::admission::Refusal;
use crate::budget::{Limits, Usage};
use crate::moment::Moment;
use crate::object::{Key, NewObject, Object, ResourceVersion};
use crate::partition::{Availability, Partition};
use crate::place::{ClusterId, Place};
use crate::selection::Selection;
use crate::window::{Before, Event, EventKind, Window};

/// Even over the memory limit, an event stays in the window for this time, so that a watcher can read it.
const MINIMUM: Duration = Duration::from_secs(15);

#[derive(Debug)]
pub(crate) struct Store<T> {
    /// The version up to which the store has all events. `None` until the list is complete.
    pub(crate) version: Option<ResourceVersion>,
    pub(crate) window: Window<T>,
    /// The objects that belong to an open partition or to everybody.
    pub(crate) objects: HashMap<Key, Arc<Object<T>>>,
    pub(crate) partitions: HashMap<ClusterId, Partition<T>>,
    /// The objects of everybody.
    shared: BTreeSet<Key>,
    /// The window has all events after this version.
    floor: ResourceVersion,
    /// The host has said that it no longer has the events after this version.
    expired: ResourceVersion,
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
            shared: BTreeSet::new(),
            floor: ResourceVersion::default(),
            expired: ResourceVersion::default(),
            usage,
        }
    }

    /// The list is complete, and has this version.
    pub(crate) fn synced(&mut self, version: ResourceVersion) {
        self.version = Some(version);
        self.floor = version;
        self.partitions.values_mut().for_each(|partition| partition.synced(version));
    }

    /// Stores an object if a cluster that the hub serves has it.
    pub(crate) fn insert(&mut self, object: NewObject<T>) {
        let object = object.charged_to(&self.usage);
        self.insert_charged(&object);
    }

    fn insert_charged(&mut self, object: &Arc<Object<T>>) {
        let mut wanted = object.place == Place::Everybody;
        if wanted {
            self.shared.insert(object.key.clone());
        }
        for cluster in object.place.listed() {
            let partition = self.partition(*cluster);
            if partition.availability != Availability::Closed {
                partition.insert(object.key.clone(), object.charge.bytes());
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
            self.shared.remove(key);
        }
        for cluster in object.place.listed() {
            if let Some(partition) = self.partitions.get_mut(cluster) {
                partition.remove(key, object.charge.bytes());
            }
        }
        Some(object)
    }

    /// Applies an event. Returns it if it concerns a virtual cluster.
    pub(crate) fn apply(&mut self, kind: EventKind, object: NewObject<T>, at: Moment) -> Option<Arc<Event<T>>> {
        if self.version.is_none_or(|version| object.version <= version) {
            return None;
        }
        self.version = Some(object.version);
        let object = object.charged_to(&self.usage);
        let former = self.remove(&object.key);
        if kind == EventKind::Written {
            self.insert_charged(&object);
        }
        // Nobody had it, and nobody has it now.
        if former.is_none() && (kind == EventKind::Deleted || object.place == Place::Nobody) {
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
    fn partition(&mut self, cluster: ClusterId) -> &mut Partition<T> {
        let (floor, window) = (self.floor, &self.window);
        self.partitions.entry(cluster).or_insert_with(|| {
            let events = window.iter().filter(|event| event.concerns_everybody()).map(Arc::clone);
            Partition::new(floor, events.collect::<VecDeque<_>>())
        })
    }

    /// The position in the cluster's events after a version.
    pub(crate) fn position_after(&mut self, cluster: ClusterId, version: ResourceVersion) -> u64 {
        self.partition(cluster).position_after(version)
    }

    /// The selected objects, in the order of their keys.
    pub(crate) fn selected(&self, selection: &Selection) -> Vec<Arc<Object<T>>> {
        let own = self.partitions.get(&selection.cluster).map(Partition::keys);
        let mut keys: Vec<&Key> = own.into_iter().flatten().chain(&self.shared).collect();
        if !self.shared.is_empty() {
            keys.sort_unstable();
        }
        let objects = keys.into_iter().filter_map(|key| self.objects.get(key));
        objects.filter(|object| selection.selects(object)).map(Arc::clone).collect()
    }

    /// The version of the state, if the hub serves the cluster.
    pub(crate) fn state_of(&self, cluster: ClusterId, at_least: ResourceVersion) -> Result<ResourceVersion, Refusal> {
        let version = self.version.ok_or(Refusal::Closed)?;
        let at_least = at_least.max(self.open_since(cluster)?);
        if version < at_least {
            return Err(Refusal::NotYet(at_least));
        }
        Ok(version)
    }

    /// Whether the window has all events of the cluster after a version.
    pub(crate) fn has_events_after(&self, cluster: ClusterId, version: ResourceVersion) -> Result<(), Refusal> {
        let newest = self.version.ok_or(Refusal::Closed)?;
        let since = self.open_since(cluster)?;
        let floor = self.partitions.get(&cluster).map_or(self.floor, Partition::floor);
        if version >= since.max(floor) {
            return Ok(());
        }
        if version < since || version <= self.expired {
            return Err(Refusal::Expired(since.max(newest)));
        }
        Err(Refusal::TooOld)
    }

    fn open_since(&self, cluster: ClusterId) -> Result<ResourceVersion, Refusal> {
        match self.partitions.get(&cluster).map(|partition| partition.availability) {
            None => Ok(ResourceVersion::default()),
            Some(Availability::OpenSince(since)) => Ok(since),
            Some(Availability::Closed) => Err(Refusal::Closed),
        }
    }

    /// Forgets a cluster's objects, and takes no more of them.
    pub(crate) fn close(&mut self, cluster: ClusterId) {
        for key in self.partition(cluster).close() {
            if self.objects.get(&key).is_some_and(|object| !self.is_served(&object.place)) {
                self.objects.remove(&key);
            }
        }
    }

    /// Whether the hub serves a cluster that has objects with this place.
    fn is_served(&self, place: &Place) -> bool {
        let is_open = |cluster| {
            self.partitions.get(cluster).is_some_and(|partition| partition.availability != Availability::Closed)
        };
        *place == Place::Everybody || place.listed().iter().any(is_open)
    }

    /// Takes the objects of a closed cluster, and serves it from a version on.
    pub(crate) fn open(
        &mut self,
        cluster: ClusterId,
        objects: impl IntoIterator<Item = NewObject<T>>,
        since: ResourceVersion,
    ) {
        let partition = self.partition(cluster);
        debug_assert!(partition.availability == Availability::Closed, "an open cluster already has its objects");
        partition.open(since);
        // Newer objects arrive as events before the hub reaches the version of the list.
        let is_known = |object: &NewObject<T>| self.version.is_some_and(|version| object.version <= version);
        let objects = objects.into_iter().filter(|object| object.place.contains(cluster) && is_known(object));
        for object in objects.collect::<Vec<_>>() {
            match self.objects.get(&object.key).map(Arc::clone) {
                None => self.insert(object),
                // Another cluster has it, too.
                Some(known) if known.place.listed().contains(&cluster) => {
                    self.partition(cluster).insert(known.key.clone(), known.charge.bytes());
                }
                Some(_) => {}
            }
        }
    }

    /// Forgets all objects and events. The host has no events after `expired`.
    pub(crate) fn clear(&mut self, expired: Option<ResourceVersion>) {
        self.expired = self.expired.max(expired.unwrap_or_default());
        self.version = None;
        self.objects.clear();
        self.shared.clear();
        self.window.clear();
        self.partitions.values_mut().for_each(Partition::clear);
    }

    /// Removes old events, and brings the memory below its limit. Old events go first. Then the clusters with the most
    /// bytes are closed, because one tenant must not take the hub from the others. Returns these clusters.
    pub(crate) fn retain(&mut self, limits: &Limits, now: Moment) -> Vec<ClusterId> {
        let is_over = |store: &Self| store.usage.bytes() > limits.memory;
        self.evict(limits.oldest, now, |_| true);
        self.evict(limits.fresh, now, is_over);
        self.evict(MINIMUM.min(limits.fresh), now, is_over);
        let mut closed = Vec::new();
        let mut excess = self.usage.bytes().saturating_sub(limits.memory);
        while excess > 0 {
            let Some((cluster, bytes)) = self.largest() else { break };
            self.close(cluster);
            self.window.forget(cluster);
            closed.push(cluster);
            // What watchers still hold is freed later.
            excess = excess.saturating_sub(bytes);
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

    /// The open cluster with the most bytes.
    fn largest(&self) -> Option<(ClusterId, usize)> {
        let open = self.partitions.iter().filter(|(_, partition)| partition.availability != Availability::Closed);
        let sized = open.map(|(cluster, partition)| (*cluster, partition.bytes())).filter(|(_, bytes)| *bytes > 0);
        // Of equal ones, the same is chosen each time.
        sized.max_by_key(|(cluster, bytes)| (*bytes, *cluster))
    }
}

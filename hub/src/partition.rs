//! One virtual cluster's part of a hub.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use crate::object::{Key, ResourceVersion};
use crate::window::Event;

/// The objects and events of a virtual cluster.
#[derive(Debug)]
pub(crate) struct Partition<T> {
    pub(crate) availability: Availability,
    /// The objects that belong to this cluster, except those of everybody.
    keys: BTreeSet<Key>,
    /// The memory of these objects, in bytes. An object of several clusters counts for each.
    bytes: usize,
    lane: Lane<T>,
}

/// Whether the hub serves the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Availability {
    /// Yes, from this version: the membership of its objects last changed there. The hub cannot tell what the cluster
    /// showed before.
    OpenSince(ResourceVersion),
    /// No. The hub does not know all its objects.
    Closed,
}

/// The events of the window that concern a cluster.
#[derive(Debug)]
struct Lane<T> {
    events: VecDeque<Arc<Event<T>>>,
    /// The position of the first event. Positions count all events that the lane ever had.
    first: u64,
    /// The lane has all events of the cluster after this version.
    floor: ResourceVersion,
}

// === impl Partition ===

impl<T> Partition<T> {
    /// A partition that has all events after `floor`, and these in the window.
    pub(crate) fn new(floor: ResourceVersion, events: VecDeque<Arc<Event<T>>>) -> Self {
        Self {
            availability: Availability::OpenSince(ResourceVersion::default()),
            keys: BTreeSet::new(),
            bytes: 0,
            lane: Lane { events, first: 0, floor },
        }
    }

    /// Adds an event.
    pub(crate) fn push(&mut self, event: &Arc<Event<T>>) {
        if self.availability != Availability::Closed {
            self.lane.events.push_back(Arc::clone(event));
        }
    }

    /// Removes an event that has left the window, which is the first one of the lane, or was never in it.
    pub(crate) fn evict(&mut self, event: &Arc<Event<T>>) {
        if self.lane.events.front().is_some_and(|first| Arc::ptr_eq(first, event)) {
            self.lane.events.pop_front();
            self.lane.first += 1;
            self.lane.floor = event.version();
        }
    }

    /// The version after which the partition has all events.
    pub(crate) fn floor(&self) -> ResourceVersion {
        self.lane.floor
    }

    /// The position after the last event.
    pub(crate) fn end(&self) -> u64 {
        self.lane.first + self.lane.events.len() as u64
    }

    /// The position of the first event after a version.
    pub(crate) fn position_after(&self, version: ResourceVersion) -> u64 {
        self.lane.first + self.lane.events.partition_point(|event| event.version() <= version) as u64
    }

    /// The events from a position on. `None` if the first of them has left the window.
    pub(crate) fn events_from(&self, position: u64) -> Option<impl Iterator<Item = &Arc<Event<T>>>> {
        let offset = position.checked_sub(self.lane.first)?;
        let offset =
            usize::try_from(offset).map_or(self.lane.events.len(), |offset| offset.min(self.lane.events.len()));
        Some(self.lane.events.range(offset..))
    }

    /// The objects that belong to this cluster, except those of everybody.
    pub(crate) fn keys(&self) -> &BTreeSet<Key> {
        &self.keys
    }

    /// The memory of these objects, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn insert(&mut self, key: Key, bytes: usize) {
        if self.keys.insert(key) {
            self.bytes += bytes;
        }
    }

    pub(crate) fn remove(&mut self, key: &Key, bytes: usize) {
        if self.keys.remove(key) {
            self.bytes -= bytes;
        }
    }

    /// Forgets all objects and events.
    pub(crate) fn clear(&mut self) {
        self.keys.clear();
        self.bytes = 0;
        self.availability = Availability::OpenSince(ResourceVersion::default());
        // Nobody reads here any more: the watches have ended.
        self.lane.events.clear();
    }

    /// Forgets all objects and events, and takes no more of them. Returns the objects.
    pub(crate) fn close(&mut self) -> BTreeSet<Key> {
        let keys = std::mem::take(&mut self.keys);
        self.clear();
        self.availability = Availability::Closed;
        keys
    }

    /// Serves the cluster from a version on.
    pub(crate) fn open(&mut self, since: ResourceVersion) {
        self.availability = Availability::OpenSince(since);
        self.lane.floor = since;
    }

    /// The hub has listed all objects at this version.
    pub(crate) fn synced(&mut self, floor: ResourceVersion) {
        self.lane.floor = floor;
    }
}

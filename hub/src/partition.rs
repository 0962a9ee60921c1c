//! One virtual cluster's part of a hub.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::admission::Refusal;
use crate::object::{Key, Object, ResourceVersion};
use crate::snapshot::Objects;
use crate::window::Event;

/// The objects and events of a virtual cluster.
#[derive(Debug)]
pub(crate) struct Partition<T> {
    availability: Availability,
    /// A version after the last change of membership. The hub cannot tell what the cluster showed before.
    moved: ResourceVersion,
    /// The membership has changed, and no version after the change is known yet.
    moving: bool,
    /// The objects that belong to this cluster, except those of everybody.
    objects: Objects<T>,
    /// The memory of these objects and of the events, in bytes. What several clusters have counts for each.
    bytes: usize,
    lane: Lane<T>,
}

/// Whether the hub serves a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Availability {
    /// Yes, as soon as the hub has this version.
    OpenSince(ResourceVersion),
    /// Not yet: the driver lists its objects. The hub takes its events meanwhile.
    Opening(Closing),
    /// No. The hub does not know all its objects.
    Closed(Closing),
}

/// Why the hub does not serve a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closing {
    /// To free memory. Clients can resume at the host.
    Evicted,
    /// The membership of its objects changes. Clients must list again.
    Moved,
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
            moved: ResourceVersion::default(),
            moving: false,
            objects: Objects::default(),
            bytes: events.iter().map(|event| event.bytes()).sum(),
            lane: Lane { events, first: 0, floor },
        }
    }

    /// Why the hub does not serve the cluster, if it does not.
    pub(crate) fn closing(&self) -> Option<Closing> {
        match self.availability {
            Availability::OpenSince(_) => None,
            Availability::Opening(closing) | Availability::Closed(closing) => Some(closing),
        }
    }

    fn is_open(&self) -> bool {
        self.closing().is_none()
    }

    pub(crate) fn is_opening(&self) -> bool {
        matches!(self.availability, Availability::Opening(_))
    }

    /// Whether the hub takes its objects and events.
    pub(crate) fn is_kept(&self) -> bool {
        !matches!(self.availability, Availability::Closed(_))
    }

    /// The version of a state that is at least as new as `at_least`, if the hub has it. `version` is that of the hub.
    pub(crate) fn state(
        &self,
        version: ResourceVersion,
        at_least: ResourceVersion,
    ) -> Result<ResourceVersion, Refusal> {
        let Availability::OpenSince(since) = self.availability else { return Err(Refusal::Closed) };
        let at_least = at_least.max(since);
        if version < at_least { Err(Refusal::NotYet(at_least)) } else { Ok(version) }
    }

    /// Whether the lane has all events after a version. For versions up to `expired`, the host no longer has the events
    /// that follow. `newest` is the version of the hub.
    pub(crate) fn has_events_after(
        &self,
        version: ResourceVersion,
        expired: ResourceVersion,
        newest: Option<ResourceVersion>,
    ) -> Result<(), Refusal> {
        match newest {
            _ if self.moving => Err(Refusal::Expired(newest.unwrap_or_default())),
            Some(_) if self.is_open() && version >= self.lane.floor => Ok(()),
            Some(newest) if version < self.moved => Err(Refusal::Expired(newest.max(self.moved))),
            Some(newest) if version <= expired => Err(Refusal::Expired(newest)),
            Some(_) if self.is_open() => Err(Refusal::BeforeWindow),
            _ => Err(Refusal::Closed),
        }
    }

    /// Adds an event.
    pub(crate) fn push(&mut self, event: &Arc<Event<T>>) {
        if self.is_kept() {
            self.bytes += event.bytes();
            self.lane.events.push_back(Arc::clone(event));
        }
    }

    /// Removes an event that has left the window, which is the first one of the lane, or was never in it.
    pub(crate) fn evict(&mut self, event: &Arc<Event<T>>) {
        if self.lane.events.front().is_some_and(|first| Arc::ptr_eq(first, event)) {
            self.lane.events.pop_front();
            self.lane.first += 1;
            self.lane.floor = self.lane.floor.max(event.version());
            self.bytes -= event.bytes();
        }
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

    /// The objects of the cluster, except those of everybody.
    pub(crate) fn objects(&self) -> &Objects<T> {
        &self.objects
    }

    /// The memory of the objects and events, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn has(&self, key: &Key) -> bool {
        self.objects.contains_key(key)
    }

    pub(crate) fn insert(&mut self, object: &Arc<Object<T>>) {
        self.remove(&object.key);
        self.bytes += object.bytes();
        self.objects.insert_mut(object.key.clone(), Arc::clone(object));
    }

    pub(crate) fn remove(&mut self, key: &Key) {
        // A list of the host may contain an object twice.
        if let Some(known) = self.objects.get(key) {
            self.bytes -= known.bytes();
            self.objects.remove_mut(key);
        }
    }

    /// Forgets all objects and events. A new list follows.
    pub(crate) fn clear(&mut self) {
        self.availability = Availability::OpenSince(ResourceVersion::default());
        self.forget();
    }

    /// Forgets all objects and events, and takes no more of them. Returns the objects.
    pub(crate) fn close(&mut self, closing: Closing) -> Objects<T> {
        self.moving |= closing == Closing::Moved;
        self.availability = Availability::Closed(closing);
        self.forget()
    }

    /// The membership has been as it is now since this version, or longer.
    pub(crate) fn moved(&mut self, version: ResourceVersion) {
        if std::mem::take(&mut self.moving) {
            self.moved = version;
        }
    }

    /// Takes objects and events of a closed cluster.
    pub(crate) fn begin_opening(&mut self) {
        if let Availability::Closed(closing) = self.availability {
            self.availability = Availability::Opening(closing);
        }
    }

    /// Closes the cluster again, if it is being opened. Returns its objects.
    pub(crate) fn abandon(&mut self) -> Objects<T> {
        let Availability::Opening(closing) = self.availability else { return Objects::default() };
        self.availability = Availability::Closed(closing);
        self.forget()
    }

    /// Serves the cluster from a version on. The partition has its complete events after `floor`.
    pub(crate) fn open(&mut self, since: ResourceVersion, floor: ResourceVersion) {
        self.moved(since);
        // The list is after the change of membership, too.
        self.moved = self.moved.min(since);
        self.availability = Availability::OpenSince(since);
        self.lane.floor = floor;
    }

    /// The hub has listed all objects at this version.
    pub(crate) fn synced(&mut self, version: ResourceVersion) {
        self.lane.floor = version;
        self.moved(version);
    }

    /// Nobody reads the events any more: the watches have ended.
    fn forget(&mut self) -> Objects<T> {
        self.bytes = 0;
        self.lane.events.clear();
        std::mem::take(&mut self.objects)
    }
}

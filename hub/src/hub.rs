//! The hub: what the driver reports to it, and what it gives to clients.

use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use crate::admission::{Admission, Start, WatchRequest};
use crate::budget::Usage;
use crate::delivery::{End, Next};
use crate::limits::Limits;
use crate::moment::Moment;
use crate::object::{NewObject, ResourceVersion};
use crate::partition::Closing;
use crate::place::ClusterId;
use crate::snapshot::Snapshot;
use crate::store::{MINIMUM, Store};
use crate::wakes::Wakes;
use crate::watcher::{Bookmarks, Watcher};
use crate::watchers::{WatcherId, Watchers};
use crate::window::EventKind;

/// The objects of one resource of one host, the latest events, and the watchers.
///
/// The driver first lists the resource: [`Hub::listed`] for each object, then [`Hub::synced`]. Then it watches from the
/// version of the list, and reports each event. An upstream watch that breaks and resumes is invisible: the hub ignores
/// events that it already has. If the watch cannot be resumed, the driver calls [`Hub::clear`] and lists again.
///
/// # Membership
///
/// Namespaces and nodes decide to which virtual cluster an object belongs, and the driver learns about them from other
/// watches, which have no common order with this one. So when a namespace with objects joins or leaves a virtual
/// cluster, no event at a known version says so. The driver then calls [`Hub::close`] for each cluster that has had or
/// gets one of these objects. Clients get 410, and list again. When the driver knows a version of the host after the
/// change, it calls [`Hub::moved`]: clients that know this version go to the host.
///
/// To serve a closed cluster again, the driver calls [`Hub::begin_opening`], lists the objects of the cluster
/// ([`Hub::listed_for`]) and calls [`Hub::open`]. Meanwhile, it goes on to report events.
#[derive(Debug)]
pub struct Hub<T> {
    limits: Limits,
    store: Store<T>,
    watchers: Watchers<T>,
}

/// The size of a hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statistics {
    /// The number of objects.
    pub objects: usize,
    /// The number of events in the window.
    pub events: usize,
    /// The time that the window covers.
    pub window: Duration,
    /// The number of watchers.
    pub watchers: usize,
}

/// Whether a cluster is being opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Opened {
    /// Yes. When the list is complete, the hub serves the cluster as soon as it has reached the version of the list.
    Yes,
    /// No: it was closed meanwhile, or the hub was cleared.
    Interrupted,
}

// === impl Hub ===

impl<T> Hub<T> {
    /// An empty hub. It counts its memory in `usage`, which no other hub may have.
    pub fn new(limits: Limits, usage: Arc<Usage>) -> Self {
        Self { limits, store: Store::new(usage), watchers: Watchers::new() }
    }

    /// The version up to which the hub has all events. `None` until the list is complete.
    pub fn version(&self) -> Option<ResourceVersion> {
        self.store.version
    }

    /// An object of the list.
    pub fn listed(&mut self, object: NewObject<T>) {
        debug_assert!(self.version().is_none(), "the list is complete");
        self.store.insert(object);
    }

    /// The list is complete, and has this version.
    pub fn synced(&mut self, version: ResourceVersion) {
        debug_assert!(self.version().is_none(), "the list is complete");
        self.store.synced(version);
    }

    /// An event of the upstream watch. Events that the hub already has are ignored: after a break, the driver may watch
    /// again from an older version.
    pub fn event(&mut self, kind: EventKind, object: NewObject<T>, now: Moment, wakes: &mut Wakes) {
        if let Some(event) = self.store.apply(kind, object, now) {
            self.watchers.wake_for(&event, wakes);
        }
    }

    /// The host has no further event up to this version.
    pub fn bookmark(&mut self, version: ResourceVersion) {
        self.store.version = self.version().map(|known| known.max(version));
    }

    /// Forgets everything, and ends all watches. The driver must list again. After a 410 of the host, pass
    /// [`End::Expired`] with the version of the hub: then clients that resume from it, or from an older version, get 410
    /// immediately.
    pub fn clear(&mut self, end: End, wakes: &mut Wakes) {
        let expired = match end {
            End::Expired(version) => Some(version),
            _ => None,
        };
        self.store.clear(expired);
        self.watchers.end_all(end, wakes);
    }

    /// Stops serving clusters whose membership has changed: forgets their objects and ends their watches. They stay
    /// closed until they are opened, or until the whole hub is cleared and listed again.
    pub fn close(&mut self, clusters: &[ClusterId], wakes: &mut Wakes) {
        for cluster in clusters {
            self.store.close(*cluster, Closing::Moved);
            self.watchers.end_of(*cluster, End::Moved, wakes);
        }
        self.store.forget_closed();
    }

    /// The clusters that the hub does not serve, and why.
    pub fn closed(&self) -> impl Iterator<Item = (ClusterId, Closing)> {
        self.store.partitions.iter().filter_map(|(cluster, partition)| Some((*cluster, partition.closing()?)))
    }

    /// Since this version of the host, the membership of these closed clusters has been as it is now.
    pub fn moved(&mut self, clusters: &[ClusterId], version: ResourceVersion) {
        for cluster in clusters {
            self.store.partition(*cluster).moved(version);
        }
    }

    /// Takes the events of a closed cluster from now on. The driver lists its objects afterwards.
    pub fn begin_opening(&mut self, cluster: ClusterId) {
        self.store.begin_opening(cluster);
    }

    /// An object of a list of this cluster, or one that it shares with others. The list must not be older than the call of
    /// [`Hub::begin_opening`].
    pub fn listed_for(&mut self, cluster: ClusterId, object: NewObject<T>) -> Opened {
        if !self.store.is_being_opened(cluster) {
            return Opened::Interrupted;
        }
        self.store.take_listed(cluster, object);
        Opened::Yes
    }

    /// The list of the cluster is complete. Serves the cluster from this version on.
    pub fn open(&mut self, cluster: ClusterId, listed: ResourceVersion) -> Opened {
        if !self.store.is_being_opened(cluster) {
            return Opened::Interrupted;
        }
        self.store.open(cluster, listed);
        Opened::Yes
    }

    /// The list has failed: forgets the objects of a cluster that is being opened.
    pub fn abandon(&mut self, cluster: ClusterId) {
        self.store.abandon(cluster);
    }

    /// The objects of a virtual cluster, and the version of this state. It is at least `at_least`.
    pub fn snapshot(&self, cluster: ClusterId, at_least: ResourceVersion) -> Admission<(ResourceVersion, Snapshot<T>)> {
        match self.store.state_of(cluster, at_least) {
            Ok(version) => Admission::Served((version, self.store.snapshot(cluster))),
            Err(refusal) => refusal.into(),
        }
    }

    /// Begins a watch. The driver must call [`Hub::leave`] when the client has gone.
    pub fn admit(&mut self, request: WatchRequest, now: Moment) -> Admission<WatcherId> {
        let WatchRequest { selection, start, bookmarks, until } = request;
        let cluster = selection.cluster;
        let after = match start {
            Start::After(version) => self.store.has_events_after(cluster, version).map(|()| version),
            Start::Now | Start::State { .. } => self.store.state_of(cluster, start.at_least()),
        };
        let start_version = match after {
            Ok(version) => version,
            Err(refusal) => return refusal.into(),
        };
        let (initial, is_marked) = match start {
            Start::State { initial_events_end, .. } => (Some(self.store.snapshot(cluster)), initial_events_end),
            Start::After(_) | Start::Now => (None, false),
        };
        Admission::Served(self.watchers.add(Watcher {
            position: self.store.partition(cluster).position_after(start_version),
            selection,
            start: start_version,
            initial,
            initial_events_end: is_marked && bookmarks,
            told: start_version,
            bookmarks: bookmarks.then(|| Bookmarks::first_at(now + self.limits.bookmarks)),
            begun: now,
            until,
            waker: None,
            caught_up: false,
            end: None,
        }))
    }

    /// The next events for a watcher, of about `max` bytes together, but at least one if there is one.
    pub fn next(&mut self, id: WatcherId, max: usize, now: Moment, waker: &Waker) -> Next<T> {
        let Some(watcher) = self.watchers.get_mut(id) else { return Next::End(End::Stopped) };
        let partition = self.store.partitions.get(&watcher.selection.cluster);
        let (Some(partition), version) = (partition, self.store.version.unwrap_or_default()) else {
            return Next::End(End::Stopped);
        };
        let next = watcher.next(partition, version, max, now, waker);
        let is_sent = match &next {
            Next::Events(changes) => !changes.is_empty(),
            Next::Objects(_) | Next::Bookmark { .. } => true,
            Next::Pending | Next::End(_) => false,
        };
        if let Some(bookmarks) = watcher.bookmarks.as_mut().filter(|_| is_sent) {
            bookmarks.next_at = now + self.limits.bookmarks;
        }
        next
    }

    /// The client has gone.
    pub fn leave(&mut self, id: WatcherId) {
        self.watchers.remove(id);
    }

    /// Time has passed. Call this about once per second. The hub must free `excess` bytes. First, it ends watches whose clients
    /// have not read all initial objects after 15 s, because they keep former objects in memory. Then it removes events, and
    /// then it closes clusters.
    pub fn tick(&mut self, now: Moment, excess: usize, wakes: &mut Wakes) {
        if excess > 0 {
            self.watchers.end_slow(MINIMUM, now, wakes);
        }
        for cluster in self.store.retain(&self.limits, excess, now) {
            self.watchers.end_of(cluster, End::Evicted, wakes);
        }
        self.watchers.wake_due(self.version().unwrap_or_default(), now, wakes);
    }

    /// The size of the hub.
    pub fn statistics(&self, now: Moment) -> Statistics {
        Statistics {
            objects: self.store.objects.len(),
            events: self.store.window.len(),
            window: self.store.window.age(now),
            watchers: self.watchers.len(),
        }
    }
}

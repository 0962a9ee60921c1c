//! All watchers of a hub.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

use crate::delivery::End;
use crate::moment::Moment;
use crate::object::ResourceVersion;
use crate::place::ClusterId;
use crate::wakes::Wakes;
use crate::watcher::Watcher;
use crate::window::Event;

/// The number of a watcher. A hub never assigns it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WatcherId(u64);

/// All watchers of a hub.
#[derive(Debug)]
pub(crate) struct Watchers<T> {
    open: HashMap<WatcherId, Watcher<T>>,
    clusters: HashMap<ClusterId, HashSet<WatcherId>>,
    opened: u64,
}

// === impl Watchers ===

impl<T> Watchers<T> {
    pub(crate) fn new() -> Self {
        Self { open: HashMap::new(), clusters: HashMap::new(), opened: 0 }
    }

    pub(crate) fn add(&mut self, watcher: Watcher<T>) -> WatcherId {
        self.opened += 1;
        let id = WatcherId(self.opened);
        self.clusters.entry(watcher.selection.cluster).or_default().insert(id);
        self.open.insert(id, watcher);
        id
    }

    pub(crate) fn remove(&mut self, id: WatcherId) {
        let Some(watcher) = self.open.remove(&id) else { return };
        if let Entry::Occupied(mut own) = self.clusters.entry(watcher.selection.cluster) {
            own.get_mut().remove(&id);
            if own.get().is_empty() {
                own.remove();
            }
        }
    }

    pub(crate) fn get_mut(&mut self, id: WatcherId) -> Option<&mut Watcher<T>> {
        self.open.get_mut(&id)
    }

    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }

    /// Wakes the watchers of the clusters that an event concerns, if they may select its object.
    pub(crate) fn wake_for(&mut self, event: &Event<T>, wakes: &mut Wakes) {
        let mut wake = |watcher: &mut Watcher<T>| {
            if watcher.selection.may_concern(event) {
                watcher.caught_up = false;
                wakes.add(watcher.waker.take());
            }
        };
        if event.concerns_everybody() {
            self.open.values_mut().for_each(wake);
            return;
        }
        for id in event.clusters().filter_map(|cluster| self.clusters.get(&cluster)).flatten() {
            self.open.get_mut(id).into_iter().for_each(&mut wake);
        }
    }

    /// Wakes the watchers whose time limit has come, or that get a bookmark with this version.
    pub(crate) fn wake_due(&mut self, version: ResourceVersion, now: Moment, wakes: &mut Wakes) {
        let due = self.open.values_mut().filter(|watcher| now >= watcher.until || watcher.is_due(version, now));
        due.for_each(|watcher| wakes.add(watcher.waker.take()));
    }

    /// Ends the watches that have not read their initial objects within this time, so that these can be freed.
    pub(crate) fn end_slow(&mut self, time: Duration, now: Moment, wakes: &mut Wakes) {
        let slow = self.open.values_mut().filter(|it| it.initial.is_some() && now.since(it.begun) > time);
        slow.for_each(|watcher| watcher.end(End::Lagged, wakes));
    }

    /// Ends the watches of a cluster.
    pub(crate) fn end_of(&mut self, cluster: ClusterId, end: End, wakes: &mut Wakes) {
        for id in self.clusters.get(&cluster).into_iter().flatten() {
            if let Some(watcher) = self.open.get_mut(id) {
                watcher.end(end, wakes);
            }
        }
    }

    /// Ends all watches.
    pub(crate) fn end_all(&mut self, end: End, wakes: &mut Wakes) {
        self.open.values_mut().for_each(|watcher| watcher.end(end, wakes));
    }
}

//! The model of a host: what it has stored, and what it has not yet told the hub.

use std::collections::{BTreeMap, VecDeque};

use hub::{ClusterId, EventKind, Key, Labels, Moment, NewObject, Place, ResourceVersion, Selection};

/// The state of an object.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) version: u64,
    pub(crate) label: &'static str,
    pub(crate) place: Place,
    /// Identifies the write.
    pub(crate) data: u64,
}

/// A change of an object.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) kind: EventKind,
    pub(crate) key: Key,
    pub(crate) now: State,
    /// The state before it. Known when the hub gets the change.
    pub(crate) before: Option<State>,
    /// When the hub got it.
    pub(crate) at: Moment,
}

#[derive(Debug, Default)]
pub(crate) struct Host {
    pub(crate) version: u64,
    writes: u64,
    /// The objects as the hub knows them.
    pub(crate) told: BTreeMap<Key, State>,
    /// The changes that the hub got, oldest first.
    pub(crate) history: Vec<Change>,
    /// The changes that it did not get yet.
    pub(crate) pending: VecDeque<Change>,
}

impl State {
    pub(crate) fn object(&self, key: &Key) -> NewObject<u64> {
        NewObject {
            key: key.clone(),
            version: ResourceVersion::new(self.version),
            labels: Labels::new([("app", self.label)]).expect("no NUL"),
            place: self.place.clone(),
            size: 100,
            data: self.data,
        }
    }

    pub(crate) fn is_selected(&self, selection: &Selection) -> bool {
        self.place.contains(selection.cluster) && selection.labels.matches(|key| (key == "app").then_some(self.label))
    }
}

impl Host {
    /// The newest objects.
    pub(crate) fn newest(&self) -> BTreeMap<Key, State> {
        let mut newest = self.told.clone();
        for change in &self.pending {
            match change.kind {
                EventKind::Written => newest.insert(change.key.clone(), change.now.clone()),
                EventKind::Deleted => newest.remove(&change.key),
            };
        }
        newest
    }

    pub(crate) fn write(&mut self, key: Key, label: &'static str, place: Place) {
        self.add(EventKind::Written, key, label, place);
    }

    pub(crate) fn delete(&mut self, key: Key) {
        if let Some(last) = self.newest().remove(&key) {
            self.add(EventKind::Deleted, key, last.label, last.place);
        }
    }

    fn add(&mut self, kind: EventKind, key: Key, label: &'static str, place: Place) {
        // Other resources use versions, too.
        self.version += 2;
        self.writes += 1;
        let now = State { version: self.version, label, place, data: self.writes };
        self.pending.push_back(Change { kind, key, now, before: None, at: Moment::default() });
    }

    /// Gives the hub the next change.
    pub(crate) fn tell(&mut self, at: Moment) -> Option<Change> {
        let mut change = self.pending.pop_front()?;
        change.at = at;
        change.before = match change.kind {
            EventKind::Written => self.told.insert(change.key.clone(), change.now.clone()),
            EventKind::Deleted => self.told.remove(&change.key),
        };
        self.history.push(change.clone());
        Some(change)
    }

    /// Moves an object to other clusters without an event. Returns the clusters that had it or have it.
    pub(crate) fn relocate(&mut self, key: &Key, place: &Place) -> Vec<Place> {
        let mut places = vec![place.clone()];
        let pending = self.pending.iter_mut().filter(|change| change.key == *key).map(|change| &mut change.now);
        for state in self.told.get_mut(key).into_iter().chain(pending) {
            places.push(std::mem::replace(&mut state.place, place.clone()));
        }
        places
    }

    /// The whole list, as a new watch begins with it.
    pub(crate) fn relist(&mut self) -> Vec<NewObject<u64>> {
        self.told = self.newest();
        self.pending.clear();
        self.told.iter().map(|(key, state)| state.object(key)).collect()
    }

    /// The list of one cluster.
    pub(crate) fn list_of(&self, cluster: ClusterId) -> Vec<NewObject<u64>> {
        let newest = self.newest();
        let own = newest.iter().filter(|(_, state)| state.place.contains(cluster));
        own.map(|(key, state)| state.object(key)).collect()
    }
}

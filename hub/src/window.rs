//! Events, and the window of the latest ones.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::moment::Moment;
use crate::object::{Object, ResourceVersion};
use crate::place::{ClusterId, Place};

/// What has happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// The host has created or changed the object. The hub does not rely on the host's distinction, because the
    /// upstream watch can begin between the two.
    Written,
    /// The host has deleted the object. Its data is the last state, with the version of the event.
    Deleted,
}

/// The object before an event.
#[derive(Debug)]
pub(crate) enum Before<T> {
    /// No virtual cluster had it.
    Absent,
    /// It had the same labels, and belonged to the same clusters. No selector can distinguish the two versions, so the
    /// former one is not kept.
    Alike,
    /// The object, because a watcher may need it: if the new version is no longer selected, the watcher gets DELETED
    /// with the former one.
    Other(Arc<Object<T>>),
}

/// A change of an object.
#[derive(Debug)]
pub(crate) struct Event<T> {
    /// What has happened.
    pub(crate) kind: EventKind,
    /// The object after the event. Its version is that of the event.
    pub(crate) object: Arc<Object<T>>,
    /// The object before the event.
    pub(crate) before: Before<T>,
    /// When the event arrived.
    pub(crate) at: Moment,
}

/// The latest events of all clusters, in the order of their versions.
#[derive(Debug)]
pub(crate) struct Window<T> {
    events: VecDeque<Arc<Event<T>>>,
}

// === impl Before ===

impl<T> Before<T> {
    pub(crate) fn of(former: Option<Arc<Object<T>>>, object: &Object<T>) -> Self {
        match former {
            None => Self::Absent,
            Some(former) if former.labels == object.labels && former.place == object.place => Self::Alike,
            Some(former) => Self::Other(former),
        }
    }
}

// === impl Event ===

impl<T> Event<T> {
    /// Its version.
    pub(crate) fn version(&self) -> ResourceVersion {
        self.object.version
    }

    /// The memory of its objects, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let former = match &self.before {
            Before::Other(former) => former.bytes(),
            Before::Absent | Before::Alike => 0,
        };
        self.object.bytes() + former
    }

    /// Whether the event concerns every cluster.
    pub(crate) fn concerns_everybody(&self) -> bool {
        self.places().any(|place| *place == Place::Everybody)
    }

    /// The clusters that are listed in the places before and after the event, each once.
    pub(crate) fn clusters(&self) -> impl Iterator<Item = ClusterId> {
        let now = &self.object.place;
        let former = self.former().map_or(&[][..], |former| former.listed());
        now.listed().iter().chain(former.iter().filter(|cluster| !now.contains(**cluster))).copied()
    }

    fn places(&self) -> impl Iterator<Item = &Place> {
        self.former().into_iter().chain([&self.object.place])
    }

    /// The place before the event, if it differs.
    fn former(&self) -> Option<&Place> {
        match &self.before {
            Before::Other(former) => Some(&former.place),
            Before::Absent | Before::Alike => None,
        }
    }
}

// === impl Window ===

impl<T> Window<T> {
    pub(crate) fn new() -> Self {
        Self { events: VecDeque::new() }
    }

    pub(crate) fn push(&mut self, event: Arc<Event<T>>) {
        self.events.push_back(event);
    }

    /// Removes and returns the oldest event if it is older than `age`.
    pub(crate) fn pop_older_than(&mut self, age: Duration, now: Moment) -> Option<Arc<Event<T>>> {
        let is_older = self.age(now) > age;
        is_older.then(|| self.events.pop_front())?
    }

    /// The events, from the oldest to the newest.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Event<T>>> {
        self.events.iter()
    }

    pub(crate) fn len(&self) -> usize {
        self.events.len()
    }

    /// The time since the oldest event arrived.
    pub(crate) fn age(&self, now: Moment) -> Duration {
        self.events.front().map_or(Duration::ZERO, |event| now.since(event.at))
    }

    /// Removes the events that concern none of the clusters for which the function returns `true`.
    pub(crate) fn retain(&mut self, is_wanted: impl Fn(ClusterId) -> bool) {
        self.events.retain(|event| event.concerns_everybody() || event.clusters().any(&is_wanted));
    }

    pub(crate) fn clear(&mut self) {
        self.events.clear();
    }
}

//! What watchers get.

use std::sync::Arc;

use crate::object::{Object, ResourceVersion};
use crate::selection::Effect;
use crate::window::{Before, Event};

/// The form in which a watcher gets an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shown {
    /// ADDED, with the object of the event.
    Added,
    /// MODIFIED, with the object of the event.
    Modified,
    /// DELETED, with the object of the event.
    Deleted,
    /// DELETED, with the object before the event, and the version of the event. The object exists, but the watcher no
    /// longer selects it.
    DeletedAsBefore,
}

/// An event for a watcher.
#[derive(Debug)]
pub struct Change<T> {
    shown: Shown,
    event: Arc<Event<T>>,
}

/// What a watcher gets next.
#[derive(Debug)]
#[must_use]
pub enum Next<T> {
    /// Objects of the initial state, in the order of their keys.
    Objects(Vec<Arc<Object<T>>>),
    /// Events, in order. There can be none if the hub has examined many events that are not selected: call
    /// [`Hub::next`](crate::Hub::next) again.
    Events(Vec<Change<T>>),
    /// A bookmark.
    Bookmark {
        /// Its version.
        version: ResourceVersion,
        /// With the annotation `k8s.io/initial-events-end`.
        initial_events_end: bool,
    },
    /// Nothing yet. The hub wakes the waker.
    Pending,
    /// The watch ends.
    End(End),
}

/// Why a watch ends. The stream ends without an error, unless the variant says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The watcher was too slow: its next event has left the window. kube-apiserver ends such a watch, too
    /// (`cache_watcher.go`).
    Lagged,
    /// The time limit of the request.
    Timeout,
    /// The memory limit.
    Evicted,
    /// The hub no longer serves the resource.
    Stopped,
    /// The objects of the virtual cluster have changed other than by events: for example, a namespace with objects has
    /// joined it. The client gets an ERROR event with 410.
    Moved,
    /// The host no longer has the events after this version. The client gets an ERROR event with 410.
    Expired(ResourceVersion),
}

// === impl Shown ===

impl Shown {
    fn of(effect: Effect) -> Option<Self> {
        match effect {
            Effect::Begins => Some(Self::Added),
            Effect::Changes => Some(Self::Modified),
            Effect::Ends => Some(Self::Deleted),
            Effect::Leaves => Some(Self::DeletedAsBefore),
            Effect::None => None,
        }
    }
}

// === impl Change ===

impl<T> Change<T> {
    /// What a watcher gets of an event, if it gets anything.
    pub(crate) fn of(effect: Effect, event: &Arc<Event<T>>) -> Option<Self> {
        Some(Self { shown: Shown::of(effect)?, event: Arc::clone(event) })
    }

    /// The form.
    pub fn shown(&self) -> Shown {
        self.shown
    }

    /// The version of the event.
    pub fn version(&self) -> ResourceVersion {
        self.event.version()
    }

    /// The object that the watcher gets. Its version is that of the event, except for [`Shown::DeletedAsBefore`].
    pub fn object(&self) -> &Object<T> {
        match (self.shown, &self.event.before) {
            (Shown::DeletedAsBefore, Before::Other(former)) => former,
            _ => &self.event.object,
        }
    }
}

// === impl End ===

impl End {
    /// Whether the client must list again. The end must not be replaced by one after which it would resume.
    pub(crate) fn is_error(self) -> bool {
        matches!(self, Self::Moved | Self::Expired(_))
    }
}

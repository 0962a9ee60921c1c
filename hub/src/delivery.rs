//! What watchers get.

use std::sync::Arc;

use crate::object::ResourceVersion;
use crate::selection::Effect;
use crate::window::Event;

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
    /// The form.
    pub shown: Shown,
    /// The event.
    pub event: Arc<Event<T>>,
}

/// What a watcher gets next.
#[derive(Debug)]
#[must_use]
pub enum Next<T> {
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
    /// The host no longer has the events after this version. The client gets an ERROR event with 410.
    Expired(ResourceVersion),
    /// The objects of the virtual cluster have changed other than by events: for example, a namespace with objects has
    /// joined it. The client gets an ERROR event with 410.
    Moved,
    /// The time limit of the request.
    Timeout,
    /// The memory limit.
    Evicted,
    /// The hub no longer serves the resource.
    Stopped,
}

// === impl Shown ===

impl Shown {
    pub(crate) fn of(effect: Effect) -> Option<Self> {
        match effect {
            Effect::Begins => Some(Self::Added),
            Effect::Changes => Some(Self::Modified),
            Effect::Ends => Some(Self::Deleted),
            Effect::Leaves => Some(Self::DeletedAsBefore),
            Effect::None => None,
        }
    }
}

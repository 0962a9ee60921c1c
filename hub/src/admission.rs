//! The beginning of lists and watches.

use crate::moment::Moment;
use crate::object::ResourceVersion;
use crate::selection::Selection;

/// Where a watch begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// With the first event after this version.
    After(ResourceVersion),
    /// With the next event: `resourceVersion=0` without initial events.
    Now,
    /// With the objects, in a state that is at least as new as this version, and then with the next event.
    State {
        /// The minimum version of the state. Zero allows any.
        at_least: ResourceVersion,
        /// After the objects, the client gets a bookmark with `k8s.io/initial-events-end` (KEP-3157).
        initial_events_end: bool,
    },
}

/// A watch.
#[derive(Clone, Debug)]
pub struct WatchRequest {
    /// What it selects.
    pub selection: Selection,
    /// Where it begins.
    pub start: Start,
    /// `allowWatchBookmarks`.
    pub bookmarks: bool,
    /// Its time limit.
    pub until: Moment,
}

/// Whether the hub serves a request.
#[derive(Debug)]
#[must_use]
pub enum Admission<S> {
    /// Yes.
    Served(S),
    /// Not yet: the driver must first bring the hub to this version, or send the request to the host.
    NotYet(ResourceVersion),
    /// No: the window begins after the requested version. The host may have older events.
    BeforeWindow,
    /// No, and the client gets 410: the host cannot resume from that version either, or the membership of the cluster's
    /// objects has changed since. The value is the oldest version that may work.
    Expired(ResourceVersion),
    /// No: the hub does not have the objects. The host has them.
    Closed,
}

/// Why the hub does not serve a request.
#[derive(Debug)]
pub(crate) enum Refusal {
    NotYet(ResourceVersion),
    BeforeWindow,
    Expired(ResourceVersion),
    Closed,
}

// === impl Start ===

impl Start {
    /// The minimum version of the state, if it begins with one.
    pub fn at_least(self) -> ResourceVersion {
        match self {
            Self::State { at_least, .. } => at_least,
            Self::After(_) | Self::Now => ResourceVersion::default(),
        }
    }
}

// === impl Admission ===

impl<S> Admission<S> {
    /// The same, with another value if the hub serves the request.
    pub fn map<T>(self, map: impl FnOnce(S) -> T) -> Admission<T> {
        match self {
            Self::Served(served) => Admission::Served(map(served)),
            Self::NotYet(version) => Admission::NotYet(version),
            Self::BeforeWindow => Admission::BeforeWindow,
            Self::Expired(version) => Admission::Expired(version),
            Self::Closed => Admission::Closed,
        }
    }
}

impl<S> From<Refusal> for Admission<S> {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::NotYet(version) => Self::NotYet(version),
            Refusal::BeforeWindow => Self::BeforeWindow,
            Refusal::Expired(version) => Self::Expired(version),
            Refusal::Closed => Self::Closed,
        }
    }
}

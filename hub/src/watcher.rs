//! One watcher: a client's open watch.

use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use crate::delivery::{Change, End, Next, Shown};
use crate::moment::Moment;
use crate::object::ResourceVersion;
use crate::partition::Partition;
use crate::selection::Selection;
use crate::wakes::Wakes;

/// The maximum number of events that one call examines, because the driver holds its lock during the call.
const EXAMINED: usize = 1024;

/// The last bookmark of a watch comes this long before its time limit, as in kube-apiserver (`nextBookmarkTime` in
/// `cache_watcher.go`).
const LAST_BOOKMARK: Duration = Duration::from_secs(2);

/// An open watch.
#[derive(Debug)]
pub(crate) struct Watcher {
    pub(crate) selection: Selection,
    /// The position of the next event in the cluster's lane.
    pub(crate) position: u64,
    /// The watcher has all events up to this version. The client knows this if the version is that of an event or a
    /// bookmark.
    pub(crate) told: ResourceVersion,
    pub(crate) bookmarks: bool,
    /// The bookmark at the end of the initial events, with this version, is still to be sent (KEP-3157).
    pub(crate) initial_events_end: Option<ResourceVersion>,
    /// When the next bookmark may be sent.
    pub(crate) bookmark_at: Moment,
    /// The time limit.
    pub(crate) until: Moment,
    pub(crate) waker: Option<Waker>,
    /// It has examined all events, and none has come into its scope since.
    pub(crate) caught_up: bool,
    pub(crate) end: Option<End>,
}

// === impl Watcher ===

impl Watcher {
    /// What it gets next. `partition` is that of its cluster, and has all events up to `version`.
    pub(crate) fn next<T>(
        &mut self,
        partition: &Partition<T>,
        version: ResourceVersion,
        max: usize,
        now: Moment,
        waker: &Waker,
    ) -> Next<T> {
        if let Some(end) = self.end {
            return Next::End(end);
        }
        if now >= self.until {
            return Next::End(End::Timeout);
        }
        if let Some(version) = self.initial_events_end.take() {
            return Next::Bookmark { version, initial_events_end: true };
        }
        // Events that are not in its scope may even have left the window.
        if std::mem::take(&mut self.caught_up) {
            self.position = partition.end();
        }
        let Some(events) = partition.events_from(self.position) else { return Next::End(End::Lagged) };
        let mut bytes = 0;
        let mut changes = Vec::new();
        for event in events.take(EXAMINED) {
            if bytes >= max && !changes.is_empty() {
                break;
            }
            self.position += 1;
            // The client may have resumed from a version that the hub did not have at that time.
            if event.version() <= self.told {
                continue;
            }
            if let Some(shown) = Shown::of(self.selection.effect(event)) {
                bytes += event.object.charge.bytes();
                changes.push(Change { shown, event: Arc::clone(event) });
            }
        }
        if let Some(last) = changes.last() {
            self.told = last.event.version();
        }
        if !changes.is_empty() || self.position < partition.end() {
            return Next::Events(changes);
        }
        self.caught_up = true;
        if self.is_due(version, now) {
            self.told = version;
            return Next::Bookmark { version, initial_events_end: false };
        }
        self.waker = Some(waker.clone());
        Next::Pending
    }

    /// Whether it is time for a bookmark with this version.
    pub(crate) fn is_due(&self, version: ResourceVersion, now: Moment) -> bool {
        let last = self.until - LAST_BOOKMARK;
        let is_time = now >= self.bookmark_at || (now >= last && self.bookmark_at > last);
        self.bookmarks && is_time && version > self.told
    }

    /// Ends the watch, unless it has ended.
    pub(crate) fn end(&mut self, end: End, wakes: &mut Wakes) {
        self.end.get_or_insert(end);
        wakes.add(self.waker.take());
    }
}

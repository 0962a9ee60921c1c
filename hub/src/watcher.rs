//! One watcher: a client's open watch.

use std::task::Waker;
use std::time::Duration;

use crate::delivery::{Change, End, Next};
use crate::moment::Moment;
use crate::object::ResourceVersion;
use crate::partition::Partition;
use crate::selection::Selection;
use crate::snapshot::Snapshot;
use crate::wakes::Wakes;

/// The last bookmark of a watch comes this long before its time limit, as in kube-apiserver (`nextBookmarkTime` in
/// `cache_watcher.go`).
const LAST_BOOKMARK: Duration = Duration::from_secs(2);

/// An open watch.
#[derive(Debug)]
pub(crate) struct Watcher<T> {
    pub(crate) selection: Selection,
    /// It gets the events after this version.
    pub(crate) start: ResourceVersion,
    /// The objects of the initial state, until it has examined all of them.
    pub(crate) initial: Option<Snapshot<T>>,
    /// The bookmark at the end of the initial events is still to be sent (KEP-3157).
    pub(crate) initial_events_end: bool,
    /// The position of the next event in the cluster's lane.
    pub(crate) position: u64,
    /// The version that the client knows: that of the last event or bookmark.
    pub(crate) told: ResourceVersion,
    pub(crate) bookmarks: Option<Bookmarks>,
    pub(crate) begun: Moment,
    /// The time limit.
    pub(crate) until: Moment,
    pub(crate) waker: Option<Waker>,
    /// It has examined all events, and none has come into its scope since.
    pub(crate) caught_up: bool,
    pub(crate) end: Option<End>,
}

/// The bookmarks of a watch that allows them.
#[derive(Debug)]
pub(crate) struct Bookmarks {
    /// When the next one may be sent.
    pub(crate) next_at: Moment,
    /// The one before the time limit has been sent.
    has_last: bool,
}

// === impl Bookmarks ===

impl Bookmarks {
    pub(crate) fn first_at(next_at: Moment) -> Self {
        Self { next_at, has_last: false }
    }
}

// === impl Watcher ===

impl<T> Watcher<T> {
    /// What it gets next. `partition` is that of its cluster, and has all events up to `version`.
    pub(crate) fn next(
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
        let objects = self.initial.as_mut().and_then(|initial| initial.next(&self.selection, max));
        self.initial.take_if(|initial| initial.is_complete());
        if let Some(objects) = objects {
            return Next::Objects(objects);
        }
        if std::mem::take(&mut self.initial_events_end) {
            return Next::Bookmark { version: self.start, initial_events_end: true };
        }
        // Events that are not in its scope may even have left the window.
        if std::mem::take(&mut self.caught_up) {
            self.position = partition.end();
        }
        let Some(changes) = self.batch(partition, max) else { return Next::End(End::Lagged) };
        if let Some(last) = changes.last() {
            self.told = last.version();
        }
        if !changes.is_empty() || self.position < partition.end() {
            return Next::Events(changes);
        }
        self.caught_up = true;
        let is_due = self.is_due(version, now);
        if let Some(bookmarks) = self.bookmarks.as_mut().filter(|_| is_due) {
            bookmarks.has_last = now >= self.until - LAST_BOOKMARK;
            self.told = version;
            return Next::Bookmark { version, initial_events_end: false };
        }
        self.waker = Some(waker.clone());
        Next::Pending
    }

    /// The next selected events. `None` if they have left the window.
    fn batch(&mut self, partition: &Partition<T>, max: usize) -> Option<Vec<Change<T>>> {
        let mut bytes = 0;
        let mut changes: Vec<Change<T>> = Vec::new();
        for event in partition.events_from(self.position)?.take(self.selection.max_examined()) {
            // The client may have resumed from a version that the hub did not have at that time.
            let is_newer = event.version() > self.start;
            let change = is_newer.then(|| Change::of(self.selection.effect(event), event)).flatten();
            if let Some(change) = change {
                bytes += change.object().bytes();
                if bytes > max && !changes.is_empty() {
                    break;
                }
                changes.push(change);
            }
            self.position += 1;
        }
        Some(changes)
    }

    /// Whether it is time for a bookmark with this version.
    pub(crate) fn is_due(&self, version: ResourceVersion, now: Moment) -> bool {
        let is_time = |bookmarks: &Bookmarks| {
            now >= bookmarks.next_at || (now >= self.until - LAST_BOOKMARK && !bookmarks.has_last)
        };
        self.bookmarks.as_ref().is_some_and(is_time) && version > self.told
    }

    /// Ends the watch. A client that must list again learns this, even if the watch has already ended otherwise.
    pub(crate) fn end(&mut self, end: End, wakes: &mut Wakes) {
        if self.end.is_none() || end.is_error() {
            self.end = Some(end);
        }
        self.initial = None;
        wakes.add(self.waker.take());
    }
}

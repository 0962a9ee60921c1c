//! A watch that a feed serves, as a body.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame};
use hub::{End, Next, ResourceVersion, WatcherId};
use kube_wire::Status;
use kube_wire::watch::error_event;

use crate::feed::Feed;
use crate::permission::Permission;
use crate::stored::{BATCH, Stored};

/// The frames that the host would send for a watch of one virtual cluster's objects.
///
/// It takes the next events only when the client has read the former ones. So for a slow client, the body holds only one
/// batch. All later events stay in the window of the hub, which all watches share.
#[derive(Debug)]
pub struct WatchBody {
    feed: Arc<Feed>,
    watcher: WatcherId,
    permission: Permission,
    /// Frames that the client gets if it still has the right.
    held: Vec<Bytes>,
    ready: VecDeque<Bytes>,
    ended: bool,
}

// === impl WatchBody ===

impl WatchBody {
    /// A watch that the hub has admitted.
    pub(crate) fn new(feed: &Arc<Feed>, watcher: WatcherId, permission: Permission) -> Self {
        let feed = Arc::clone(feed);
        Self { feed, watcher, permission, held: Vec::new(), ready: VecDeque::new(), ended: false }
    }

    /// A bookmark, which has only a version.
    fn bookmark(&self, version: ResourceVersion, initial_events_end: bool) -> Bytes {
        let collection = self.feed.collection();
        let annotations =
            if initial_events_end { r#","annotations":{"k8s.io/initial-events-end":"true"}"# } else { "" };
        format!(
            "{{\"type\":\"BOOKMARK\",\"object\":{{\"kind\":\"{}\",\"apiVersion\":\"{}\",\
             \"metadata\":{{\"resourceVersion\":\"{version}\",\"creationTimestamp\":null{annotations}}}}}}}\n",
            collection.kind, collection.api_version
        )
        .into()
    }

    fn end(&mut self, end: End) {
        self.ended = true;
        match end {
            End::Expired(_) | End::Moved => {
                let status = Status::expired("The resourceVersion for the provided watch is too old.");
                self.ready.push_back(error_event(&status).into());
            }
            End::Lagged | End::Timeout | End::Evicted | End::Stopped => {}
        }
    }
}

impl Body for WatchBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        loop {
            if let Some(bytes) = self.ready.pop_front() {
                return Poll::Ready(Some(Ok(Frame::data(bytes))));
            }
            if self.ended {
                return Poll::Ready(None);
            }
            // A client without the right starts the watch again, and gets 403.
            if !ready!(self.permission.poll_known(cx)) {
                self.ended = true;
                continue;
            }
            if !self.held.is_empty() {
                self.ended = !ready!(self.permission.poll_allowed(cx));
                let held = std::mem::take(&mut self.held);
                if !self.ended {
                    self.ready.extend(held);
                }
                continue;
            }
            let now = self.feed.now();
            let next = self.feed.hub().next(self.watcher, BATCH, now, cx.waker());
            match next {
                Next::Objects(objects) if objects.is_empty() => return yielded(cx),
                Next::Objects(objects) => {
                    self.held = objects.iter().flat_map(|object| Stored::initial(object)).collect();
                }
                Next::Events(changes) if changes.is_empty() => return yielded(cx),
                Next::Events(changes) => self.held = changes.iter().flat_map(Stored::frame).collect(),
                Next::Bookmark { version, initial_events_end } => {
                    let bookmark = self.bookmark(version, initial_events_end);
                    self.ready.push_back(bookmark);
                }
                Next::Pending => return Poll::Pending,
                Next::End(end) => self.end(end),
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.ended && self.ready.is_empty()
    }
}

/// Much was examined and not selected. Other tasks come first.
fn yielded<T>(cx: &Context<'_>) -> Poll<T> {
    cx.waker().wake_by_ref();
    Poll::Pending
}

impl Drop for WatchBody {
    fn drop(&mut self) {
        self.feed.hub().leave(self.watcher);
    }
}

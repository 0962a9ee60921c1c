//! A list that a feed serves, as a body.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame};
use hub::{ResourceVersion, Selection, Snapshot};

use crate::collection::Collection;
use crate::stored::{BATCH, Stored};

/// The list that the host would send from its watch cache, with one virtual cluster's objects.
///
/// It takes the next objects only when the client has read the former ones.
#[derive(Debug)]
pub struct ListBody {
    selection: Selection,
    /// `None` at the end.
    snapshot: Option<Snapshot<Stored>>,
    /// How an object begins in a frame, but not in a list of a built-in kind.
    kind: String,
    has_items: bool,
    ready: VecDeque<Bytes>,
}

// === impl ListBody ===

impl ListBody {
    pub(crate) fn new(
        collection: &Collection,
        selection: Selection,
        version: ResourceVersion,
        snapshot: Snapshot<Stored>,
    ) -> Self {
        let (kind, api_version) = (&collection.kind, &collection.api_version);
        let head = format!(
            "{{\"kind\":\"{kind}List\",\"apiVersion\":\"{api_version}\",\
             \"metadata\":{{\"resourceVersion\":\"{version}\"}},\"items\":["
        );
        let kind = Stored::kind_of(collection);
        Self { selection, snapshot: Some(snapshot), kind, has_items: false, ready: VecDeque::from([head.into()]) }
    }
}

impl Body for ListBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = &mut *self;
        if let Some(bytes) = this.ready.pop_front() {
            return Poll::Ready(Some(Ok(Frame::data(bytes))));
        }
        let Some(snapshot) = &mut this.snapshot else { return Poll::Ready(None) };
        match snapshot.next(&this.selection, BATCH) {
            Some(objects) => {
                for object in objects {
                    if std::mem::replace(&mut this.has_items, true) {
                        this.ready.push_back(Bytes::from_static(b","));
                    }
                    this.ready.extend(Stored::item(&object, &this.kind));
                }
            }
            None => {
                this.snapshot = None;
                this.ready.push_back(Bytes::from_static(b"]}\n"));
            }
        }
        // Each batch gives way to other tasks, also if nothing was selected.
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn is_end_stream(&self) -> bool {
        self.snapshot.is_none() && self.ready.is_empty()
    }
}

//! A list that a feed serves, as a body.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame};
use hub::{ResourceVersion, Selection, Snapshot};
use rewrite::Sink as _;
use rewrite::sink::Coalesce;

use crate::collection::Collection;
use crate::stored::{BATCH, Stored, type_meta};

/// The list that the host would send from its watch cache, with one virtual cluster's objects.
///
/// It takes the next objects only after the client has read the previous ones.
#[derive(Debug)]
pub struct ListBody {
    selection: Selection,
    /// `None` at the end.
    snapshot: Option<Snapshot<Stored>>,
    /// The `kind` and `apiVersion` to remove from each object.
    type_meta: String,
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
        let type_meta = type_meta(collection);
        Self { selection, snapshot: Some(snapshot), type_meta, has_items: false, ready: VecDeque::from([head.into()]) }
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
        if let Some(objects) = snapshot.next(&this.selection, BATCH) {
            // In one piece, because each piece costs more than a copy. Long objects are their own pieces.
            let mut joined = Coalesce::new();
            for object in objects {
                if std::mem::replace(&mut this.has_items, true) {
                    joined.emit(Bytes::from_static(b","));
                }
                for piece in Stored::item(&object, &this.type_meta) {
                    joined.emit(piece);
                }
            }
            this.ready.extend(joined.drain());
        } else {
            this.snapshot = None;
            this.ready.push_back(Bytes::from_static(b"]}\n"));
        }
        // Other tasks run between two batches, even if a batch is empty.
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn is_end_stream(&self) -> bool {
        self.snapshot.is_none() && self.ready.is_empty()
    }
}

//! The receiving half of a stream.
//!
//! Two parties read it: its consumer, which forwards the bytes as fast as its own peer reads them, and the sweep of the
//! [`Budget`]. A mutex separates them. It is almost never contended, because a sweep happens only four times a second.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use h2::RecvStream;
use http_body::{Body, Frame, SizeHint};

pub use crate::slot::InboundError;
use crate::slot::Slot;
use crate::{Budget, Owner};

/// The bytes that the other end of the tunnel sends on one stream.
#[derive(Debug)]
pub struct Inbound {
    /// `None` if the stream ended with its headers.
    slot: Option<Arc<Slot>>,
    exact: Option<u64>,
}

// === impl Inbound ===

impl Inbound {
    /// A stream that is charged to a tunnel's budget.
    pub fn new(stream: RecvStream, budget: &Budget) -> Self {
        if stream.is_end_stream() {
            return Self::empty();
        }
        let slot = Arc::new(Slot::new(stream));
        budget.admit(&slot);
        Self { slot: Some(slot), exact: None }
    }

    /// No bytes, without a stream.
    pub fn empty() -> Self {
        Self { slot: None, exact: None }
    }

    /// Sets the body's length from the peer's `content-length`, which `h2` enforces.
    #[must_use]
    pub fn with_length(mut self, length: Option<u64>) -> Self {
        self.exact = length;
        self
    }

    /// Sets the owner that is charged for unread bytes.
    pub fn set_owner(&self, owner: Owner) {
        if let Some(slot) = &self.slot {
            slot.set_owner(owner);
        }
    }

    /// The next bytes, which are never empty; `None` at the end of data. Releases their flow-control capacity.
    pub fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, InboundError>>> {
        match &self.slot {
            Some(slot) => slot.poll_chunk(cx),
            None => Poll::Ready(None),
        }
    }
}

impl Body for Inbound {
    type Data = Bytes;
    type Error = InboundError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, InboundError>>> {
        let Self { slot, exact } = self.get_mut();
        let Some(slot) = slot else { return Poll::Ready(None) };
        let chunk = slot.poll_chunk(cx);
        match chunk {
            Poll::Ready(Some(Ok(bytes))) => {
                if let Some(left) = exact {
                    *left = left.saturating_sub(bytes.len() as u64);
                }
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            Poll::Ready(Some(Err(err))) => Poll::Ready(Some(Err(err))),
            Poll::Ready(None) => slot.poll_trailers(cx),
            Poll::Pending => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.slot.as_ref().is_none_or(|slot| slot.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        match self.exact {
            _ if self.slot.is_none() => SizeHint::with_exact(0),
            Some(exact) => SizeHint::with_exact(exact),
            None => SizeHint::default(),
        }
    }
}

//! The receiving half of a stream.
//!
//! Two parties read it: its consumer, which forwards the bytes as fast as its own peer reads them, and the sweep of the
//! [`Budget`], which skips streams whose consumer waits for data. A mutex separates them. It is almost never contended,
//! because a sweep happens only four times a second.

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
    slot: Arc<Slot>,
    /// Whether the stream ended with its headers, so that no lock is needed.
    empty: bool,
    exact: Option<u64>,
}

// === impl Inbound ===

impl Inbound {
    /// A stream that is charged to a tunnel's budget.
    pub fn new(stream: RecvStream, budget: &Budget) -> Self {
        let empty = stream.is_end_stream();
        let slot = Arc::new(Slot::new(stream));
        if !empty {
            budget.admit(&slot);
        }
        Self { slot, empty, exact: None }
    }

    /// Sets the body's length from the peer's `content-length`, which `h2` enforces.
    #[must_use]
    pub fn with_length(mut self, length: Option<u64>) -> Self {
        self.exact = length;
        self
    }

    /// Sets the owner that is charged for unread bytes.
    pub fn set_owner(&self, owner: Owner) {
        self.slot.set_owner(owner);
    }

    /// The next bytes, which are never empty; `None` at the end of data. Releases their flow-control capacity.
    pub fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, InboundError>>> {
        if self.empty {
            return Poll::Ready(None);
        }
        self.slot.poll_chunk(cx)
    }
}

impl Body for Inbound {
    type Data = Bytes;
    type Error = InboundError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, InboundError>>> {
        if self.empty {
            return Poll::Ready(None);
        }
        let chunk = self.slot.poll_chunk(cx);
        match chunk {
            Poll::Ready(Some(Ok(bytes))) => {
                if let Some(left) = &mut self.exact {
                    *left = left.saturating_sub(bytes.len() as u64);
                }
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            Poll::Ready(Some(Err(err))) => Poll::Ready(Some(Err(err))),
            Poll::Ready(None) => self.slot.poll_trailers(cx),
            Poll::Pending => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.empty || self.slot.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        match self.exact {
            _ if self.empty => SizeHint::with_exact(0),
            Some(exact) => SizeHint::with_exact(exact),
            None => SizeHint::default(),
        }
    }
}

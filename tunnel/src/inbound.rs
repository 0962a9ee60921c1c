//! The receiving half of a stream.
//!
//! Two parties read it: its consumer, which forwards the bytes as fast as its own peer reads them, and the sweep of the
//! [`Budget`], which skips streams whose consumer waits for data. A mutex separates them. It is almost never contended,
//! because a sweep happens only four times a second.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::{Bytes, BytesMut};
use h2::RecvStream;
use http_body::{Body, Frame, SizeHint};
use protocol::settings::FRAME_OVERHEAD;

use crate::{Budget, Owner};

/// A sweep packs frames that are shorter than this, in bytes.
const SMALL: usize = 4096;

/// The bytes that the other end of the tunnel sends on one stream.
#[derive(Debug)]
pub struct Inbound {
    slot: Arc<Slot>,
    /// Whether the stream ended with its headers, so that no lock is needed.
    empty: bool,
    exact: Option<u64>,
}

/// Why a stream ended early.
#[derive(Debug, thiserror::Error)]
pub enum InboundError {
    /// The peer reset the stream, or the connection failed.
    #[error("the tunnel's stream was reset")]
    Stream(#[source] h2::Error),
    /// The reader was too slow, and the tunnel needed the memory.
    #[error("the reader stalled and the tunnel's memory budget was exhausted")]
    Evicted,
}

pub(crate) struct Slot {
    state: Mutex<State>,
}

struct State {
    /// The owner that is charged for unread bytes.
    owner: Owner,
    /// `None` after an eviction, which frees the memory in `h2`.
    stream: Option<RecvStream>,
    /// Whether the consumer waits for data, so that `h2` has its waker. A sweep would replace that waker.
    waiting: bool,
    /// Frames that sweeps took out of `h2`, in order. Their flow-control capacity is not released yet.
    taken: VecDeque<Bytes>,
    /// Packed small frames, after those in `taken`.
    packed: BytesMut,
    /// The bytes in `taken` and `packed`, with their overhead.
    cost: usize,
    /// Whether the data ends after `taken` and `packed`.
    ended: bool,
    failed: Option<h2::Error>,
}

// === impl Inbound ===

impl Inbound {
    /// A stream that is charged to a tunnel's budget.
    pub fn new(stream: RecvStream, budget: &Budget) -> Self {
        let empty = stream.is_end_stream();
        let slot = Arc::new(Slot {
            state: Mutex::new(State {
                owner: Owner::NOBODY,
                stream: Some(stream),
                waiting: false,
                taken: VecDeque::new(),
                packed: BytesMut::new(),
                cost: 0,
                ended: false,
                failed: None,
            }),
        });
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
        self.slot.lock().owner = owner;
    }

    /// The next bytes, which are never empty; `None` at the end of data. Releases their flow-control capacity.
    pub fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, InboundError>>> {
        if self.empty {
            return Poll::Ready(None);
        }
        self.slot.lock().poll_chunk(cx)
    }
}

impl Body for Inbound {
    type Data = Bytes;
    type Error = InboundError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, InboundError>>> {
        if self.empty {
            return Poll::Ready(None);
        }
        let chunk = self.slot.lock().poll_chunk(cx);
        match chunk {
            Poll::Ready(Some(Ok(bytes))) => {
                if let Some(left) = &mut self.exact {
                    *left = left.saturating_sub(bytes.len() as u64);
                }
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            Poll::Ready(Some(Err(err))) => Poll::Ready(Some(Err(err))),
            Poll::Ready(None) => self.slot.lock().poll_trailers(cx),
            Poll::Pending => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.empty || self.slot.lock().is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        match self.exact {
            _ if self.empty => SizeHint::with_exact(0),
            Some(exact) => SizeHint::with_exact(exact),
            None => SizeHint::default(),
        }
    }
}

// === impl Slot ===

impl Slot {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The owner that is charged for unread bytes.
    pub(crate) fn owner(&self) -> Owner {
        self.lock().owner
    }

    /// Takes unread frames out of `h2`. Returns the bytes that the stream holds in total.
    pub(crate) fn absorb(&self) -> usize {
        self.lock().absorb()
    }

    /// Frees all memory. The consumer then gets an error.
    pub(crate) fn evict(&self) {
        let mut state = self.lock();
        state.stream = None;
        state.taken.clear();
        state.packed = BytesMut::new();
        state.cost = 0;
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot").finish_non_exhaustive()
    }
}

// === impl State ===

impl State {
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, InboundError>>> {
        self.waiting = false;
        let Some(stream) = &mut self.stream else {
            return Poll::Ready(Some(Err(InboundError::Evicted)));
        };
        let taken = match self.taken.pop_front() {
            Some(bytes) => Some(bytes),
            None if !self.packed.is_empty() => Some(self.packed.split().freeze()),
            None => None,
        };
        if let Some(bytes) = taken {
            self.cost = if self.taken.is_empty() && self.packed.is_empty() {
                0
            } else {
                self.cost.saturating_sub(bytes.len() + FRAME_OVERHEAD)
            };
            return Poll::Ready(Some(release(stream, bytes)));
        }
        if let Some(err) = self.failed.take() {
            return Poll::Ready(Some(Err(InboundError::Stream(err))));
        }
        if self.ended {
            return Poll::Ready(None);
        }
        loop {
            match stream.poll_data(cx) {
                // An empty frame can only have END_STREAM, which the next poll returns.
                Poll::Ready(Some(Ok(bytes))) if bytes.is_empty() => {}
                Poll::Ready(Some(Ok(bytes))) => return Poll::Ready(Some(release(stream, bytes))),
                Poll::Ready(Some(Err(err))) => {
                    return Poll::Ready(Some(Err(InboundError::Stream(err))));
                }
                Poll::Ready(None) => {
                    self.ended = true;
                    return Poll::Ready(None);
                }
                Poll::Pending => {
                    self.waiting = true;
                    return Poll::Pending;
                }
            }
        }
    }

    fn poll_trailers(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, InboundError>>> {
        let Some(stream) = &mut self.stream else {
            return Poll::Ready(Some(Err(InboundError::Evicted)));
        };
        match stream.poll_trailers(cx) {
            Poll::Ready(Ok(trailers)) => Poll::Ready(trailers.map(|map| Ok(Frame::trailers(map)))),
            Poll::Ready(Err(err)) => Poll::Ready(Some(Err(InboundError::Stream(err)))),
            Poll::Pending => {
                self.waiting = true;
                Poll::Pending
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.taken.is_empty()
            && self.packed.is_empty()
            && self.failed.is_none()
            && self.stream.as_ref().is_some_and(RecvStream::is_end_stream)
    }

    fn absorb(&mut self) -> usize {
        let Some(stream) = &mut self.stream else {
            return 0;
        };
        if self.waiting || self.ended || self.failed.is_some() {
            return self.cost;
        }
        let cx = &mut Context::from_waker(Waker::noop());
        loop {
            match stream.poll_data(cx) {
                Poll::Ready(Some(Ok(bytes))) if bytes.len() < SMALL => {
                    self.cost += bytes.len();
                    self.packed.extend_from_slice(&bytes);
                }
                Poll::Ready(Some(Ok(bytes))) => {
                    if !self.packed.is_empty() {
                        self.taken.push_back(self.packed.split().freeze());
                    }
                    self.cost += bytes.len() + FRAME_OVERHEAD;
                    self.taken.push_back(bytes);
                }
                Poll::Ready(Some(Err(err))) => {
                    self.failed = Some(err);
                    return self.cost;
                }
                Poll::Ready(None) => {
                    self.ended = true;
                    return self.cost;
                }
                Poll::Pending => return self.cost,
            }
        }
    }
}

/// Returns bytes, and releases their flow-control capacity to the peer.
fn release(stream: &mut RecvStream, bytes: Bytes) -> Result<Bytes, InboundError> {
    stream.flow_control().release_capacity(bytes.len()).map_err(InboundError::Stream)?;
    Ok(bytes)
}

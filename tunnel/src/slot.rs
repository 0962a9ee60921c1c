//! The unread data of one stream.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::{fmt, mem};

use bytes::{Bytes, BytesMut};
use h2::RecvStream;
use http_body::Frame;
use protocol::settings::{FRAME_OVERHEAD, MAX_FRAME};

use crate::Owner;

/// A sweep packs frames that are shorter than this, in bytes.
const SMALL: usize = 4096;

/// The maximum length of packed frames, in bytes. The consumer may hold one chunk that it cannot send, and `hyper` puts a whole
/// chunk into its send queue as soon as the client's window allows one byte. No budget counts these chunks. So a chunk is never
/// longer than a frame, and is an allocation of its own.
const MAX_PACKED: usize = MAX_FRAME as usize;

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

/// What the consumer of a stream and the sweep of the budget share.
pub(crate) struct Slot {
    state: Mutex<State>,
}

struct State {
    /// The owner that is charged for unread bytes.
    owner: Owner,
    /// `None` after an eviction, which frees the memory in `h2`.
    stream: Option<RecvStream>,
    /// The waker of the consumer, if it waits for data. A sweep gives it to `h2` again. The consumer may also have been woken and
    /// not have polled, for example because it sends something else first; then data may wait that only a sweep finds.
    waiting: Option<Waker>,
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

// === impl Slot ===

impl Slot {
    pub(crate) fn new(stream: RecvStream) -> Self {
        let state = State {
            owner: Owner::NOBODY,
            stream: Some(stream),
            waiting: None,
            taken: VecDeque::new(),
            packed: BytesMut::new(),
            cost: 0,
            ended: false,
            failed: None,
        };
        Self { state: Mutex::new(state) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The owner that is charged for unread bytes.
    pub(crate) fn owner(&self) -> Owner {
        self.lock().owner
    }

    pub(crate) fn set_owner(&self, owner: Owner) {
        self.lock().owner = owner;
    }

    /// The next bytes for the consumer.
    pub(crate) fn poll_chunk(&self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, InboundError>>> {
        self.lock().poll_chunk(cx)
    }

    /// The trailers, after the last bytes.
    pub(crate) fn poll_trailers(&self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, InboundError>>> {
        self.lock().poll_trailers(cx)
    }

    pub(crate) fn is_end_stream(&self) -> bool {
        self.lock().is_end_stream()
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
        self.waiting = None;
        let Some(stream) = &mut self.stream else {
            return Poll::Ready(Some(Err(InboundError::Evicted)));
        };
        if let Some(bytes) = self.taken.pop_front() {
            self.cost -= bytes.len() + FRAME_OVERHEAD;
            return Poll::Ready(Some(release(stream, bytes)));
        }
        if !self.packed.is_empty() {
            let bytes = mem::take(&mut self.packed).freeze();
            self.cost -= bytes.len();
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
                    self.waiting = Some(cx.waker().clone());
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
                self.waiting = Some(cx.waker().clone());
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
        let waker = self.waiting.take();
        let found = self.take_unread(&mut Context::from_waker(waker.as_ref().unwrap_or(Waker::noop())));
        match waker {
            Some(waker) if found => waker.wake(),
            waker => self.waiting = waker,
        }
        self.cost
    }

    /// Takes frames out of `h2` until there are no more. Returns whether there was anything, or the end.
    fn take_unread(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(stream) = &mut self.stream else {
            return false;
        };
        let mut found = false;
        while !self.ended && self.failed.is_none() {
            match stream.poll_data(cx) {
                Poll::Ready(Some(Ok(bytes))) if bytes.len() < SMALL => {
                    if self.packed.len() + bytes.len() > MAX_PACKED {
                        self.cost += FRAME_OVERHEAD;
                        self.taken.push_back(mem::take(&mut self.packed).freeze());
                    }
                    self.cost += bytes.len();
                    self.packed.extend_from_slice(&bytes);
                }
                Poll::Ready(Some(Ok(bytes))) => {
                    if !self.packed.is_empty() {
                        self.cost += FRAME_OVERHEAD;
                        self.taken.push_back(mem::take(&mut self.packed).freeze());
                    }
                    self.cost += bytes.len() + FRAME_OVERHEAD;
                    self.taken.push_back(bytes);
                }
                Poll::Ready(Some(Err(err))) => self.failed = Some(err),
                Poll::Ready(None) => self.ended = true,
                Poll::Pending => break,
            }
            found = true;
        }
        found
    }
}

/// Returns bytes, and releases their flow-control capacity to the peer.
fn release(stream: &mut RecvStream, bytes: Bytes) -> Result<Bytes, InboundError> {
    stream.flow_control().release_capacity(bytes.len()).map_err(InboundError::Stream)?;
    Ok(bytes)
}

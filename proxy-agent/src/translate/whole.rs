//! Collects responses, and charges them to their cluster.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use host_client::collect::{CollectError, collect_charged, drain};
use http_body::{Body, Frame};
use kube_wire::Status;
use tunnel::Reservation;

use crate::refusal::{Exhausted, Refusal};
use virtual_cluster::clusters::Memory;
use virtual_cluster::share::large_objects::{LARGE_LENGTH, LargeObjectLimits};

/// The refusal if the request may have been executed. It has no `Retry-After`, which would make clients repeat a write.
const UNKNOWN_OUTCOME: &str = "the request was sent to the API server, but the memory for responses is exhausted; \
                               read the object to see whether the request took effect";

/// Collects whole responses for one request, charges them to its cluster, and processes large ones in turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Collector<'a> {
    memory: &'a Memory,
    large_objects: &'a LargeObjectLimits,
    /// Whether the request has no effect, so that the client may repeat it.
    is_read: bool,
}

/// Counts the bytes of a body that have been read.
struct Metered<B> {
    body: B,
    read: usize,
}

// === impl Metered ===

impl<B: Body<Data = Bytes> + Unpin> Body for Metered<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &polled {
            self.read += frame.data_ref().map_or(0, Bytes::len);
        }
        polled
    }
}

// === impl Collector ===

impl<'a> Collector<'a> {
    /// A collector for a request without effects (`is_read`), or for one that was executed.
    pub(crate) fn new(memory: &'a Memory, large_objects: &'a LargeObjectLimits, is_read: bool) -> Self {
        Self { memory, large_objects, is_read }
    }

    /// Does the work on bytes of this length, in turn if it is large.
    pub(crate) fn work<T: Send>(self, length: usize, work: impl FnOnce() -> T + Send) -> T {
        if length > LARGE_LENGTH { self.large_objects.run(work) } else { work() }
    }

    /// Does the work on a large object in another thread, in turn.
    pub(crate) async fn apart<T: Send + 'static>(self, work: impl FnOnce() -> T + Send + 'static) -> T {
        self.large_objects.apart(work).await
    }

    /// Collects a response of at most `limit` bytes. It is charged for as long as a clone or slice of the bytes lives.
    pub(crate) async fn collect<B>(self, body: B, limit: usize) -> Result<Bytes, Refusal>
    where
        B: Body<Data = Bytes>,
        B::Error: std::error::Error,
    {
        collect_charged(body, limit, &self.memory.bodies).await.map_err(|error| match error {
            CollectError::Exhausted => self.exhausted(),
            CollectError::TooLarge(_) | CollectError::Broken(_) => Refusal::Unreadable(error.to_string()),
        })
    }

    /// Like [`collect`](Self::collect), but if there is no memory for the body, the rest is read and discarded, up to
    /// `limit`. Also returns the number of bytes that were read.
    pub(crate) async fn collect_or_drain<B>(self, body: B, limit: usize) -> (usize, Result<Bytes, Refusal>)
    where
        B: Body<Data = Bytes> + Unpin,
        B::Error: std::error::Error,
    {
        let mut metered = Metered { body, read: 0 };
        let collected = self.collect(&mut metered, limit).await;
        if collected.is_err() {
            let left = limit.saturating_sub(metered.read);
            drain(&mut metered, left).await;
        }
        (metered.read, collected)
    }

    /// Charges bytes that were made from a response.
    pub(crate) fn charged(self, bytes: Bytes) -> Result<Bytes, Refusal> {
        Ok(self.reserve(bytes.len())?.attach(bytes))
    }

    /// Charges the bytes of a value that was made from a response.
    pub(crate) fn reserve(self, bytes: usize) -> Result<Reservation, Refusal> {
        self.memory.bodies.reserve(bytes).ok_or_else(|| self.exhausted())
    }

    /// Concatenates and charges pieces.
    pub(crate) fn concat(self, pieces: &[Bytes]) -> Result<Bytes, Refusal> {
        self.charged(pieces.concat().into())
    }

    /// An empty charge for a list.
    pub(crate) fn list(self) -> Reservation {
        self.memory.lists.nothing()
    }

    /// Grows the charge to the bytes that are held.
    pub(crate) fn grow(self, charge: &mut Reservation, held: usize) -> Result<(), Refusal> {
        if charge.grow(held.saturating_sub(charge.units())) { Ok(()) } else { Err(self.exhausted()) }
    }

    /// The refusal if there is no memory for the response.
    pub(crate) fn exhausted(self) -> Refusal {
        if self.is_read { Exhausted::Memory.into() } else { Status::timeout(UNKNOWN_OUTCOME, 0).into() }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::convert::Infallible;

    use tunnel::FairBudget;

    use super::*;

    struct Chunks(VecDeque<&'static [u8]>);

    impl Body for Chunks {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            Poll::Ready(self.0.pop_front().map(|chunk| Ok(Frame::data(Bytes::from_static(chunk)))))
        }
    }

    /// The length of a refusal shows its cost for the host. So it counts even if there is no memory for the refusal.
    #[tokio::test]
    async fn a_drained_body_is_counted() {
        let budget = FairBudget::new(24, 12);
        let share = || budget.share();
        let memory = Memory { bodies: share(), lists: share(), watches: share(), heads: share() };
        let large_objects = LargeObjectLimits::default();
        let collector = Collector::new(&memory, &large_objects, true);
        let chunks = |count| Chunks(VecDeque::from(vec![&b"abc"[..]; count]));
        for (count, limit, length, is_whole) in [(3, 100, 9, true), (10, 100, 30, false), (10, 12, 12, false)] {
            let (read, collected) = collector.collect_or_drain(chunks(count), limit).await;
            assert!(read >= length && read < length + 6, "{read}");
            assert_eq!(collected.is_ok(), is_whole);
        }
        assert_eq!(budget.held(), 0);
    }
}

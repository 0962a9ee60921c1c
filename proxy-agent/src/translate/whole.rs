//! A body in one piece, bounded.

use std::future::poll_fn;
use std::pin::pin;

use bytes::{Bytes, BytesMut};
use http_body::Body;
use kube_wire::Status;
use kube_wire::status::TOO_MANY_REQUESTS;
use tunnel::{Reservation, Share};

use crate::clusters::Memory;
use crate::refusal::Refusal;

/// Seconds after which a cluster's share may have room again.
const RETRY_AFTER: u32 = 1;

/// A `Retry-After` would make clients repeat a write that was executed.
const UNKNOWN_OUTCOME: &str = "the request was sent to the API server, but the memory for responses is exhausted; \
                               read the object to see whether the request took effect";

/// Why a body is not there in one piece.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TooLarge<E> {
    /// The body is too long.
    #[error("the body is longer than {0} bytes")]
    TooLarge(usize),
    /// The body ended early.
    #[error("the body ended early")]
    Broken(#[source] E),
}

/// Why a charged body could not be collected.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CollectError<E> {
    /// The body is too long.
    #[error("the body is longer than {0} bytes")]
    TooLarge(usize),
    /// The share, or the budget of all clusters, has no room for it.
    #[error("the memory for bodies is exhausted")]
    Exhausted,
    /// The body ended early.
    #[error("the body ended early")]
    Broken(#[source] E),
}

/// Collects whole responses for one request, and charges them to its cluster.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Collector<'a> {
    memory: &'a Memory,
    /// Whether the request has no effect, so that the client may repeat it.
    is_read: bool,
}

/// Collects a body of at most `limit` bytes and charges it to `share` for as long as a clone or slice of the bytes lives.
/// A body of one chunk is not copied.
pub(crate) async fn collect_charged<B>(body: B, limit: usize, share: &Share) -> Result<Bytes, CollectError<B::Error>>
where
    B: Body<Data = Bytes>,
{
    let mut body = pin!(body);
    let mut charge = share.nothing();
    let (mut first, mut all) = (Bytes::new(), Vec::new());
    while let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
        let Ok(chunk) = frame.map_err(CollectError::Broken)?.into_data() else { continue };
        if first.len() + all.len() + chunk.len() > limit {
            return Err(CollectError::TooLarge(limit));
        }
        if !charge.grow(chunk.len()) {
            return Err(CollectError::Exhausted);
        }
        if first.is_empty() && all.is_empty() {
            first = chunk;
            continue;
        }
        if !first.is_empty() {
            append(&mut all, &std::mem::take(&mut first));
        }
        append(&mut all, &chunk);
    }
    Ok(charge.attach(if first.is_empty() { all.into() } else { first }))
}

/// Grows by an eighth instead of doubling, because spare capacity is not charged.
fn append(all: &mut Vec<u8>, chunk: &[u8]) {
    if all.capacity() - all.len() < chunk.len() {
        all.reserve_exact(chunk.len().max(all.len() / 8));
    }
    all.extend_from_slice(chunk);
}

/// Collects a body of at most `limit` bytes. A body of one chunk is not copied.
pub(crate) async fn collect<B>(body: B, limit: usize) -> Result<Bytes, TooLarge<B::Error>>
where
    B: Body<Data = Bytes>,
{
    let mut body = pin!(body);
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    while let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
        let Ok(chunk) = frame.map_err(TooLarge::Broken)?.into_data() else { continue };
        if first.len() + all.len() + chunk.len() > limit {
            return Err(TooLarge::TooLarge(limit));
        }
        if first.is_empty() && all.is_empty() {
            first = chunk;
            continue;
        }
        if !first.is_empty() {
            all.extend_from_slice(&std::mem::take(&mut first));
        }
        all.extend_from_slice(&chunk);
    }
    Ok(if first.is_empty() { all.freeze() } else { first })
}

/// Reads on and forgets what comes, to the end of the body but no more than `limit` bytes.
pub(crate) async fn drain<B>(body: B, limit: usize)
where
    B: Body<Data = Bytes>,
{
    let mut body = pin!(body);
    let mut read = 0;
    while read < limit
        && let Some(Ok(frame)) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await
    {
        read += frame.data_ref().map_or(0, Bytes::len);
    }
}

// === impl Collector ===

impl<'a> Collector<'a> {
    /// For a request that changes nothing (`is_read`), or that was executed.
    pub(crate) fn new(memory: &'a Memory, is_read: bool) -> Self {
        Self { memory, is_read }
    }

    /// An answer of at most `limit` bytes. It is charged for as long as a clone or slice of the bytes lives.
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

    /// Charges bytes that were made from a response.
    pub(crate) fn charged(self, bytes: Bytes) -> Result<Bytes, Refusal> {
        Ok(self.reserve(bytes.len())?.attach(bytes))
    }

    /// Charges as many bytes as something takes that was made from a response.
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

    /// The refusal if there is no room for the response.
    pub(crate) fn exhausted(self) -> Refusal {
        if self.is_read { exhausted() } else { Status::timeout(UNKNOWN_OUTCOME, 0).into() }
    }
}

/// The refusal if there is no room for a body. The request had no effect, and may be repeated.
pub(crate) fn exhausted() -> Refusal {
    Status::too_many_requests(TOO_MANY_REQUESTS, RETRY_AFTER).into()
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::convert::Infallible;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use http_body::Frame;
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

    #[tokio::test]
    async fn what_is_collected_is_charged_while_it_is_held() {
        let budget = FairBudget::new(24, 12);
        let share = budget.share();
        let chunks = |count| Chunks(VecDeque::from(vec![&b"abc"[..]; count]));
        let one = collect_charged(chunks(1), 100, &share).await.unwrap();
        let three = collect_charged(chunks(3), 100, &share).await.unwrap();
        assert_eq!((&one[..], &three[..], share.held()), (&b"abc"[..], &b"abcabcabc"[..], 12));
        assert!(matches!(collect_charged(chunks(1), 100, &share).await, Err(CollectError::Exhausted)));
        assert_eq!(share.held(), 12);
        drop(three);
        assert!(matches!(collect_charged(chunks(4), 11, &share).await, Err(CollectError::TooLarge(11))));
        assert_eq!(share.held(), 3);
        drop(one);
        assert_eq!(collect_charged(chunks(0), 0, &share).await.unwrap(), "");
        assert_eq!(budget.held(), 0);
    }

    #[tokio::test]
    async fn what_is_too_long_is_read_on_within_bounds() {
        let mut body = Chunks(VecDeque::from([&b"abc"[..]; 10]));
        assert!(matches!(collect(&mut body, 5).await, Err(TooLarge::TooLarge(5))));
        assert_eq!(body.0.len(), 8);
        drain(&mut body, 7).await;
        assert_eq!(body.0.len(), 5);
        drain(&mut body, 1000).await;
        assert_eq!(body.0.len(), 0);
    }
}

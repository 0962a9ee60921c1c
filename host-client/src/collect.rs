//! Collects bodies of limited length.

use std::future::poll_fn;
use std::pin::pin;

use bytes::{Bytes, BytesMut};
use http_body::Body;
use tunnel::Share;

/// The maximum length of a response that is processed as a whole, in bytes. Lists and watches are streamed instead.
pub const MAX_OBJECT: usize = 16 * 1024 * 1024;

/// Why a body could not be collected.
#[derive(Debug, thiserror::Error)]
pub enum TooLarge<E> {
    /// The body is too long.
    #[error("the body is longer than {0} bytes")]
    TooLarge(usize),
    /// The body ended early.
    #[error("the body ended early")]
    Broken(#[source] E),
}

/// Why a charged body could not be collected.
#[derive(Debug, thiserror::Error)]
pub enum CollectError<E> {
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

/// Collects a body of at most `limit` bytes and charges it to `share` for as long as a clone or slice of the bytes
/// lives. A body of one chunk is not copied.
pub async fn collect_charged<B>(body: B, limit: usize, share: &Share) -> Result<Bytes, CollectError<B::Error>>
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
pub async fn collect<B>(body: B, limit: usize) -> Result<Bytes, TooLarge<B::Error>>
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

/// Reads and discards the rest of a body, up to `limit` bytes.
pub async fn drain<B>(body: B, limit: usize)
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
    async fn a_collected_body_is_charged_while_it_is_held() {
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
    async fn a_long_body_is_drained_within_bounds() {
        let mut body = Chunks(VecDeque::from([&b"abc"[..]; 10]));
        assert!(matches!(collect(&mut body, 5).await, Err(TooLarge::TooLarge(5))));
        assert_eq!(body.0.len(), 8);
        drain(&mut body, 7).await;
        assert_eq!(body.0.len(), 5);
        drain(&mut body, 1000).await;
        assert_eq!(body.0.len(), 0);
    }
}

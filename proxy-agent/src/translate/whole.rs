//! A body in one piece, bounded.

use std::future::poll_fn;
use std::pin::pin;

use bytes::{Bytes, BytesMut};
use http_body::Body;

/// Why a body is not there in one piece.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TooLarge<E> {
    /// It is longer than allowed.
    #[error("the body is longer than {0} bytes")]
    TooLarge(usize),
    /// It broke off.
    #[error("the body broke off")]
    Broken(#[source] E),
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

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::convert::Infallible;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use http_body::Frame;

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

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

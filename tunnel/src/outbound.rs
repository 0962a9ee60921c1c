//! Sends bodies and bytes on a stream, within its flow-control capacity.

use std::future::poll_fn;
use std::pin::pin;
use std::task::{Poll, ready};

use bytes::Bytes;
use h2::{Reason, SendStream};
use http_body::Body;

/// Why a body was not sent to its end.
#[derive(Debug, thiserror::Error)]
pub enum SendError<E> {
    /// The peer has reset the stream, for example because its client has disconnected, or the tunnel has ended.
    #[error("the tunnel's stream was closed by the peer")]
    Closed(#[source] h2::Error),
    /// The body failed. The stream was reset, so that the peer does not take it for complete.
    #[error("the body ended early")]
    Body(#[source] E),
}

/// Sends a whole body and ends the stream. Returns the number of bytes sent.
///
/// Waits for a reset by the peer together with the next frame of the body, because a watch may be silent for minutes. So the
/// caller can end the upstream request as soon as its client resets it.
pub async fn send_body<B>(body: B, mut stream: SendStream<Bytes>) -> Result<u64, SendError<B::Error>>
where
    B: Body<Data = Bytes>,
{
    let mut body = pin!(body);
    let mut sent = 0;
    loop {
        let frame = poll_fn(|cx| {
            if let Poll::Ready(frame) = body.as_mut().poll_frame(cx) {
                return Poll::Ready(Ok(frame));
            }
            let closed = ready!(stream.poll_reset(cx));
            Poll::Ready(Err(SendError::Closed(closed.map_or_else(|err| err, h2::Error::from))))
        });
        match frame.await? {
            None => {
                stream.send_data(Bytes::new(), true).map_err(SendError::Closed)?;
                return Ok(sent);
            }
            Some(Err(err)) => {
                stream.send_reset(Reason::INTERNAL_ERROR);
                return Err(SendError::Body(err));
            }
            Some(Ok(frame)) => match frame.into_data() {
                Ok(bytes) => {
                    let last = body.is_end_stream();
                    sent += bytes.len() as u64;
                    send_bytes(&mut stream, bytes, last).await.map_err(SendError::Closed)?;
                    if last {
                        return Ok(sent);
                    }
                }
                Err(frame) => {
                    let trailers = frame.into_trailers().unwrap_or_default();
                    stream.send_trailers(trailers).map_err(SendError::Closed)?;
                    return Ok(sent);
                }
            },
        }
    }
}

/// Sends bytes as fast as the peer's windows allow. An empty chunk is sent only if it is the last one: `h2` ends a
/// connection after a hundred empty frames.
pub async fn send_bytes(stream: &mut SendStream<Bytes>, mut bytes: Bytes, last: bool) -> Result<(), h2::Error> {
    while !bytes.is_empty() {
        stream.reserve_capacity(bytes.len());
        let granted = capacity(stream).await?;
        let chunk = bytes.split_to(granted.min(bytes.len()));
        let end = last && bytes.is_empty();
        stream.send_data(chunk, end)?;
        if end {
            return Ok(());
        }
    }
    if last {
        stream.send_data(Bytes::new(), true)?;
    }
    Ok(())
}

/// Waits until a part of the reserved capacity is available, and returns the available capacity.
pub(crate) async fn capacity(stream: &mut SendStream<Bytes>) -> Result<usize, h2::Error> {
    if stream.capacity() > 0 {
        return Ok(stream.capacity());
    }
    poll_fn(|cx| {
        loop {
            return match ready!(stream.poll_capacity(cx)) {
                Some(Ok(0)) => continue,
                Some(granted) => Poll::Ready(granted),
                None => Poll::Ready(Err(h2::Error::from(Reason::STREAM_CLOSED))),
            };
        }
    })
    .await
}

//! Sends bodies and bytes on a stream, within its flow-control capacity.
//!
//! `h2` grants capacity only within the windows of the peer. So the bytes in its send queue wait only for the connection: if a
//! client does not read, the window of its stream is empty, and no more of its bytes are queued. But if the connection is slow,
//! many streams fill the queue. An [`Outbound`] charges its queued bytes to a [`Share`], and waits for room.

use std::future::poll_fn;
use std::pin::pin;
use std::task::{Poll, ready};

use bytes::Bytes;
use h2::{Reason, SendStream};
use http_body::Body;

use crate::{Reservation, Share};

/// The first bytes of a stream are not charged, so that short responses need no accounting. With the overhead of their chunks.
const FREE: usize = 8 * 1024;

/// The memory that a chunk takes in the queue, in addition to its bytes.
const CHUNK_OVERHEAD: usize = 256;

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

/// The sending half of a stream, with the share to which the bytes in the send queue of `h2` are charged.
#[derive(Debug)]
pub struct Outbound {
    stream: SendStream<Bytes>,
    /// `None` if the bytes are not charged.
    account: Option<Account>,
}

/// What the bytes of one stream are charged to.
#[derive(Debug)]
struct Account {
    share: Share,
    /// What may still be sent without a charge.
    free: usize,
}

/// Sends a whole body and ends the stream. Returns the number of bytes sent.
///
/// Waits for a reset by the peer together with the next frame of the body, because a watch may be silent for minutes. So the
/// caller can end the upstream request as soon as its client resets it.
pub async fn send_body<B>(body: B, outbound: impl Into<Outbound>) -> Result<u64, SendError<B::Error>>
where
    B: Body<Data = Bytes>,
{
    let mut outbound = outbound.into();
    let mut body = pin!(body);
    let mut sent = 0;
    loop {
        let frame = poll_fn(|cx| {
            if let Poll::Ready(frame) = body.as_mut().poll_frame(cx) {
                return Poll::Ready(Ok(frame));
            }
            let closed = ready!(outbound.stream.poll_reset(cx));
            Poll::Ready(Err(SendError::Closed(closed.map_or_else(|err| err, h2::Error::from))))
        });
        match frame.await? {
            None => {
                outbound.stream.send_data(Bytes::new(), true).map_err(SendError::Closed)?;
                return Ok(sent);
            }
            Some(Err(err)) => {
                outbound.stream.send_reset(Reason::INTERNAL_ERROR);
                return Err(SendError::Body(err));
            }
            Some(Ok(frame)) => match frame.into_data() {
                Ok(bytes) => {
                    let last = body.is_end_stream();
                    sent += bytes.len() as u64;
                    outbound.send(bytes, last).await.map_err(SendError::Closed)?;
                    if last {
                        return Ok(sent);
                    }
                }
                Err(frame) => {
                    let trailers = frame.into_trailers().unwrap_or_default();
                    outbound.stream.send_trailers(trailers).map_err(SendError::Closed)?;
                    return Ok(sent);
                }
            },
        }
    }
}

/// Sends bytes as fast as the peer's windows allow. An empty chunk is sent only if it is the last one: `h2` ends a
/// connection after a hundred empty frames.
pub async fn send_bytes(stream: &mut SendStream<Bytes>, bytes: Bytes, last: bool) -> Result<(), h2::Error> {
    send_chunks(stream, None, bytes, last).await
}

async fn send_chunks(
    stream: &mut SendStream<Bytes>,
    mut account: Option<&mut Account>,
    mut bytes: Bytes,
    last: bool,
) -> Result<(), h2::Error> {
    while !bytes.is_empty() {
        stream.reserve_capacity(bytes.len());
        let granted = capacity(stream).await?;
        let chunk = bytes.split_to(granted.min(bytes.len()));
        let end = last && bytes.is_empty();
        queue(stream, account.as_deref_mut(), chunk, end).await?;
        if end {
            return Ok(());
        }
    }
    if last {
        stream.send_data(Bytes::new(), true)?;
    }
    Ok(())
}

/// Queues bytes for which there is capacity, as soon as they are charged.
async fn queue(
    stream: &mut SendStream<Bytes>,
    account: Option<&mut Account>,
    bytes: Bytes,
    end: bool,
) -> Result<(), h2::Error> {
    let bytes = match account {
        Some(account) => account.charge(bytes, stream).await?,
        None => bytes,
    };
    stream.send_data(bytes, end)
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

// === impl Outbound ===

impl Outbound {
    /// A stream whose queued bytes are charged to this share.
    pub fn charged(stream: SendStream<Bytes>, share: Share) -> Self {
        Self { stream, account: Some(Account { share, free: FREE }) }
    }

    pub(crate) fn stream(&mut self) -> &mut SendStream<Bytes> {
        &mut self.stream
    }

    /// The same as [`send_bytes`].
    async fn send(&mut self, bytes: Bytes, last: bool) -> Result<(), h2::Error> {
        send_chunks(&mut self.stream, self.account.as_mut(), bytes, last).await
    }

    /// Queues bytes for which there is capacity, as soon as they are charged.
    pub(crate) async fn queue(&mut self, bytes: Bytes, end: bool) -> Result<(), h2::Error> {
        queue(&mut self.stream, self.account.as_mut(), bytes, end).await
    }
}

impl From<SendStream<Bytes>> for Outbound {
    /// A stream whose bytes are not charged.
    fn from(stream: SendStream<Bytes>) -> Self {
        Self { stream, account: None }
    }
}

// === impl Account ===

impl Account {
    /// Charges bytes as soon as the share has room for them. The charge ends when `h2` drops the bytes, which it does when it
    /// has written them to the connection.
    async fn charge(&mut self, bytes: Bytes, stream: &mut SendStream<Bytes>) -> Result<Bytes, h2::Error> {
        let cost = bytes.len() + CHUNK_OVERHEAD;
        if let Some(free) = self.free.checked_sub(cost) {
            self.free = free;
            return Ok(bytes);
        }
        self.free = 0;
        let reservation = match self.share.reserve_in_turn(cost) {
            Some(reservation) => reservation,
            None => wait(&self.share, cost, stream).await?,
        };
        Ok(reservation.attach(bytes))
    }
}

/// Waits for room. Fails if the peer resets the stream before.
async fn wait(share: &Share, cost: usize, stream: &mut SendStream<Bytes>) -> Result<Reservation, h2::Error> {
    let mut room = pin!(share.wait(cost));
    poll_fn(|cx| {
        if let Poll::Ready(reservation) = room.as_mut().poll(cx) {
            return Poll::Ready(Ok(reservation));
        }
        let reset = ready!(stream.poll_reset(cx));
        Poll::Ready(Err(reset.map_or_else(|err| err, h2::Error::from)))
    })
    .await
}

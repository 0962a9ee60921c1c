//! Copies bytes between a socket and a stream in both directions. Each direction ends separately: the half-close of TCP is
//! END_STREAM (RFC 9113 section 8.5).

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use h2::Reason;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use crate::inbound::{Inbound, InboundError};
use crate::outbound::{Outbound, capacity};

/// The maximum length of one read from the socket, in bytes: four TLS records.
const CHUNK: usize = 64 * 1024;

/// A shorter read is copied out of the buffer, in bytes.
const SHORT: usize = CHUNK / 4;

/// The time limit for the socket to accept the bytes that arrived before a reset.
const LAST_BYTES_TIMEOUT: Duration = Duration::from_secs(5);

/// The time limit for one direction of a session after the other one has ended.
const SESSION_END_TIMEOUT: Duration = Duration::from_secs(5);

/// The numbers of bytes that a pipe has copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// From the socket into the tunnel.
    pub into_tunnel: u64,
    /// From the tunnel to the socket.
    pub from_tunnel: u64,
}

/// Why a pipe broke. The bytes that the socket had sent before are still delivered. A stream that broke is reset.
#[derive(Debug, thiserror::Error)]
pub enum PipeError {
    /// The socket failed.
    #[error("the connection broke")]
    Socket(#[source] io::Error),
    /// The stream failed while receiving.
    #[error("the tunnel's stream broke")]
    Inbound(#[source] InboundError),
    /// The stream failed while sending.
    #[error("the tunnel's stream broke")]
    Outbound(#[source] h2::Error),
}

/// What the end of one direction means for the other one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ends {
    /// Nothing.
    Each,
    /// It ends soon.
    Both,
}

/// Copies until both directions have ended, or one has failed.
///
/// If the socket accepts no more bytes, its own bytes are still copied to their end: an API server closes the connection
/// of an `exec` after its last bytes, while the client may still send its closing frames.
pub async fn pipe<S>(
    socket: S,
    inbound: Inbound,
    outbound: impl Into<Outbound>,
    traffic: &mut Traffic,
) -> Result<(), PipeError>
where
    S: AsyncRead + AsyncWrite,
{
    copy(socket, inbound, outbound.into(), traffic, Ends::Each).await
}

/// The same for a connection that has switched protocols. The other direction ends at the latest 5 s after the first one:
/// otherwise a session whose pod has exited would last until its client disconnects. kube-apiserver ends both as soon as one has
/// ended (`ServeHTTP` in apimachinery's `pkg/util/proxy/upgradeaware.go`).
pub async fn pipe_session<S>(
    socket: S,
    inbound: Inbound,
    outbound: impl Into<Outbound>,
    traffic: &mut Traffic,
) -> Result<(), PipeError>
where
    S: AsyncRead + AsyncWrite,
{
    copy(socket, inbound, outbound.into(), traffic, Ends::Both).await
}

async fn copy<S>(
    socket: S,
    mut inbound: Inbound,
    mut outbound: Outbound,
    traffic: &mut Traffic,
    ends: Ends,
) -> Result<(), PipeError>
where
    S: AsyncRead + AsyncWrite,
{
    let (mut reader, mut writer) = tokio::io::split(socket);
    let Traffic { into_tunnel, from_tunnel } = traffic;
    let (has_sent_all, is_write_closed) = (AtomicBool::new(false), AtomicBool::new(false));
    let result = {
        let mut sending = pin!(send(&mut reader, &mut outbound, into_tunnel));
        let mut receiving = pin!(async {
            match receive(&mut inbound, &mut writer, from_tunnel).await {
                Err(PipeError::Socket(_)) if !has_sent_all.load(Ordering::Relaxed) => {
                    is_write_closed.store(true, Ordering::Relaxed);
                    ends.after_the_other(discard(&mut inbound)).await
                }
                received => received,
            }
        });
        tokio::select! {
            sent = &mut sending => match sent {
                Ok(()) if is_write_closed.load(Ordering::Relaxed) => Ok(()),
                Ok(()) => {
                    has_sent_all.store(true, Ordering::Relaxed);
                    ends.after_the_other(receiving).await
                }
                // The other side has reset the stream. The socket still gets the bytes that arrived before.
                Err(PipeError::Outbound(error)) => {
                    has_sent_all.store(true, Ordering::Relaxed);
                    let _received = timeout(LAST_BYTES_TIMEOUT, receiving).await;
                    Err(PipeError::Outbound(error))
                }
                failed => failed,
            },
            received = &mut receiving => match received {
                Ok(()) => ends.after_the_other(sending).await,
                failed => failed,
            },
        }
    };
    let result = match result {
        // The other side of a session has sent everything and reads no more: it may be the first to end this direction.
        Err(PipeError::Outbound(error)) if ends == Ends::Both && error.reason() == Some(Reason::NO_ERROR) => Ok(()),
        result => result,
    };
    match &result {
        // The last bytes of the socket may still be in the send queue, and a reset would discard them. So the stream ends
        // normally. The protocol inside shows whether it is complete. This does nothing if the stream has ended.
        Ok(()) | Err(PipeError::Socket(_)) => drop(outbound.stream().send_data(Bytes::new(), true)),
        Err(PipeError::Inbound(_) | PipeError::Outbound(_)) => outbound.stream().send_reset(Reason::CANCEL),
    }
    result
}

async fn send<R>(reader: &mut R, outbound: &mut Outbound, count: &mut u64) -> Result<(), PipeError>
where
    R: AsyncRead + Unpin,
{
    let mut buffer = BytesMut::new();
    loop {
        // Capacity first: bytes that cannot be sent stay in the socket, so that TCP slows down the sender.
        let stream = outbound.stream();
        stream.reserve_capacity(CHUNK);
        let granted = capacity(stream).await.map_err(PipeError::Outbound)?.min(CHUNK);
        buffer.reserve(granted);
        let mut window = (&mut *reader).take(granted as u64);
        let read = tokio::select! {
            read = window.read_buf(&mut buffer) => read.map_err(PipeError::Socket)?,
            reset = poll_fn(|cx| stream.poll_reset(cx)) => {
                let err = reset.map_or_else(|err| err, h2::Error::from);
                return Err(PipeError::Outbound(err));
            }
        };
        if read == 0 {
            return stream.send_data(Bytes::new(), true).map_err(PipeError::Outbound);
        }
        *count += read as u64;
        // A short read must not keep the whole buffer in the queue.
        let chunk = if read < SHORT { Bytes::copy_from_slice(&buffer) } else { buffer.split().freeze() };
        buffer.clear();
        outbound.queue(chunk, false).await.map_err(PipeError::Outbound)?;
    }
}

async fn receive<W>(inbound: &mut Inbound, writer: &mut W, count: &mut u64) -> Result<(), PipeError>
where
    W: AsyncWrite + Unpin,
{
    while let Some(chunk) = poll_fn(|cx| inbound.poll_chunk(cx)).await {
        let chunk = match chunk {
            // Not an error: the other side has sent everything, and reads no more (RFC 9113 section 8.1).
            Err(InboundError::Stream(error)) if error.reason() == Some(Reason::NO_ERROR) => break,
            chunk => chunk.map_err(PipeError::Inbound)?,
        };
        writer.write_all(&chunk).await.map_err(PipeError::Socket)?;
        // A TLS writer buffers, and a keystroke must not wait for the next one.
        writer.flush().await.map_err(PipeError::Socket)?;
        *count += chunk.len() as u64;
    }
    writer.shutdown().await.map_err(PipeError::Socket)
}

/// Reads and drops the rest of a stream, so that it does not use up the memory budget of the tunnel.
async fn discard(inbound: &mut Inbound) -> Result<(), PipeError> {
    while let Some(chunk) = poll_fn(|cx| inbound.poll_chunk(cx)).await {
        chunk.map_err(PipeError::Inbound)?;
    }
    Ok(())
}

// === impl Ends ===

impl Ends {
    /// Runs a direction after the other one has ended.
    async fn after_the_other(self, direction: impl Future<Output = Result<(), PipeError>>) -> Result<(), PipeError> {
        match self {
            Self::Each => direction.await,
            Self::Both => timeout(SESSION_END_TIMEOUT, direction).await.unwrap_or(Ok(())),
        }
    }
}

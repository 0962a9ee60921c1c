//! The body of a response: the agent's, or that of a refusal.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use protocol::Fault;
use tokio_util::sync::{CancellationToken, DropGuard, WaitForCancellationFutureOwned};
use tunnel::encoded::DecodedError;
use tunnel::inbound::InboundError;

use super::received::{Received, ReceivedError};
use crate::limits::StreamPermit;
use crate::tunnel::Lease;

/// A body towards the client.
#[derive(Debug)]
pub(super) enum ResponseBody {
    /// A refusal, in one piece.
    Whole(Option<Bytes>),
    /// The agent's.
    Tunnel { received: Received, _guard: ResponseGuard, end: ClusterEnd },
}

/// Held until a response is sent and its request has ended.
#[derive(Debug)]
pub(super) struct ResponseGuard {
    /// Counts the stream on the tunnel, if there is one.
    pub(super) _lease: Option<Lease>,
    /// Counts the request in the limits of clients.
    pub(super) _permit: StreamPermit,
    /// Ends the rest of the request body.
    pub(super) _upload: Option<DropGuard>,
    /// Dropping it cancels the timeout of an unproven client.
    pub(super) _read_timeout: Option<DropGuard>,
}

/// The end of the cluster, which ends the response. Most responses are complete before they wait for the first time, so
/// they need no future.
#[derive(Debug)]
pub(super) enum ClusterEnd {
    /// The body has not waited yet.
    Unpolled(CancellationToken),
    /// The body has waited.
    Polled(Pin<Box<WaitForCancellationFutureOwned>>),
}

/// A response that ended early.
#[derive(Debug, thiserror::Error)]
pub(super) enum BodyError {
    /// The tunnel broke, or the reader was too slow.
    #[error(transparent)]
    Received(#[from] ReceivedError),
    /// The cluster was removed from the configuration.
    #[error("the cluster was removed")]
    ClusterRemoved,
}

impl ResponseBody {
    /// The agent's response, which ends with the cluster.
    pub(super) fn tunnel(received: Received, guard: ResponseGuard, end: CancellationToken) -> Self {
        Self::Tunnel { received, _guard: guard, end: ClusterEnd::Unpolled(end) }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Tunnel { received, end, .. } => match Pin::new(received).poll_frame(cx) {
                Poll::Pending => end.poll(cx).map(|()| Some(Err(BodyError::ClusterRemoved))),
                Poll::Ready(frame) => Poll::Ready(frame.map(|frame| frame.map_err(BodyError::from))),
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_none(),
            Self::Tunnel { received, .. } => received.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Self::Tunnel { received, .. } => received.size_hint(),
        }
    }
}

// === impl BodyError ===

impl BodyError {
    /// Whose fault it is.
    pub(super) fn fault(&self) -> Fault {
        match self {
            // The client did not read.
            Self::Received(
                ReceivedError::Agent(DecodedError::Body(InboundError::Evicted))
                | ReceivedError::Store(DecodedError::Body(_)),
            ) => Fault::Client,
            Self::Received(_) => Fault::Tunnel,
            Self::ClusterRemoved => Fault::Atoll,
        }
    }
}

// === impl ClusterEnd ===

impl ClusterEnd {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Self::Unpolled(end) = self {
            *self = Self::Polled(Box::pin(end.clone().cancelled_owned()));
        }
        match self {
            Self::Polled(end) => end.as_mut().poll(cx),
            Self::Unpolled(_) => unreachable!("replaced above"),
        }
    }
}

//! The body of a response: the bytes of the tunnel, or our own refusal.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use protocol::Fault;
use tokio_util::sync::{CancellationToken, DropGuard, WaitForCancellationFutureOwned};
use tunnel::Inbound;
use tunnel::inbound::InboundError;

use crate::limits::StreamPlace;
use crate::tunnel::Lease;

/// A body towards the client.
#[derive(Debug)]
pub(super) enum ResponseBody {
    /// Our own, in one piece.
    Whole(Option<Bytes>),
    /// The agent's.
    Tunnel { inbound: Inbound, _held: Held, end: End },
}

/// The resources that a response holds until it is sent and its request has ended.
#[derive(Debug)]
pub(super) struct Held {
    /// The stream's place on the tunnel.
    pub(super) _lease: Lease,
    /// The request's place in the limits of clients.
    pub(super) _place: StreamPlace,
    /// Ends the rest of the request body.
    pub(super) _upload: Option<DropGuard>,
    /// Dropping it cancels the timeout of an unproven client.
    pub(super) _watched: Option<DropGuard>,
}

/// The end of the cluster, for a response that lasts.
#[derive(Debug)]
pub(super) enum End {
    /// Not needed while bytes arrive without waiting.
    Flowing(CancellationToken),
    /// The body has waited once.
    Awaited(Pin<Box<WaitForCancellationFutureOwned>>),
}

/// A response that ended early.
#[derive(Debug, thiserror::Error)]
pub(super) enum BodyError {
    /// The tunnel broke, or the reader was too slow.
    #[error(transparent)]
    Inbound(#[from] InboundError),
    /// The cluster was taken out of the configuration.
    #[error("the cluster was removed")]
    Gone,
}

impl ResponseBody {
    /// The agent's response, which ends with the cluster.
    pub(super) fn tunnel(inbound: Inbound, held: Held, end: CancellationToken) -> Self {
        Self::Tunnel { inbound, _held: held, end: End::Flowing(end) }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Tunnel { inbound, end, .. } => match Pin::new(inbound).poll_frame(cx) {
                Poll::Pending => end.poll(cx).map(|()| Some(Err(BodyError::Gone))),
                Poll::Ready(frame) => Poll::Ready(frame.map(|frame| frame.map_err(BodyError::from))),
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_none(),
            Self::Tunnel { inbound, .. } => inbound.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Self::Tunnel { inbound, .. } => inbound.size_hint(),
        }
    }
}

// === impl BodyError ===

impl BodyError {
    /// Whose fault it is.
    pub(super) fn fault(&self) -> Fault {
        match self {
            Self::Inbound(InboundError::Stream(_)) => Fault::Tunnel,
            // It did not read.
            Self::Inbound(InboundError::Evicted) => Fault::Client,
            Self::Gone => Fault::Atoll,
        }
    }
}

// === impl End ===

impl End {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Self::Flowing(end) = self {
            *self = Self::Awaited(Box::pin(end.clone().cancelled_owned()));
        }
        match self {
            Self::Awaited(end) => end.as_mut().poll(cx),
            Self::Flowing(_) => unreachable!("exchanged above"),
        }
    }
}

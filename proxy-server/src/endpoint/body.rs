//! The body of an answer: the tunnel's bytes, or a refusal of ours.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tunnel::Inbound;
use tunnel::inbound::InboundError;

use crate::tunnel::Lease;

/// A body towards the client.
#[derive(Debug)]
pub(super) enum ResponseBody {
    /// Ours, whole.
    Whole(Option<Bytes>),
    /// The agent's. The lease counts the stream until the last byte is gone.
    Tunnel { inbound: Inbound, _lease: Lease },
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = InboundError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, InboundError>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Tunnel { inbound, .. } => Pin::new(inbound).poll_frame(cx),
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

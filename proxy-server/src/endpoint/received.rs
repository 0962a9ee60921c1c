//! The body of the agent's response, decoded.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;
use protocol::blocks::Histories;
use tunnel::Inbound;
use tunnel::encoded::{Decoded, DecodedError};
use tunnel::inbound::InboundError;

use super::held::{Arriving, Document, Keeping};
use crate::links::Link;

/// Why the body ended early.
pub(super) type ReceivedError = DecodedError<InboundError>;

/// The body of the agent's response.
#[derive(Debug)]
pub(super) enum Received {
    /// As it arrives.
    Identity(Inbound),
    /// Decoded from blocks.
    Blocks(Box<Keeping<Decoded<Inbound>>>, Arc<Link>),
    /// A document that this process has.
    Held(Box<Decoded<Full<Bytes>>>),
}

// === impl Received ===

impl Received {
    /// A body that arrives as it is. `length` is its length, if it is known.
    pub(super) fn identity(inbound: Inbound, length: Option<u64>) -> Self {
        Self::Identity(inbound.with_length(length))
    }

    /// A body that arrives as blocks. `length` is that of the decoded body, if it is known.
    pub(super) fn blocks(
        inbound: Inbound,
        (histories, link): (&Histories, &Arc<Link>),
        length: Option<u64>,
        arriving: Option<Arriving>,
    ) -> Self {
        let body = Decoded::new(inbound, histories, length);
        Self::Blocks(Box::new(Keeping::new(body, arriving)), Arc::clone(link))
    }

    /// A document that this process has.
    pub(super) fn held(document: Document) -> Self {
        Self::Held(Box::new(document.body()))
    }
}

impl Body for Received {
    type Data = Bytes;
    type Error = ReceivedError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, ReceivedError>>> {
        match self.get_mut() {
            Self::Identity(inbound) => {
                Pin::new(inbound).poll_frame(cx).map(|frame| frame.map(|frame| frame.map_err(ReceivedError::Body)))
            }
            Self::Blocks(body, link) => {
                let frame = ready!(Pin::new(&mut **body).poll_frame(cx));
                if let Some(Ok(frame)) = &frame
                    && let Some(decoded) = frame.data_ref()
                {
                    link.decompressed(body.get_mut().take_encoded(), decoded.len() as u64);
                }
                Poll::Ready(frame)
            }
            Self::Held(body) => Pin::new(&mut **body).poll_frame(cx).map_err(|error| match error {
                DecodedError::Body(never) => match never {},
                DecodedError::Decode(error) => ReceivedError::Decode(error),
            }),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Identity(inbound) => inbound.is_end_stream(),
            Self::Blocks(body, _) => body.is_end_stream(),
            Self::Held(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Identity(inbound) => inbound.size_hint(),
            Self::Blocks(body, _) => body.size_hint(),
            Self::Held(body) => body.size_hint(),
        }
    }
}

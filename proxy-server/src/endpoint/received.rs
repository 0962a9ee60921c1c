//! The body of the agent's response, decoded.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use protocol::blocks::Histories;
use tunnel::Inbound;
use tunnel::encoded::DecodedError;
use tunnel::inbound::InboundError;

use super::documents::{Arriving, Document, Removed, StoredBody, Storing};
use crate::links::Link;

/// Why the body ended early.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReceivedError {
    /// The stream of the agent has failed, or the agent has violated the format.
    #[error(transparent)]
    Agent(#[from] DecodedError<InboundError>),
    /// The store has failed.
    #[error(transparent)]
    Store(#[from] DecodedError<Removed>),
}

/// The body of the agent's response.
#[derive(Debug)]
pub(super) enum Received {
    /// As it arrives.
    Identity(Inbound),
    /// Decoded from blocks.
    Blocks(Box<Storing<Inbound>>, Arc<Link>),
    /// A document that this process has stored.
    Stored(Box<StoredBody>),
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
        Self::Blocks(Box::new(Storing::new(inbound, histories, length, arriving)), Arc::clone(link))
    }

    /// A document that this process has stored.
    pub(super) fn stored(document: Document) -> Self {
        Self::Stored(Box::new(document.into_body()))
    }
}

impl Body for Received {
    type Data = Bytes;
    type Error = ReceivedError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, ReceivedError>>> {
        match self.get_mut() {
            Self::Identity(inbound) => Pin::new(inbound)
                .poll_frame(cx)
                .map(|frame| frame.map(|frame| frame.map_err(|error| DecodedError::Body(error).into()))),
            Self::Blocks(body, link) => {
                let frame = ready!(Pin::new(&mut **body).poll_frame(cx));
                if let Some(Ok(frame)) = &frame
                    && let Some(decoded) = frame.data_ref()
                {
                    link.decompressed(body.take_encoded(), decoded.len() as u64);
                }
                Poll::Ready(frame.map(|frame| frame.map_err(ReceivedError::from)))
            }
            Self::Stored(body) => Pin::new(&mut **body).poll_frame(cx).map_err(ReceivedError::from),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Identity(inbound) => inbound.is_end_stream(),
            Self::Blocks(body, _) => body.is_end_stream(),
            Self::Stored(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Identity(inbound) => inbound.size_hint(),
            Self::Blocks(body, _) => body.size_hint(),
            Self::Stored(body) => body.size_hint(),
        }
    }
}

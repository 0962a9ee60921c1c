//! The body of the agent's response, decoded.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use protocol::Encoding;
use tunnel::Inbound;
use tunnel::encoded::{Decoded, DecodedError};
use tunnel::inbound::InboundError;

/// Why the body ended early.
pub(super) type ReceivedError = DecodedError<InboundError>;

/// The body of the agent's response.
#[derive(Debug)]
pub(super) enum Received {
    /// As it arrives.
    Identity(Inbound),
    /// Decoded from blocks.
    Blocks(Box<Blocks>),
}

/// A body that arrives as blocks.
#[derive(Debug)]
pub(super) struct Blocks {
    body: Decoded<Inbound>,
    /// The number of decoded bytes that are missing, if it is known. It is not checked: only the agent has told it.
    missing: Option<u64>,
}

// === impl Received ===

impl Received {
    /// A body with this encoding. `length` is that of the decoded body, if it is known.
    pub(super) fn new(inbound: Inbound, encoding: Encoding, length: Option<u64>) -> Self {
        match encoding {
            Encoding::Identity => Self::Identity(inbound.with_length(length)),
            Encoding::Blocks => Self::Blocks(Box::new(Blocks { body: Decoded::new(inbound), missing: length })),
        }
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
            Self::Blocks(blocks) => {
                let Blocks { body, missing } = &mut **blocks;
                let frame = ready!(Pin::new(body).poll_frame(cx));
                if let (Some(missing), Some(Ok(frame))) = (missing, &frame) {
                    *missing = missing.saturating_sub(frame.data_ref().map_or(0, |bytes| bytes.len() as u64));
                }
                Poll::Ready(frame)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Identity(inbound) => inbound.is_end_stream(),
            Self::Blocks(blocks) => blocks.body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Identity(inbound) => inbound.size_hint(),
            Self::Blocks(blocks) => blocks.missing.map_or_else(SizeHint::default, SizeHint::with_exact),
        }
    }
}

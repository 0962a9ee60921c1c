//! A body that comes from the store.

use std::pin::Pin;
use std::sync::Weak;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use protocol::blocks::Histories;
use tunnel::encoded::Decoded;

/// The number of compressed bytes that are copied at a time.
const PIECE: usize = 16 * 1024;

/// The document was removed from the store while the client read it.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the stored document was removed, because documents that are in use needed its space")]
pub(crate) struct Removed;

/// The compressed bytes of a stored document. If the store removes the document, the body breaks: otherwise, clients that
/// do not read could hold many documents.
#[derive(Debug)]
pub(crate) struct Pieces {
    blocks: Weak<Box<[u8]>>,
    sent: usize,
}

/// A stored document as the body of a response.
pub(crate) type StoredBody = Decoded<Pieces>;

pub(super) fn body(blocks: Weak<Box<[u8]>>, length: u64) -> StoredBody {
    Decoded::new(Pieces { blocks, sent: 0 }, &Histories::unlimited(), Some(length))
}

// === impl Pieces ===

impl Body for Pieces {
    type Data = Bytes;
    type Error = Removed;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Removed>>> {
        let Some(blocks) = self.blocks.upgrade() else { return Poll::Ready(Some(Err(Removed))) };
        let rest = blocks.get(self.sent..).unwrap_or_default();
        let piece = rest.get(..PIECE).unwrap_or(rest);
        if piece.is_empty() {
            return Poll::Ready(None);
        }
        self.sent += piece.len();
        Poll::Ready(Some(Ok(Frame::data(Bytes::copy_from_slice(piece)))))
    }

    fn is_end_stream(&self) -> bool {
        self.blocks.upgrade().is_some_and(|blocks| blocks.len() == self.sent)
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

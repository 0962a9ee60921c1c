//! Bodies that cross a tunnel as [blocks](protocol::blocks).

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use protocol::blocks::{DecodeError, Decoder, Encoder, Histories};

/// After this many bytes, a body lets other streams of its thread continue. Their compression takes a fraction of a millisecond.
const TURN: usize = 64 * 1024;

/// A block counts as at least this many bytes: each one needs the history.
const LEAST: usize = 8 * 1024;

/// A body that leaves as compressed blocks.
#[derive(Debug)]
pub struct Encoded<B> {
    body: B,
    encoder: Encoder,
    /// The number of bytes since other streams could continue.
    turn: usize,
}

/// A body that arrives as blocks.
#[derive(Debug)]
pub struct Decoded<B> {
    body: B,
    decoder: Decoder,
    /// The number of decoded bytes that are missing, if it is known.
    missing: Option<u64>,
    /// The number of encoded bytes since they were last taken.
    encoded: u64,
    /// The number of bytes since other streams could continue.
    turn: usize,
    is_failed: bool,
}

/// Why a body cannot be read to its end.
#[derive(Debug, thiserror::Error)]
pub enum DecodedError<E> {
    /// The body failed.
    #[error(transparent)]
    Body(E),
    /// The peer has violated the format.
    #[error("the peer has sent an invalid body")]
    Decode(#[from] DecodeError),
}

type Decoding<E> = Result<Option<Frame<Bytes>>, DecodedError<E>>;

// === impl Encoded ===

impl<B> Encoded<B> {
    /// Encodes a body.
    pub fn new(body: B, histories: &Histories) -> Self {
        Self { body, encoder: Encoder::new(histories), turn: 0 }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Encoded<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let Self { body, encoder, turn } = self.get_mut();
        if *turn >= TURN {
            *turn = 0;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        loop {
            let before = encoder.remaining();
            if let Some(block) = encoder.encode() {
                *turn += (before - encoder.remaining()).max(LEAST);
                return Poll::Ready(Some(Ok(Frame::data(block))));
            }
            match ready!(Pin::new(&mut *body).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(bytes) => encoder.push(bytes),
                    Err(frame) => return Poll::Ready(Some(Ok(frame))),
                },
                end => return Poll::Ready(end),
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.encoder.remaining() == 0 && self.body.is_end_stream()
    }
}

// === impl Decoded ===

impl<B> Decoded<B> {
    /// Decodes a body. `length` is that of the decoded body, if it is known.
    pub fn new(body: B, histories: &Histories, length: Option<u64>) -> Self {
        Self { body, decoder: Decoder::new(histories), missing: length, encoded: 0, turn: 0, is_failed: false }
    }

    /// The number of encoded bytes that have arrived since the last call.
    pub fn take_encoded(&mut self) -> u64 {
        std::mem::take(&mut self.encoded)
    }

    /// Whether all bytes have arrived, although the stream may not have ended yet. `false` if the length is unknown.
    pub fn is_complete(&self) -> bool {
        self.missing == Some(0) && self.check_end().is_ok()
    }

    /// Counts decoded bytes.
    fn count(&mut self, bytes: &Bytes) -> Result<(), DecodeError> {
        if let Some(missing) = &mut self.missing {
            *missing = missing.checked_sub(bytes.len() as u64).ok_or(DecodeError::Length)?;
        }
        Ok(())
    }

    /// Whether the body may end here.
    fn check_end(&self) -> Result<(), DecodeError> {
        match self.missing {
            _ if !self.decoder.is_between_blocks() => Err(DecodeError::Incomplete),
            None | Some(0) => Ok(()),
            Some(_) => Err(DecodeError::Length),
        }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Decoded<B> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Decoding<B::Error>> {
        if self.turn >= TURN {
            self.turn = 0;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        loop {
            if let Some(bytes) = self.decoder.decode()? {
                self.turn += bytes.len().max(LEAST);
                self.count(&bytes)?;
                return Poll::Ready(Ok(Some(Frame::data(bytes))));
            }
            let Some(frame) = ready!(Pin::new(&mut self.body).poll_frame(cx)) else {
                self.check_end()?;
                return Poll::Ready(Ok(None));
            };
            match frame.map_err(DecodedError::Body)?.into_data() {
                Ok(bytes) => {
                    self.encoded += bytes.len() as u64;
                    self.decoder.push(bytes);
                }
                Err(trailers) => {
                    self.check_end()?;
                    return Poll::Ready(Ok(Some(trailers)));
                }
            }
        }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Decoded<B> {
    type Data = Bytes;
    type Error = DecodedError<B::Error>;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = self.get_mut();
        if this.is_failed {
            return Poll::Ready(None);
        }
        let frame = ready!(this.poll(cx));
        this.is_failed = frame.is_err();
        Poll::Ready(frame.transpose())
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream() && self.check_end().is_ok()
    }

    fn size_hint(&self) -> SizeHint {
        self.missing.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

#[cfg(test)]
mod tests;

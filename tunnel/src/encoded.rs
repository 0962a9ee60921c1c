//! Bodies that cross a tunnel as [blocks](protocol::blocks).

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use protocol::blocks::{DecodeError, Decoder, Encoder};

use crate::Link;

/// A body that leaves as blocks, which are compressed while the link requires it.
#[derive(Debug)]
pub struct Encoded<B> {
    body: B,
    encoder: Encoder,
    link: Arc<Link>,
}

/// A body that arrives as blocks.
#[derive(Debug)]
pub struct Decoded<B> {
    body: B,
    decoder: Decoder,
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

// === impl Encoded ===

impl<B> Encoded<B> {
    /// Encodes a body that crosses this link.
    pub fn new(body: B, link: Arc<Link>) -> Self {
        Self { body, encoder: Encoder::default(), link }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Encoded<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let Self { body, encoder, link } = self.get_mut();
        loop {
            if let Some(block) = encoder.encode(link.compresses()) {
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
        self.encoder.is_empty() && self.body.is_end_stream()
    }
}

// === impl Decoded ===

impl<B> Decoded<B> {
    /// Decodes a body.
    pub fn new(body: B) -> Self {
        Self { body, decoder: Decoder::default() }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Decoded<B> {
    type Data = Bytes;
    type Error = DecodedError<B::Error>;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let Self { body, decoder } = self.get_mut();
        loop {
            if let Some(bytes) = decoder.decode()? {
                return Poll::Ready(Some(Ok(Frame::data(bytes))));
            }
            match ready!(Pin::new(&mut *body).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(bytes) => decoder.push(bytes),
                    Err(frame) => return Poll::Ready(Some(Ok(frame))),
                },
                Some(Err(error)) => return Poll::Ready(Some(Err(DecodedError::Body(error)))),
                None if decoder.is_between_blocks() => return Poll::Ready(None),
                None => return Poll::Ready(Some(Err(DecodeError::Incomplete.into()))),
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.decoder.is_between_blocks() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http_body_util::{BodyExt, Collected, Full, StreamBody};
    use tokio_test::block_on;

    use super::*;
    use crate::Compression;

    struct Chunks(std::collections::VecDeque<Result<Frame<Bytes>, Infallible>>);

    impl futures_core::Stream for Chunks {
        type Item = Result<Frame<Bytes>, Infallible>;

        fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
            Poll::Ready(self.0.pop_front())
        }
    }

    /// A body fails if it ends within a block.
    #[test]
    fn a_body_that_is_cut_is_no_complete_body() {
        let chunks = ["first\n", "second\n", "third\n"];
        let frames = chunks.map(|chunk| Ok(Frame::data(Bytes::from(chunk))));
        let link = Arc::new(Link::new(Compression::Always));
        let mut sent = Encoded::new(StreamBody::new(Chunks(frames.into())), link);
        let mut blocks = Vec::new();
        while let Some(frame) = block_on(sent.frame()) {
            blocks.push(frame.unwrap().into_data().unwrap());
        }
        let received = |bytes: &[u8]| {
            let body = Decoded::new(Full::new(Bytes::copy_from_slice(bytes)));
            block_on(body.collect()).map(Collected::to_bytes)
        };
        let (bytes, mut ends) = (blocks.concat(), vec![0]);
        for block in &blocks {
            ends.push(ends[ends.len() - 1] + block.len());
        }
        assert_eq!(received(&bytes).unwrap(), chunks.concat());
        for end in 0..=bytes.len() {
            assert_eq!(received(&bytes[..end]).is_ok(), ends.contains(&end), "{end} of {ends:?}");
        }
    }
}

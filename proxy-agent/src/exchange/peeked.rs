//! Reads a body before its head is sent.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use protocol::digest::{Digest, Hasher};
use tunnel::fair::Reservation;

/// What a frame needs in addition to its bytes.
const FRAME: usize = 128;

/// A body, perhaps with frames that have been read and not sent yet.
pub(super) struct Peeked<B: Body> {
    read: VecDeque<Result<Frame<B::Data>, B::Error>>,
    body: B,
    /// For the frames that have been read.
    charged: Option<Reservation>,
}

// === impl Peeked ===

impl<B: Body<Data = Bytes> + Unpin> Peeked<B> {
    pub(super) fn new(body: B) -> Self {
        Self { read: VecDeque::new(), body, charged: None }
    }

    /// The digest of the whole body. `None` if it is longer than `max`, if it breaks, or if there is no memory for it. Reads the
    /// body to its end, and charges the bytes until the body is dropped.
    pub(super) async fn digest(&mut self, max: usize, mut charged: Reservation) -> Option<Digest> {
        if self.body.size_hint().lower() > max as u64 {
            return None;
        }
        let (mut hasher, mut length) = (Hasher::default(), 0);
        let digest = loop {
            let Some(frame) = poll_fn(|cx| Pin::new(&mut self.body).poll_frame(cx)).await else {
                break Some(hasher.finish());
            };
            let bytes = frame.as_ref().ok().and_then(Frame::data_ref).cloned();
            self.read.push_back(frame);
            let Some(bytes) = bytes else { break None };
            length += bytes.len();
            if length > max || !charged.grow(bytes.len() + FRAME) {
                break None;
            }
            hasher.update(&bytes);
        };
        self.charged = Some(charged);
        digest
    }

    /// Whether the body, or a part of it, is in memory.
    pub(super) fn is_read(&self) -> bool {
        self.charged.is_some()
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Peeked<B>
where
    B::Error: Unpin,
{
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.get_mut();
        match this.read.pop_front() {
            Some(frame) => Poll::Ready(Some(frame)),
            None => Pin::new(&mut this.body).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.read.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        if self.read.is_empty() { self.body.size_hint() } else { SizeHint::default() }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use http_body_util::{BodyExt as _, Full};

    use tunnel::fair::FairBudget;

    use super::*;

    fn memory(bytes: usize) -> Reservation {
        FairBudget::new(bytes, bytes).share().nothing()
    }

    /// A body of frames with one byte.
    struct Single(usize);

    impl Body for Single {
        type Data = Bytes;
        type Error = io::Error;

        fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
            let left = self.0.checked_sub(1);
            self.0 = left.unwrap_or_default();
            Poll::Ready(left.map(|_| Ok(Frame::data(Bytes::from_static(b"x")))))
        }
    }

    /// A body that breaks early.
    struct Broken(Option<&'static str>);

    impl Body for Broken {
        type Data = Bytes;
        type Error = io::Error;

        fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
            let frame = self.0.take().map(|text| Frame::data(Bytes::from(text)));
            Poll::Ready(Some(frame.ok_or_else(|| io::Error::other("broken"))))
        }
    }

    #[tokio::test]
    async fn a_body_has_a_digest_and_is_sent() {
        let mut body = Peeked::new(Full::new(Bytes::from_static(b"text")));
        assert_eq!(body.digest(4, memory(1_000)).await, Some(Digest::of(b"text")));
        assert!(!body.is_end_stream());
        assert_eq!(body.collect().await.unwrap().to_bytes(), "text");

        let mut long = Peeked::new(Full::new(Bytes::from_static(b"text")));
        assert_eq!(long.digest(3, memory(1_000)).await, None);
        assert_eq!(long.collect().await.unwrap().to_bytes(), "text");
    }

    #[tokio::test]
    async fn short_frames_are_charged() {
        let mut body = Peeked::new(Single(100));
        assert_eq!(body.digest(1_000, memory(99 * (FRAME + 1))).await, None);
        assert_eq!(body.collect().await.unwrap().to_bytes().len(), 100);
    }

    #[tokio::test]
    async fn a_body_that_breaks_is_sent_with_its_error() {
        let mut body = Peeked::new(Broken(Some("te")));
        assert_eq!(body.digest(10, memory(1_000)).await, None);
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "te");
        assert!(body.frame().await.unwrap().is_err());
    }
}

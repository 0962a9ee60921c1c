//! A body that is stored while it arrives.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use protocol::blocks::Histories;
use protocol::digest::{Hasher, MAX_HELD};
use tunnel::encoded::Decoded;

use super::shared::Arriving;

/// What arrives is stored as long as this is `Some`.
type Shared = Arc<Mutex<Option<Arriving>>>;

/// A compressed body, decoded. It may be stored.
#[derive(Debug)]
pub(crate) struct Storing<B> {
    body: Decoded<Tee<B>>,
    hashing: Option<Box<Hashing>>,
}

/// The decoded part of a document that is stored.
#[derive(Debug)]
struct Hashing {
    arriving: Shared,
    hasher: Hasher,
    length: usize,
}

/// The compressed body.
#[derive(Debug)]
pub(crate) struct Tee<B> {
    body: B,
    arriving: Option<Shared>,
}

// === impl Storing ===

impl<B> Storing<B> {
    /// `length` is that of the decoded body, if it is known.
    pub(crate) fn new(body: B, histories: &Histories, length: Option<u64>, arriving: Option<Arriving>) -> Self {
        let arriving = arriving.map(|arriving| Arc::new(Mutex::new(Some(arriving))));
        let hashing =
            arriving.clone().map(|arriving| Box::new(Hashing { arriving, hasher: Hasher::default(), length: 0 }));
        Self { body: Decoded::new(Tee { body, arriving }, histories, length), hashing }
    }

    /// The number of compressed bytes that have arrived since the last call.
    pub(crate) fn take_encoded(&mut self) -> u64 {
        self.body.take_encoded()
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Storing<B> {
    type Data = Bytes;
    type Error = <Decoded<Tee<B>> as Body>::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let Self { body, hashing } = self.get_mut();
        let polled = ready!(Pin::new(&mut *body).poll_frame(cx));
        let is_stored = match &polled {
            Some(Ok(frame)) => {
                hashing.as_mut().is_some_and(|hashing| hashing.add(frame.data_ref().map_or(&[], |bytes| bytes)))
            }
            Some(Err(_)) => false,
            None => true,
        };
        if !is_stored {
            *hashing = None;
        } else if (polled.is_none() || body.is_end_stream() || body.is_complete())
            && let Some(mut hashing) = hashing.take()
        {
            // Whoever reads the body may not ask for its end: `hyper` stops at the length, and the end may arrive later.
            hashing.end();
        }
        Poll::Ready(polled)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

// === impl Hashing ===

impl Hashing {
    /// Returns whether the document is not too long.
    fn add(&mut self, bytes: &[u8]) -> bool {
        self.length += bytes.len();
        if self.length > MAX_HELD {
            return false;
        }
        self.hasher.update(bytes);
        true
    }

    fn end(&mut self) {
        let arriving = self.arriving.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(arriving) = arriving {
            arriving.end(std::mem::take(&mut self.hasher).finish(), self.length as u64);
        }
    }
}

impl Drop for Hashing {
    fn drop(&mut self) {
        // What arrives from now on is not stored.
        drop(self.arriving.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

// === impl Tee ===

impl<B: Body<Data = Bytes> + Unpin> Body for Tee<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let Self { body, arriving } = self.get_mut();
        let polled = ready!(Pin::new(body).poll_frame(cx));
        if let (Some(Ok(frame)), Some(shared)) = (&polled, &*arriving)
            && let Some(bytes) = frame.data_ref()
        {
            let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
            if !shared.as_ref().is_some_and(|arriving| arriving.push(bytes)) {
                *shared = None;
            }
        }
        Poll::Ready(polled)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

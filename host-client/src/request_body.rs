//! The body of a request: empty, bytes in memory, or a stream.
//!
//! The form determines whether a request can be sent again. An empty body and bytes can be sent again. A stream can be
//! sent again only if it has not been read from.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;

/// An error of a body, from any source.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The body of a request to the host's API server.
pub struct RequestBody(Kind);

/// The current form of a [`RequestBody`].
pub(super) enum Kind {
    Empty,
    Full(Bytes),
    Stream(UnsyncBoxBody<Bytes, BoxError>),
    /// It was a stream, which has been taken.
    Spent,
}

/// An empty body.
pub fn empty() -> RequestBody {
    RequestBody(Kind::Empty)
}

/// Bytes in memory. All attempts share them without copying.
pub fn full(bytes: impl Into<Bytes>) -> RequestBody {
    let bytes = bytes.into();
    RequestBody(if bytes.is_empty() { Kind::Empty } else { Kind::Full(bytes) })
}

/// A stream of bytes. A body that has already ended is the same as [`empty`].
pub fn stream<B>(body: B) -> RequestBody
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    if body.is_end_stream() {
        return empty();
    }
    RequestBody(Kind::Stream(body.map_err(Into::into).boxed_unsync()))
}

// === impl RequestBody ===

impl RequestBody {
    /// Whether it can be sent again.
    pub(super) fn is_whole(&self) -> bool {
        !matches!(self.0, Kind::Spent)
    }

    pub(super) fn kind(&self) -> &Kind {
        &self.0
    }

    /// A second body with the same content. For a stream, it is empty.
    #[must_use]
    pub fn replay(&self) -> Self {
        Self(match &self.0 {
            Kind::Full(bytes) => Kind::Full(bytes.clone()),
            Kind::Empty | Kind::Stream(_) | Kind::Spent => Kind::Empty,
        })
    }

    /// The bytes in memory. A stream has none.
    pub fn bytes(&self) -> Bytes {
        match &self.0 {
            Kind::Full(bytes) => bytes.clone(),
            Kind::Empty | Kind::Stream(_) | Kind::Spent => Bytes::new(),
        }
    }

    /// The body for one attempt. A stream can be taken only once.
    pub(super) fn take(&mut self) -> Self {
        Self(match &mut self.0 {
            Kind::Empty => Kind::Empty,
            Kind::Full(bytes) => Kind::Full(bytes.clone()),
            taken => std::mem::replace(taken, Kind::Spent),
        })
    }

    /// The stream, if it is one and has not been taken.
    pub(super) fn take_stream(&mut self) -> Option<UnsyncBoxBody<Bytes, BoxError>> {
        match self.take().0 {
            Kind::Stream(body) => Some(body),
            Kind::Empty | Kind::Full(_) | Kind::Spent => None,
        }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut self.0 {
            Kind::Empty | Kind::Spent => Poll::Ready(None),
            Kind::Full(bytes) => {
                let bytes = std::mem::take(bytes);
                self.0 = Kind::Spent;
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            Kind::Stream(body) => Pin::new(body).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Empty | Kind::Spent => true,
            Kind::Full(_) => false,
            Kind::Stream(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Empty | Kind::Spent => SizeHint::with_exact(0),
            Kind::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Kind::Stream(body) => body.size_hint(),
        }
    }
}

impl Default for RequestBody {
    fn default() -> Self {
        empty()
    }
}

impl fmt::Debug for RequestBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The bytes may be a Secret.
        f.write_str(match self.0 {
            Kind::Empty => "Empty",
            Kind::Full(_) => "Full",
            Kind::Stream(_) => "Stream",
            Kind::Spent => "Spent",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_stream_is_consumed_by_an_attempt() {
        for (mut body, whole) in [
            (empty(), true),
            (full("abc"), true),
            (full(""), true),
            (stream(full("abc")), false),
            (stream(empty()), true),
        ] {
            assert!(body.is_whole());
            drop(body.take());
            assert_eq!(body.is_whole(), whole, "{body:?}");
        }
    }
}

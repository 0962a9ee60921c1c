//! The body of a response of the API server.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;
use http_body_util::combinators::BoxBody;
use hyper::body::Incoming;
use tokio_util::sync::DropGuard;
use tunnel::inbound::InboundError;
use tunnel::{Inbound, Owner};

use super::connection::Permit;
use super::counters::Counted;

/// A body that streams. Dropping it before its end resets the stream at once (RST_STREAM CANCEL), which ends a watch at
/// the API server.
pub struct HostBody {
    /// It is dropped first, so that the permit is free when the reset has been sent.
    bytes: Source,
    held: Option<Guards>,
}

/// Why a body ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostBodyError {
    /// The stream was reset or the connection broke.
    #[error("the response of the API server ended early")]
    Broken(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The reader was too slow while memory was short.
    #[error("the reader of the response stalled and the memory for unread bytes was exhausted")]
    Evicted,
}

enum Source {
    Http2(Inbound),
    Http1(Incoming),
    /// It has been read.
    Whole(Full<Bytes>),
    /// It does not come from the API server.
    Produced(BoxBody<Bytes, Infallible>),
}

/// The resources that are released when the body ends or is dropped.
pub(super) struct Guards {
    _counted: Counted,
    /// The permit for a stream of an HTTP/2 connection.
    _permit: Option<Permit>,
    /// Ends an upload that is still running.
    _upload: Option<DropGuard>,
}

// === impl HostBody ===

impl HostBody {
    pub(super) fn http2(bytes: Inbound, held: Guards) -> Self {
        Self::new(Source::Http2(bytes), held)
    }

    pub(super) fn http1(bytes: Incoming, held: Guards) -> Self {
        Self::new(Source::Http1(bytes), held)
    }

    /// A body that has been read.
    pub fn read(bytes: Bytes) -> Self {
        Self { bytes: Source::Whole(Full::new(bytes)), held: None }
    }

    /// A body in place of one of the API server.
    pub fn produced(body: impl Body<Data = Bytes, Error = Infallible> + Send + Sync + 'static) -> Self {
        Self { bytes: Source::Produced(BoxBody::new(body)), held: None }
    }

    /// Sets the owner that is charged for unread bytes.
    pub fn set_owner(&self, owner: Owner) {
        // Unread data of HTTP/1 is in the buffers of the host.
        if let Source::Http2(bytes) = &self.bytes {
            bytes.set_owner(owner);
        }
    }

    fn new(bytes: Source, held: Guards) -> Self {
        let mut body = Self { bytes, held: None };
        if !body.is_end_stream() {
            body.held = Some(held);
        }
        body
    }
}

impl Guards {
    pub(super) fn new(counted: Counted, permit: Option<Permit>, upload: Option<DropGuard>) -> Self {
        Self { _counted: counted, _permit: permit, _upload: upload }
    }
}

impl Body for HostBody {
    type Data = Bytes;
    type Error = HostBodyError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, HostBodyError>>> {
        let polled = match &mut self.bytes {
            Source::Http2(bytes) => Pin::new(bytes).poll_frame(cx).map_err(|error| match error {
                InboundError::Evicted => HostBodyError::Evicted,
                InboundError::Stream(error) => HostBodyError::Broken(error.into()),
            }),
            Source::Http1(bytes) => Pin::new(bytes).poll_frame(cx).map_err(|error| HostBodyError::Broken(error.into())),
            Source::Whole(bytes) => Pin::new(bytes).poll_frame(cx).map_err(|never| match never {}),
            Source::Produced(bytes) => Pin::new(bytes).poll_frame(cx).map_err(|never| match never {}),
        };
        let is_over = match &polled {
            Poll::Ready(Some(Ok(_))) => self.is_end_stream(),
            Poll::Ready(_) => true,
            Poll::Pending => false,
        };
        if is_over {
            // A body may exist after its end, so release its permit for others.
            self.held = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        match &self.bytes {
            Source::Http2(bytes) => bytes.is_end_stream(),
            Source::Http1(bytes) => bytes.is_end_stream(),
            Source::Whole(bytes) => bytes.is_end_stream(),
            Source::Produced(bytes) => bytes.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.bytes {
            Source::Http2(bytes) => bytes.size_hint(),
            Source::Http1(bytes) => bytes.size_hint(),
            Source::Whole(bytes) => bytes.size_hint(),
            Source::Produced(bytes) => bytes.size_hint(),
        }
    }
}

impl fmt::Debug for HostBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostBody").field("ended", &self.held.is_none()).finish_non_exhaustive()
    }
}

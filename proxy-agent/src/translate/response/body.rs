//! The body of the client's response.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use http_body::{Body, Frame, SizeHint};
use rewrite::sink::Coalesce;
use rewrite::view::Beginning;
use tracing::debug;

use super::arrivals::Arrivals;
use super::events::Events;
use super::list::{List, ListError};
use super::namespaces::NamespaceError;
use super::upstream::Upstream;
use super::watch::{Watch, WatchError};
use crate::refusal::Refusal;
use crate::translate::overlaid::Overlaid;
use host_client::{HostBody, HostBodyError, REQUEST_TIMEOUT};

/// The body of the client's response.
pub(crate) enum ShownBody {
    /// In one piece.
    Whole(Option<Bytes>),
    /// In pieces that are all in memory. Each is freed once it is sent.
    Pieces(VecDeque<Bytes>),
    /// As the host sends it.
    Verbatim(HostBody),
    /// Mapped by the engine.
    Stream(Box<Stream>),
}

/// A list or watch that is streamed.
pub(crate) struct Stream<B = Overlaid> {
    upstream: B,
    engine: Engine,
    out: Coalesce,
    ready: VecDeque<Bytes>,
    ended: bool,
}

pub(super) enum Engine {
    List(List),
    Watch(Watch),
}

/// The length of the output buffers of a watch, in bytes. Most events fit in one. An idle watch keeps one, and a
/// cluster may have thousands of watches.
const ROOM_OF_WATCH: usize = 8192;

/// Why a streamed response ended early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TransformError {
    /// The connection to the host failed.
    #[error("the host's response ended early")]
    Host(#[source] HostBodyError),
    /// The agent could not parse the host's bytes, and has not forwarded them.
    #[error("the host's response cannot be mapped")]
    Stream(#[source] rewrite::view::StreamError),
    /// A namespace of a list did not become known.
    #[error(transparent)]
    Namespace(NamespaceError),
}

/// A body that maps what the host sends as it arrives.
pub(super) fn stream(body: Upstream, engine: Engine, headers: &mut HeaderMap) -> Result<ShownBody, Refusal> {
    let upstream = match body {
        Upstream::Stream(upstream) => Overlaid::plain(upstream),
        Upstream::Overlaid(upstream) => upstream,
        Upstream::Whole(_) => return Err(Refusal::Unreadable("a list was read as an object".into())),
    };
    headers.remove(header::CONTENT_LENGTH);
    Ok(ShownBody::Stream(Box::new(Stream::new(upstream, engine))))
}

// === impl ShownBody ===

impl ShownBody {
    /// The host's body, unchanged.
    pub(super) fn verbatim(upstream: Upstream) -> Self {
        match upstream {
            Upstream::Stream(body) => Self::Verbatim(body),
            Upstream::Overlaid(body) => Self::Verbatim(body.into_inner()),
            Upstream::Whole(bytes) => Self::Whole(Some(bytes)),
        }
    }

    pub(super) fn whole(body: Bytes, headers: &mut HeaderMap) -> Self {
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(body.len()));
        Self::Whole(Some(body))
    }

    pub(super) fn in_pieces(pieces: Vec<Bytes>, headers: &mut HeaderMap) -> Self {
        let length: usize = pieces.iter().map(Bytes::len).sum();
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
        Self::Pieces(pieces.into())
    }

    /// The time that the client has to read the body, if it is held in memory.
    pub(crate) fn read_timeout(&self) -> Option<Duration> {
        match self {
            Self::Whole(_) | Self::Pieces(_) => Some(REQUEST_TIMEOUT),
            Self::Verbatim(_) | Self::Stream(_) => None,
        }
    }

    /// No body.
    pub(crate) fn none() -> Self {
        Self::Whole(None)
    }
}

impl Body for ShownBody {
    type Data = Bytes;
    type Error = TransformError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, TransformError>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Pieces(pieces) => Poll::Ready(pieces.pop_front().map(|piece| Ok(Frame::data(piece)))),
            Self::Verbatim(body) => Pin::new(body).poll_frame(cx).map_err(TransformError::Host),
            Self::Stream(stream) => stream.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_none(),
            Self::Pieces(pieces) => pieces.is_empty(),
            Self::Verbatim(body) => body.is_end_stream(),
            Self::Stream(stream) => stream.ended && stream.ready.is_empty(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Self::Pieces(pieces) => SizeHint::with_exact(pieces.iter().map(|piece| piece.len() as u64).sum()),
            Self::Verbatim(body) => body.size_hint(),
            Self::Stream(_) => SizeHint::default(),
        }
    }
}

// === impl Engine ===

impl Engine {
    pub(super) fn watch(events: Events, arrivals: Arrivals, bookmarks: Option<Beginning>) -> Self {
        Self::Watch(Watch::new(events, arrivals, bookmarks))
    }

    /// Collects its output.
    pub(super) fn output(&self) -> Coalesce {
        match self {
            Self::List(_) => Coalesce::new(),
            Self::Watch(_) => Coalesce::with_room(ROOM_OF_WATCH),
        }
    }
}

// === impl Stream ===

impl<B: Body<Data = Bytes, Error = HostBodyError> + Unpin> Stream<B> {
    pub(super) fn new(upstream: B, engine: Engine) -> Self {
        Self { upstream, out: engine.output(), engine, ready: VecDeque::new(), ended: false }
    }

    pub(super) fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, TransformError>>> {
        loop {
            if let Some(bytes) = self.ready.pop_front() {
                return Poll::Ready(Some(Ok(Frame::data(bytes))));
            }
            if self.ended {
                return Poll::Ready(None);
            }
            if let Engine::Watch(watch) = &mut self.engine
                && let Poll::Ready(error) = watch.poll_late(cx)
            {
                self.ended = true;
                self.ready.extend(error);
                continue;
            }
            if let Engine::Watch(watch) = &mut self.engine
                && let Poll::Ready(bookmark) = watch.poll_bookmark(cx)
            {
                self.ready.extend(bookmark);
                continue;
            }
            if let Engine::Watch(watch) = &mut self.engine
                && watch.is_holding()
            {
                match ready!(watch.poll(cx, &mut self.out, &mut self.ready)) {
                    Ok(()) => {}
                    // None of these events has been sent, so the client gets them again after it reconnects.
                    Err(WatchError::Exhausted) => {
                        debug!("watch ended: the cluster's memory for events is used up");
                        self.ended = true;
                        self.ready.clear();
                    }
                    Err(WatchError::Stream(error)) => {
                        self.ended = true;
                        return Poll::Ready(Some(Err(TransformError::Stream(error))));
                    }
                }
                continue;
            }
            if let Engine::Watch(watch) = &mut self.engine {
                watch.sent();
            }
            if let Engine::List(list) = &mut self.engine
                && list.is_holding()
            {
                match list.poll(cx, &mut self.out, &mut self.ready) {
                    Poll::Ready(Err(error)) => {
                        self.ended = true;
                        self.ready.clear();
                        return Poll::Ready(Some(Err(match error {
                            ListError::Stream(error) => TransformError::Stream(error),
                            ListError::Namespace(error) => TransformError::Namespace(error),
                        })));
                    }
                    Poll::Pending if self.ready.is_empty() => return Poll::Pending,
                    Poll::Ready(Ok(())) | Poll::Pending => continue,
                }
            }
            match ready!(Pin::new(&mut self.upstream).poll_frame(cx)) {
                Some(Ok(frame)) => {
                    let Ok(chunk) = frame.into_data() else { continue };
                    match &mut self.engine {
                        Engine::List(list) => list.hold(chunk),
                        Engine::Watch(watch) => watch.hold(chunk),
                    }
                }
                Some(Err(error)) => {
                    self.ended = true;
                    return Poll::Ready(Some(Err(TransformError::Host(error))));
                }
                None => {
                    self.ended = true;
                    let finished = match &mut self.engine {
                        Engine::List(list) => list.finish(),
                        // A watch may end at any time. The host may cut off a frame, which is then not forwarded.
                        Engine::Watch(_) => Ok(()),
                    };
                    if let Err(error) = finished {
                        return Poll::Ready(Some(Err(TransformError::Stream(error))));
                    }
                }
            }
        }
    }
}

//! The body of the client's response.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
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
use super::mapped_frames::MappedFrames;
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
    output: Output,
}

/// What the client gets.
struct Output {
    /// Bytes that the engine has written, and that are not in `ready` yet.
    collected: Coalesce,
    ready: VecDeque<Bytes>,
    /// Whether nothing follows `ready`.
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

    /// The whole body, if it is in memory, and has at most this number of bytes.
    pub(crate) fn in_memory(&self, limit: usize) -> Option<Bytes> {
        let is_short = self.size_hint().exact().is_some_and(|length| length <= limit as u64);
        match self {
            Self::Whole(bytes) if is_short => bytes.clone(),
            Self::Pieces(pieces) if is_short => Some(pieces.iter().flatten().copied().collect()),
            _ => None,
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
            Self::Stream(stream) => stream.output.ended && stream.output.ready.is_empty(),
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
    pub(super) fn watch(
        events: Events,
        arrivals: Arrivals,
        bookmarks: Option<Beginning>,
        mapped_frames: Option<Arc<MappedFrames>>,
    ) -> Self {
        Self::Watch(Watch::new(events, arrivals, bookmarks, mapped_frames))
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
        let output = Output { collected: engine.output(), ready: VecDeque::new(), ended: false };
        Self { upstream, engine, output }
    }

    pub(super) fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, TransformError>>> {
        loop {
            if let Some(bytes) = self.output.ready.pop_front() {
                return Poll::Ready(Some(Ok(Frame::data(bytes))));
            }
            if self.output.ended {
                return Poll::Ready(None);
            }
            let continued = match &mut self.engine {
                Engine::List(list) => ready!(poll_list(list, &mut self.upstream, &mut self.output, cx)),
                Engine::Watch(watch) => ready!(poll_watch(watch, &mut self.upstream, &mut self.output, cx)),
            };
            if let Err(error) = continued {
                self.output.ended = true;
                return Poll::Ready(Some(Err(error)));
            }
        }
    }
}

/// Maps what the list holds, or else reads the next chunk.
fn poll_list<B: Body<Data = Bytes, Error = HostBodyError> + Unpin>(
    list: &mut List,
    upstream: &mut B,
    output: &mut Output,
    cx: &mut Context<'_>,
) -> Poll<Result<(), TransformError>> {
    if list.is_holding() {
        return match list.poll(cx, &mut output.collected, &mut output.ready) {
            Poll::Ready(Err(error)) => {
                output.ready.clear();
                Poll::Ready(Err(match error {
                    ListError::Stream(error) => TransformError::Stream(error),
                    ListError::Namespace(error) => TransformError::Namespace(error),
                }))
            }
            Poll::Pending if output.ready.is_empty() => Poll::Pending,
            // The bytes that are ready are sent while it waits.
            Poll::Ready(Ok(())) | Poll::Pending => Poll::Ready(Ok(())),
        };
    }
    if let Some(chunk) = ready!(poll_chunk(upstream, cx)?) {
        list.hold(chunk);
        return Poll::Ready(Ok(()));
    }
    output.ended = true;
    Poll::Ready(list.finish().map_err(TransformError::Stream))
}

/// Makes the event that is due without the host, maps what the watch holds, or else reads the next chunk.
fn poll_watch<B: Body<Data = Bytes, Error = HostBodyError> + Unpin>(
    watch: &mut Watch,
    upstream: &mut B,
    output: &mut Output,
    cx: &mut Context<'_>,
) -> Poll<Result<(), TransformError>> {
    if let Poll::Ready(error) = watch.poll_late(cx) {
        output.ended = true;
        output.ready.extend(error);
        return Poll::Ready(Ok(()));
    }
    if let Poll::Ready(bookmark) = watch.poll_bookmark(cx) {
        output.ready.extend(bookmark);
        return Poll::Ready(Ok(()));
    }
    if watch.is_holding() {
        match ready!(watch.poll(cx, &mut output.collected, &mut output.ready)) {
            Ok(()) => {}
            // None of these events has been sent, so the client gets them again after it reconnects.
            Err(WatchError::Exhausted) => {
                debug!("watch ended: the cluster's memory for events is used up");
                output.ended = true;
                output.ready.clear();
            }
            Err(WatchError::Stream(error)) => return Poll::Ready(Err(TransformError::Stream(error))),
        }
        return Poll::Ready(Ok(()));
    }
    watch.sent();
    match ready!(poll_chunk(upstream, cx)?) {
        Some(chunk) => watch.hold(chunk),
        // A watch may end at any time. The host may cut off a frame, which is then not forwarded.
        None => output.ended = true,
    }
    Poll::Ready(Ok(()))
}

/// The next chunk of the host; `None` at the end.
fn poll_chunk<B: Body<Data = Bytes, Error = HostBodyError> + Unpin>(
    upstream: &mut B,
    cx: &mut Context<'_>,
) -> Poll<Result<Option<Bytes>, TransformError>> {
    loop {
        let Some(frame) = ready!(Pin::new(&mut *upstream).poll_frame(cx)) else { return Poll::Ready(Ok(None)) };
        if let Ok(chunk) = frame.map_err(TransformError::Host)?.into_data() {
            return Poll::Ready(Ok(Some(chunk)));
        }
    }
}

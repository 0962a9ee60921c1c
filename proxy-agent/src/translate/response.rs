//! The host's response as the virtual cluster sees it.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use http_body::{Body, Frame, SizeHint};
use kube_wire::Status;
use kube_wire::media::{self, Encoding};
use kube_wire::selector::LabelSelector;
use rewrite::sink::Coalesce;
use rewrite::view::{Beginning, Filter, ListStream, Verdict, WatchStream};
use rewrite::{Program, View};
use tracing::debug;

use super::echo::{status, without_echo};
use super::labelled::Labelled;
use super::overlaid::Overlaid;
use super::{Answer, Arrivals, Collector, Proxied, as_cluster_binding};
use crate::refusal::Refusal;
use crate::seal::Seal;
use events::Events;
use host_client::collect::MAX_OBJECT;
use host_client::{HostBody, HostBodyError, REQUEST_TIMEOUT};
use list::List;
use virtual_cluster::share::large_objects::LargeObjectLimits;
use watch::{Watch, WatchError};

mod events;
mod list;
mod protobuf;
mod watch;

/// How to transform a response of the host for the client.
pub(crate) enum ResponseTransform {
    /// Unchanged, unless it is a Status of a failure. For logs and discovery.
    Verbatim,
    /// Unchanged in all cases. For the response of a pod's server.
    Proxied(Proxied),
    /// One object. The cluster sees it only if the selector `only` matches its labels.
    Object { program: Program, filter: Filter, only: Option<LabelSelector> },
    /// A review with the host's answer.
    Review { program: Program, filter: Filter, answer: Answer },
    /// A list, streamed. Its continue tokens are sealed for `token`. `counted` is whether the client sees all objects
    /// that the host returns. `large_objects` limits how many large objects are mapped at a time.
    List {
        program: Program,
        filter: Filter,
        seal: Arc<Seal>,
        token: String,
        counted: bool,
        large_objects: Arc<LargeObjectLimits>,
    },
    /// A watch, frame by frame, with bookmarks if the client requests them.
    Watch { program: Program, filter: Filter, arrivals: Arrivals, bookmarks: Option<Beginning> },
}

/// The body of the host's response.
pub(crate) enum Upstream {
    /// It has not been read yet.
    Stream(HostBody),
    /// It has not been read yet. Overlays replace their pointers.
    Overlaid(Overlaid),
    /// It has been read.
    Whole(Bytes),
}

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

enum Engine {
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
}

/// Transforms a response for the client. A failure of the host is a Status, regardless of the request. Bodies that must
/// be read as a whole are charged to `collector`.
pub(crate) async fn transform_response(
    view: &View,
    transform: ResponseTransform,
    not_found: impl FnOnce() -> Status,
    response: Response<Upstream>,
    collector: Collector<'_>,
) -> Result<Response<ShownBody>, Refusal> {
    let (mut parts, body) = response.into_parts();
    if let ResponseTransform::Proxied(proxied) = &transform {
        proxied.relocate(&mut parts.headers);
        let is_switching = parts.status == StatusCode::SWITCHING_PROTOCOLS;
        return if is_switching { Err(switching()) } else { Ok(Response::from_parts(parts, body.verbatim())) };
    }
    warnings(view, &mut parts.headers);
    let encoding = encoding(&parts.headers);
    let json = encoding == Some(Encoding::Json);
    let failed = parts.status.as_u16() >= 400;
    let shown = match transform {
        _ if encoding == Some(Encoding::Protobuf) => {
            protobuf::transform_response(view, transform, not_found, parts.status, body, &mut parts.headers, collector)
                .await?
        }
        ResponseTransform::List { .. } if parts.status == StatusCode::GONE && json => {
            let body = body.collect(collector).await?;
            match status(view, &Program::default(), Encoding::Json, &body).map(|status| transform.sealed(status)) {
                Some(status) => ShownBody::whole(status.to_json().into(), &mut parts.headers),
                None => return Err(Refusal::Unreadable("its error is not a Status".to_owned())),
            }
        }
        ResponseTransform::Object { program, .. }
        | ResponseTransform::List { program, .. }
        | ResponseTransform::Watch { program, .. }
            if failed && json && program.is_of_cluster_bindings() =>
        {
            let body = body.collect(collector).await?;
            match status(view, &program, Encoding::Json, &body).map(as_cluster_binding) {
                Some(status) => ShownBody::whole(status.to_json().into(), &mut parts.headers),
                None => return Err(Refusal::Unreadable("its error is not a Status".to_owned())),
            }
        }
        ResponseTransform::Object { program, .. }
            if failed && json && parts.status == StatusCode::UNPROCESSABLE_ENTITY =>
        {
            let body = body.collect(collector).await?;
            let status = Status::from_json(&body).ok().and_then(|status| without_echo(view, &program, status));
            if let Some(status) = status {
                ShownBody::whole(status.to_json().into(), &mut parts.headers)
            } else {
                let shown = whole(view, &Program::default(), Filter::Everything, not_found, &body)?;
                ShownBody::whole(collector.concat(&shown)?, &mut parts.headers)
            }
        }
        // An error in JSON is a Status.
        _ if failed && json => {
            let body = body.collect(collector).await?;
            let shown = whole(view, &Program::default(), Filter::Everything, not_found, &body)?;
            ShownBody::whole(collector.concat(&shown)?, &mut parts.headers)
        }
        _ if failed => body.verbatim(),
        ResponseTransform::Verbatim | ResponseTransform::Proxied(_) => body.verbatim(),
        _ if !json => {
            let media_type = parts.headers.get(header::CONTENT_TYPE).cloned();
            return Err(Refusal::Unreadable(format!(
                "its media type is {media_type:?}, which the agent did not request"
            )));
        }
        ResponseTransform::Object { program, filter, only } => {
            let body = body.collect(collector).await?;
            let shown = if LargeObjectLimits::is_for_another_thread(body.len()) {
                let (view, body) = (view.clone(), body);
                collector.apart(move || object(&view, &program, filter, only.as_ref(), &body)).await?
            } else {
                collector.work(body.len(), || object(view, &program, filter, only.as_ref(), &body))?
            };
            ShownBody::whole(collector.concat(&shown.ok_or_else(not_found)?)?, &mut parts.headers)
        }
        ResponseTransform::Review { program, filter, answer } => {
            let body = answer.apply(view.mapping(), &body.collect(collector).await?);
            let body = body.map_err(|error| Refusal::Unreadable(error.to_string()))?;
            let view = view.clone().answering(answer.about);
            let shown = whole(&view, &program, filter, not_found, &body)?;
            ShownBody::whole(collector.concat(&shown)?, &mut parts.headers)
        }
        ResponseTransform::List { program, filter, seal, token, counted, large_objects } => {
            let list = ListStream::new(view.clone(), program, filter).sealing(move |plain| seal.seal(plain, &token));
            let list = if counted { list.counted() } else { list };
            stream(body, Engine::List(List::new(list, large_objects)), &mut parts.headers)?
        }
        ResponseTransform::Watch { program, filter, arrivals, bookmarks } => {
            let events = Events::Json(WatchStream::new(view.clone(), program, filter));
            stream(body, Engine::watch(events, arrivals, bookmarks), &mut parts.headers)?
        }
    };
    if parts.status == StatusCode::SWITCHING_PROTOCOLS {
        return Err(switching());
    }
    Ok(Response::from_parts(parts, shown))
}

fn switching() -> Refusal {
    Refusal::Unreadable("it switches protocols without a request to do so".into())
}

/// An object as the client sees it, or the refusal that it does not exist.
fn whole(
    view: &View,
    program: &Program,
    filter: Filter,
    not_found: impl FnOnce() -> Status,
    body: &Bytes,
) -> Result<Vec<Bytes>, Refusal> {
    object(view, program, filter, None, body)?.ok_or_else(|| not_found().into())
}

/// An object as the client sees it; `None` if the client does not see it.
fn object(
    view: &View,
    program: &Program,
    filter: Filter,
    only: Option<&LabelSelector>,
    body: &Bytes,
) -> Result<Option<Vec<Bytes>>, Refusal> {
    if let Some(only) = only {
        let labelled = Labelled::parse(body).map_err(|error| Refusal::Unreadable(error.to_string()))?;
        if !labelled.is_selected_by(only) {
            return Ok(None);
        }
    }
    let mut pieces: Vec<Bytes> = Vec::new();
    let verdict = view.object(program, filter, body, &mut pieces);
    match verdict.map_err(|error| Refusal::Unreadable(error.to_string()))? {
        Verdict::Foreign | Verdict::Unselected | Verdict::Left => Ok(None),
        Verdict::Shown => Ok(Some(pieces)),
    }
}

fn stream(body: Upstream, engine: Engine, headers: &mut HeaderMap) -> Result<ShownBody, Refusal> {
    let upstream = match body {
        Upstream::Stream(upstream) => Overlaid::plain(upstream),
        Upstream::Overlaid(upstream) => upstream,
        Upstream::Whole(_) => return Err(Refusal::Unreadable("a list was read as an object".into())),
    };
    headers.remove(header::CONTENT_LENGTH);
    Ok(ShownBody::Stream(Box::new(Stream::new(upstream, engine))))
}

/// The encoding of the objects in a response; `None` if it has no objects.
pub(crate) fn encoding(headers: &HeaderMap) -> Option<Encoding> {
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    content_type.and_then(media::response_encoding)
}

/// Maps the names in warnings, which are texts (RFC 7234, section 5.5, and KEP-1693).
pub(crate) fn warnings(view: &View, headers: &mut HeaderMap) {
    let mapped: Vec<HeaderValue> = headers
        .get_all(header::WARNING)
        .iter()
        .map(|value| {
            let text = value.to_str().ok().and_then(|text| view.mapping().readable(text));
            text.and_then(|text| HeaderValue::try_from(text).ok()).unwrap_or_else(|| value.clone())
        })
        .collect();
    headers.remove(header::WARNING);
    for value in mapped {
        headers.append(header::WARNING, value);
    }
}

// === impl ResponseTransform ===

impl ResponseTransform {
    /// Whether the response contains shared objects.
    pub(crate) fn is_of_shared(&self) -> bool {
        match self {
            Self::Object { filter, .. } | Self::List { filter, .. } | Self::Watch { filter, .. } => {
                *filter == Filter::Shared
            }
            Self::Verbatim | Self::Proxied(_) | Self::Review { .. } => false,
        }
    }

    /// Whether the engine must process a response with this status.
    pub(crate) fn looks_at(&self, status: StatusCode) -> bool {
        match self {
            Self::Proxied(_) => false,
            Self::Verbatim => !status.is_success(),
            _ => true,
        }
    }

    /// Seals the `continue` token of a failure. The response to an expired token has a new one, which continues with
    /// the current list (`handleCompactedErrorForPaging` in apiserver's `storage/etcd3/errors.go`).
    fn sealed(&self, mut status: Status) -> Status {
        if let Self::List { seal, token, .. } = self
            && !status.metadata.continue_token.is_empty()
        {
            status.metadata.continue_token = seal.seal(&status.metadata.continue_token, token);
        }
        status
    }
}

// === impl Upstream ===

impl Upstream {
    pub(crate) async fn collect(self, collector: Collector<'_>) -> Result<Bytes, Refusal> {
        match self {
            Self::Whole(body) => Ok(body),
            Self::Stream(body) => collector.collect(body, MAX_OBJECT).await,
            Self::Overlaid(body) => collector.collect(body, MAX_OBJECT).await,
        }
    }

    /// Collects the body. If there is no memory for it, the rest is read and discarded. Also returns the length.
    pub(crate) async fn collect_or_drain(self, collector: Collector<'_>) -> (usize, Result<Bytes, Refusal>) {
        match self {
            Self::Whole(body) => (body.len(), Ok(body)),
            Self::Stream(body) => collector.collect_or_drain(body, MAX_OBJECT).await,
            Self::Overlaid(body) => collector.collect_or_drain(body, MAX_OBJECT).await,
        }
    }

    fn verbatim(self) -> ShownBody {
        match self {
            Self::Stream(body) => ShownBody::Verbatim(body),
            Self::Overlaid(body) => ShownBody::Verbatim(body.into_inner()),
            Self::Whole(bytes) => ShownBody::Whole(Some(bytes)),
        }
    }
}

// === impl ShownBody ===

impl ShownBody {
    fn whole(body: Bytes, headers: &mut HeaderMap) -> Self {
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(body.len()));
        Self::Whole(Some(body))
    }

    fn in_pieces(pieces: Vec<Bytes>, headers: &mut HeaderMap) -> Self {
        let length: usize = pieces.iter().map(Bytes::len).sum();
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
        Self::Pieces(pieces.into())
    }

    /// The time that the client has to read the body, if it is held in memory.
    pub(crate) fn patience(&self) -> Option<Duration> {
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
    fn watch(events: Events, arrivals: Arrivals, bookmarks: Option<Beginning>) -> Self {
        Self::Watch(Watch::new(events, arrivals, bookmarks))
    }

    /// Collects its output.
    fn output(&self) -> Coalesce {
        match self {
            Self::List(_) => Coalesce::new(),
            Self::Watch(_) => Coalesce::with_room(ROOM_OF_WATCH),
        }
    }
}

// === impl Stream ===

impl<B: Body<Data = Bytes, Error = HostBodyError> + Unpin> Stream<B> {
    fn new(upstream: B, engine: Engine) -> Self {
        Self { upstream, out: engine.output(), engine, ready: VecDeque::new(), ended: false }
    }

    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, TransformError>>> {
        loop {
            if let Some(bytes) = self.ready.pop_front() {
                return Poll::Ready(Some(Ok(Frame::data(bytes))));
            }
            if self.ended {
                return Poll::Ready(None);
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
                        return Poll::Ready(Some(Err(TransformError::Stream(error))));
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

#[cfg(test)]
mod tests;

//! The host's answer as the virtual cluster sees it.

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

use super::bookmarks::Bookmarks;
use super::echo::{status, without_echo};
use super::labelled::Labelled;
use super::overlaid::Overlaid;
use super::{Answer, Arrivals, Collector, MAX_OBJECT, Proxied, as_cluster_binding};
use crate::host::{HostBody, HostBodyError, REQUEST_TIMEOUT};
use crate::refusal::Refusal;
use crate::seal::Seal;
use crate::turns::{SMALL, Turns};
use events::Events;

mod events;
mod protobuf;

/// How an answer is shown.
pub(crate) enum Show {
    /// Unchanged, unless it is a Status of a failure: logs, discovery.
    Verbatim,
    /// Unchanged in all cases: the response of a pod's server.
    Proxied(Proxied),
    /// One object; `only` says which labels it must have to be the cluster's.
    Object { program: Program, filter: Filter, only: Option<LabelSelector> },
    /// An answer to a question.
    Review { program: Program, filter: Filter, answer: Answer },
    /// A list, streamed. `token` is what its continue tokens are sealed for; `counted` says that the host was asked for
    /// nothing but what is shown. Large objects are shown in their `turns`.
    List { program: Program, filter: Filter, seal: Arc<Seal>, token: String, counted: bool, turns: Arc<Turns> },
    /// A watch, frame by frame; with bookmarks, if the client wants them.
    Watch { program: Program, filter: Filter, arrivals: Arrivals, bookmarks: Option<Beginning> },
}

/// The host's body: on its way, or read already.
pub(crate) enum Upstream {
    /// On its way.
    Stream(HostBody),
    /// On its way, with overlays in place.
    Overlaid(Overlaid),
    /// Read already.
    Whole(Bytes),
}

/// A body towards the client.
pub(crate) enum ShownBody {
    /// In one piece.
    Whole(Option<Bytes>),
    /// In pieces that are all complete: each is freed once it is sent.
    Pieces(VecDeque<Bytes>),
    /// As the host sends it.
    Verbatim(HostBody),
    /// Through the engine.
    Stream(Box<Stream>),
}

/// A list or watch on its way.
pub(crate) struct Stream<B = Overlaid> {
    upstream: B,
    engine: Engine,
    out: Coalesce,
    ready: VecDeque<Bytes>,
    ended: bool,
}

enum Engine {
    List(ListStream, Arc<Turns>),
    Watch(Events, Box<Arrivals>, Option<Bookmarks>),
}

/// Why a streamed answer ended early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ShowError {
    /// The host's connection.
    #[error("the host's answer broke off")]
    Host(#[source] HostBodyError),
    /// The host's bytes. What was not understood was not shown.
    #[error("the host's answer cannot be shown")]
    Stream(#[source] rewrite::view::StreamError),
}

/// Shows a response. Failures of the host are Statuses for every request. Bodies that must be held as a whole are charged
/// to `collector`.
pub(crate) async fn show(
    view: &View,
    show: Show,
    not_found: impl FnOnce() -> Status,
    response: Response<Upstream>,
    collector: Collector<'_>,
) -> Result<Response<ShownBody>, Refusal> {
    let (mut parts, body) = response.into_parts();
    if let Show::Proxied(proxied) = &show {
        proxied.relocate(&mut parts.headers);
        let is_switching = parts.status == StatusCode::SWITCHING_PROTOCOLS;
        return if is_switching { Err(switching()) } else { Ok(Response::from_parts(parts, body.verbatim())) };
    }
    warnings(view, &mut parts.headers);
    let encoding = encoding(&parts.headers);
    let json = encoding == Some(Encoding::Json);
    let failed = parts.status.as_u16() >= 400;
    let shown = match show {
        _ if encoding == Some(Encoding::Protobuf) => {
            protobuf::show(view, show, not_found, parts.status, body, &mut parts.headers, collector).await?
        }
        Show::List { .. } if parts.status == StatusCode::GONE && json => {
            let body = body.collect(collector).await?;
            match status(view, &Program::default(), Encoding::Json, &body).map(|status| show.sealed(status)) {
                Some(status) => ShownBody::whole(status.to_json().into(), &mut parts.headers),
                None => return Err(Refusal::Unreadable("its error is not a Status".to_owned())),
            }
        }
        Show::Object { program, .. } | Show::List { program, .. } | Show::Watch { program, .. }
            if failed && json && program.is_of_cluster_bindings() =>
        {
            let body = body.collect(collector).await?;
            match status(view, &program, Encoding::Json, &body).map(as_cluster_binding) {
                Some(status) => ShownBody::whole(status.to_json().into(), &mut parts.headers),
                None => return Err(Refusal::Unreadable("its error is not a Status".to_owned())),
            }
        }
        Show::Object { program, .. } if failed && json && parts.status == StatusCode::UNPROCESSABLE_ENTITY => {
            let body = body.collect(collector).await?;
            let status = Status::from_json(&body).ok().and_then(|status| without_echo(view, &program, status));
            if let Some(status) = status {
                ShownBody::whole(status.to_json().into(), &mut parts.headers)
            } else {
                let shown = whole(view, &Program::default(), Filter::Everything, None, not_found, &body)?;
                ShownBody::whole(collector.concat(&shown)?, &mut parts.headers)
            }
        }
        // An error is a Status in JSON.
        _ if failed && json => {
            let body = body.collect(collector).await?;
            let shown = whole(view, &Program::default(), Filter::Everything, None, not_found, &body)?;
            ShownBody::whole(collector.concat(&shown)?, &mut parts.headers)
        }
        _ if failed => body.verbatim(),
        Show::Verbatim | Show::Proxied(_) => body.verbatim(),
        _ if !json => {
            let media_type = parts.headers.get(header::CONTENT_TYPE).cloned();
            return Err(Refusal::Unreadable(format!("it is {media_type:?}, which was not asked for")));
        }
        Show::Object { program, filter, only } => {
            let body = body.collect(collector).await?;
            let shown = whole(view, &program, filter, only.as_ref(), not_found, &body)?;
            ShownBody::whole(collector.concat(&shown)?, &mut parts.headers)
        }
        Show::Review { program, filter, answer } => {
            let body = answer.apply(view.mapping(), &body.collect(collector).await?);
            let body = body.map_err(|error| Refusal::Unreadable(error.to_string()))?;
            let view = view.clone().answering(answer.about);
            let shown = whole(&view, &program, filter, None, not_found, &body)?;
            ShownBody::whole(collector.concat(&shown)?, &mut parts.headers)
        }
        Show::List { program, filter, seal, token, counted, turns } => {
            let list = ListStream::new(view.clone(), program, filter).sealing(move |plain| seal.seal(plain, &token));
            let list = if counted { list.counted() } else { list };
            stream(body, Engine::List(list.deferring(SMALL), turns), &mut parts.headers)?
        }
        Show::Watch { program, filter, arrivals, bookmarks } => {
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

/// An object as the client sees it.
fn whole(
    view: &View,
    program: &Program,
    filter: Filter,
    only: Option<&LabelSelector>,
    not_found: impl FnOnce() -> Status,
    body: &Bytes,
) -> Result<Vec<Bytes>, Refusal> {
    if let Some(only) = only {
        let labelled = Labelled::parse(body).map_err(|error| Refusal::Unreadable(error.to_string()))?;
        if !labelled.is_selected_by(only) {
            return Err(not_found().into());
        }
    }
    let mut pieces: Vec<Bytes> = Vec::new();
    let verdict = view.object(program, filter, body, &mut pieces);
    match verdict.map_err(|error| Refusal::Unreadable(error.to_string()))? {
        Verdict::Foreign | Verdict::Unselected | Verdict::Left => Err(not_found().into()),
        Verdict::Shown => Ok(pieces),
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

/// How the objects in an answer are written; `None` if there are none.
pub(crate) fn encoding(headers: &HeaderMap) -> Option<Encoding> {
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    content_type.and_then(media::response_encoding)
}

/// Warnings are texts (RFC 7234 section 5.5, KEP-1693) and may name what they are about.
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

// === impl Show ===

impl Show {
    /// Whether objects that virtual clusters share are shown.
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

    /// Seals the `continue` token of a failure. The response to an expired token has a new one, which continues with the
    /// current list (`handleCompactedErrorForPaging` in apiserver's `storage/etcd3/errors.go`).
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
    async fn collect(self, collector: Collector<'_>) -> Result<Bytes, Refusal> {
        match self {
            Self::Whole(body) => Ok(body),
            Self::Stream(body) => collector.collect(body, MAX_OBJECT).await,
            Self::Overlaid(body) => collector.collect(body, MAX_OBJECT).await,
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

    /// No body at all.
    pub(crate) fn none() -> Self {
        Self::Whole(None)
    }
}

impl Body for ShownBody {
    type Data = Bytes;
    type Error = ShowError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, ShowError>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Pieces(pieces) => Poll::Ready(pieces.pop_front().map(|piece| Ok(Frame::data(piece)))),
            Self::Verbatim(body) => Pin::new(body).poll_frame(cx).map_err(ShowError::Host),
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
    fn watch(watch: Events, arrivals: Arrivals, bookmarks: Option<Beginning>) -> Self {
        let arrivals = Box::new(arrivals);
        match bookmarks {
            Some(beginning) => Self::Watch(watch.beginning_with(beginning), arrivals, Some(Bookmarks::new())),
            None => Self::Watch(watch, arrivals, None),
        }
    }
}

// === impl Stream ===

impl<B: Body<Data = Bytes, Error = HostBodyError> + Unpin> Stream<B> {
    fn new(upstream: B, engine: Engine) -> Self {
        Self { upstream, engine, out: Coalesce::new(), ready: VecDeque::new(), ended: false }
    }

    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, ShowError>>> {
        loop {
            if let Some(bytes) = self.ready.pop_front() {
                return Poll::Ready(Some(Ok(Frame::data(bytes))));
            }
            if self.ended {
                return Poll::Ready(None);
            }
            if let Engine::Watch(watch, _, Some(bookmarks)) = &mut self.engine
                && bookmarks.poll_due(cx).is_ready()
            {
                // What waits for its names has not been seen, and so is not told of.
                self.ready.extend(watch.bookmark());
                continue;
            }
            if let Engine::Watch(watch, arrivals, bookmarks) = &mut self.engine
                && arrivals.is_holding()
            {
                let Some(chunk) = ready!(arrivals.poll(cx)) else { continue };
                watch.remap(arrivals.mapping());
                if let Err(error) = watch.push(&chunk, &mut self.out) {
                    self.ended = true;
                    return Poll::Ready(Some(Err(ShowError::Stream(error))));
                }
                self.ready.extend(self.out.drain());
                if let Some(bookmarks) = bookmarks {
                    self.ready.iter().for_each(|shown| bookmarks.note(shown));
                }
                continue;
            }
            match ready!(Pin::new(&mut self.upstream).poll_frame(cx)) {
                Some(Ok(frame)) => {
                    let Ok(chunk) = frame.into_data() else { continue };
                    if let Err(error) = self.push(chunk) {
                        self.ended = true;
                        return Poll::Ready(Some(Err(error)));
                    }
                }
                Some(Err(error)) => {
                    self.ended = true;
                    return Poll::Ready(Some(Err(ShowError::Host(error))));
                }
                None => {
                    self.ended = true;
                    let finished = match &mut self.engine {
                        Engine::List(list, _) => list.finish(),
                        // A watch ends where its time is over; half a frame is the host's accident, and is not shown.
                        Engine::Watch(..) => Ok(()),
                    };
                    if let Err(error) = finished {
                        return Poll::Ready(Some(Err(ShowError::Stream(error))));
                    }
                }
            }
        }
    }

    fn push(&mut self, chunk: Bytes) -> Result<(), ShowError> {
        match &mut self.engine {
            Engine::List(list, turns) => {
                let out = &mut self.out;
                list.push(&chunk, out).map_err(ShowError::Stream)?;
                if list.is_waiting() {
                    turns.now(|| list.resume(out)).map_err(ShowError::Stream)?;
                }
                self.ready.extend(self.out.drain());
            }
            Engine::Watch(_, arrivals, _) => arrivals.hold(chunk),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;

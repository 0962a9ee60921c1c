//! The same for responses in protobuf, for clients that accept nothing else.

use std::future::poll_fn;
use std::pin::pin;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use http_body::Body as _;
use kube_wire::Status;
use kube_wire::media::Encoding;
use kube_wire::status::Reason;
use rewrite::view::{Filter, ProtoListStream, ProtoWatchStream, StreamError, Verdict};
use rewrite::{Program, View};

use super::body::{Engine, ShownBody, stream};
use super::events::Events;
use super::namespaces::{ListNamespaces, NamespaceError};
use super::transform::ResponseTransform;
use super::upstream::Upstream;
use crate::refusal::Refusal;
use crate::translate::echo::status;
use crate::translate::labelled::Labelled;
use crate::translate::review;
use crate::translate::whole::Collector;
use host_client::HostBody;

/// Transforms a response for the client.
pub(super) async fn transform_response(
    view: &View,
    transform: ResponseTransform,
    not_found: impl FnOnce() -> Status,
    status: StatusCode,
    body: Upstream,
    headers: &mut HeaderMap,
    collector: Collector<'_>,
) -> Result<ShownBody, Refusal> {
    if status.as_u16() >= 400 {
        return failure(view, &transform, body, headers, collector).await;
    }
    let shown = match transform {
        ResponseTransform::Verbatim | ResponseTransform::Proxied(_) => return Ok(ShownBody::verbatim(body)),
        ResponseTransform::Object { program, filter, only } => {
            let body = body.collect(collector).await?;
            if let Some(only) = only {
                let labelled = Labelled::of_protobuf(&body).map_err(unreadable)?;
                if !labelled.is_selected_by(&only) {
                    return Err(not_found().into());
                }
            }
            collector.work(body.len(), || whole(view, &program, filter, &body))?
        }
        ResponseTransform::Review { program, filter, answer } => {
            let body = Bytes::from(
                review::protobuf::apply(&answer, view.mapping(), &body.collect(collector).await?)
                    .map_err(unreadable)?,
            );
            whole(&view.clone().with_original_attributes(answer.about), &program, filter, &body)?
        }
        ResponseTransform::List { program, filter, seal, token, counted, namespaces } => {
            let list = ProtoListStream::new(view.clone().renewed(namespaces.mapping()), program, filter);
            let list = if namespaces.are_awaited() { list.awaiting_namespaces() } else { list };
            let list = list.sealing(move |plain| seal.seal(plain, &token));
            let list = if counted { list.counted() } else { list };
            let upstream = match body {
                Upstream::Stream(upstream) => upstream,
                Upstream::Overlaid(upstream) => upstream.into_inner(),
                Upstream::Whole(_) => return Err(Refusal::Unreadable("a list was read as an object".into())),
            };
            return Ok(ShownBody::in_pieces(collect(list, namespaces, upstream, collector).await?, headers));
        }
        ResponseTransform::Watch { program, filter, arrivals, bookmarks, mapped_frames: _ } => {
            let watch = ProtoWatchStream::new(view.clone(), &program, filter).map_err(unreadable)?;
            let events = Events::Protobuf(watch);
            return stream(body, Engine::watch(events, arrivals, bookmarks, None), headers);
        }
    };
    match shown {
        Some(shown) => Ok(ShownBody::whole(collector.concat(&shown)?, headers)),
        None => Err(not_found().into()),
    }
}

/// Reads a refusal of the host, which is a Status.
async fn failure(
    view: &View,
    transform: &ResponseTransform,
    body: Upstream,
    headers: &mut HeaderMap,
    collector: Collector<'_>,
) -> Result<ShownBody, Refusal> {
    let body = body.collect(collector).await?;
    let nothing = Program::default();
    let program = if let ResponseTransform::Object { program, .. } = transform { program } else { &nothing };
    match (status(view, program, Encoding::Protobuf, &body), transform) {
        (Some(status), transform) => Ok(ShownBody::whole(transform.sealed(status).to_protobuf().into(), headers)),
        (None, ResponseTransform::Verbatim) => Ok(ShownBody::verbatim(Upstream::Whole(body))),
        (None, _) => Err(Refusal::Unreadable("its error is not a Status".into())),
    }
}

fn whole(view: &View, program: &Program, filter: Filter, body: &Bytes) -> Result<Option<Vec<Bytes>>, Refusal> {
    let mut pieces: Vec<Bytes> = Vec::new();
    Ok(match view.protobuf(program, filter, body, &mut pieces).map_err(unreadable)? {
        Verdict::Foreign | Verdict::Unselected | Verdict::Left => None,
        Verdict::Shown => Some(pieces),
    })
}

/// Reads a list to its end. No response has been sent yet, so a list that is too long, or for which there is no memory,
/// is refused normally. Its charge is released piece by piece, as the client reads.
async fn collect(
    mut list: ProtoListStream,
    mut namespaces: ListNamespaces,
    upstream: HostBody,
    collector: Collector<'_>,
) -> Result<Vec<Bytes>, Refusal> {
    let mut upstream = pin!(upstream);
    let mut charge = collector.list();
    while let Some(frame) = poll_fn(|cx| upstream.as_mut().poll_frame(cx)).await {
        let frame = frame.map_err(|error| Refusal::Unreadable(error.to_string()))?;
        if let Ok(chunk) = frame.into_data() {
            collector.work(list.pending() + chunk.len(), || list.push(&chunk)).map_err(refused)?;
            collector.grow(&mut charge, list.held())?;
            while let Some(name) = list.unknown() {
                list.await_only(namespaces.find(name).await.map_err(|error| refusal(&error))?);
                list.remap(namespaces.mapping());
                collector.work(list.pending(), || list.resume()).map_err(refused)?;
                collector.grow(&mut charge, list.held())?;
            }
        }
    }
    let pieces = list.finish().map_err(refused)?;
    let attach = |piece: Bytes| charge.split(piece.len()).attach(piece);
    Ok(pieces.into_iter().map(attach).collect())
}

fn refused(error: StreamError) -> Refusal {
    let StreamError::TooMuch { limit } = error else { return unreadable(error) };
    let message = format!(
        "a list of more than {limit} bytes is not sent as application/vnd.kubernetes.protobuf: ask for pages (limit), \
         or accept application/json too"
    );
    Status::failure(406, Reason::NotAcceptable, message).into()
}

/// The client may list again at once.
fn refusal(error: &NamespaceError) -> Refusal {
    Status::service_unavailable(error.to_string()).with_retry_after(1).into()
}

fn unreadable(error: impl std::fmt::Display) -> Refusal {
    Refusal::Unreadable(error.to_string())
}

//! The host's response as the virtual cluster sees it.

mod arrivals;
mod body;
mod events;
mod list;
mod mapped_frames;
mod namespaces;
mod protobuf;
mod transform;
mod upstream;
mod watch;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use kube_wire::Status;
use kube_wire::media::{self, Encoding};
use kube_wire::selector::LabelSelector;
use rewrite::view::{Filter, ListStream, Verdict, WatchStream};
use rewrite::{Program, View};

use super::binding::as_cluster_binding;
use super::echo::{status, without_echo};
use super::labelled::Labelled;
use super::review;
use super::whole::Collector;
use crate::refusal::Refusal;
pub(crate) use arrivals::Arrivals;
pub(crate) use body::ShownBody;
use body::{Engine, stream};
use events::Events;
use list::List;
pub(crate) use mapped_frames::MappedFrames;
pub(crate) use namespaces::ListNamespaces;
pub(crate) use transform::ResponseTransform;
pub(crate) use upstream::Upstream;
use virtual_cluster::share::large_objects::LargeObjectLimits;

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
        return not_switching(Response::from_parts(parts, ShownBody::verbatim(body)));
    }
    warnings(view, &mut parts.headers);
    let encoding = encoding(&parts.headers);
    let json = encoding == Some(Encoding::Json);
    let failed = parts.status.as_u16() >= 400;
    let shown = match transform {
        _ if encoding == Some(Encoding::Protobuf) => {
            Box::pin(protobuf::transform_response(
                view,
                transform,
                not_found,
                parts.status,
                body,
                &mut parts.headers,
                collector,
            ))
            .await?
        }
        _ if failed && json => {
            Box::pin(failure(view, &transform, not_found, parts.status, body, &mut parts.headers, collector)).await?
        }
        _ if failed => ShownBody::verbatim(body),
        ResponseTransform::Verbatim | ResponseTransform::Proxied(_) => ShownBody::verbatim(body),
        _ if !json => return Err(not_requested(&parts.headers)),
        ResponseTransform::Object { program, filter, only } => {
            let body = body.collect(collector).await?;
            let shown = object_in_time(view, &program, filter, only.as_ref(), &body, collector).await?;
            ShownBody::whole(collector.concat(&shown.ok_or_else(not_found)?)?, &mut parts.headers)
        }
        ResponseTransform::Review { program, filter, answer } => {
            let body = review::apply(&answer, view.mapping(), &body.collect(collector).await?);
            let body = body.map_err(|error| Refusal::Unreadable(error.to_string()))?;
            let view = view.clone().with_original_attributes(answer.about);
            let shown = whole(&view, &program, filter, not_found, &body)?;
            ShownBody::whole(collector.concat(&shown)?, &mut parts.headers)
        }
        ResponseTransform::List { program, filter, seal, token, counted, namespaces } => {
            // The request may have waited, so the list may be newer than its names.
            let view = view.clone().renewed(namespaces.mapping());
            let list = ListStream::new(view, program, filter).sealing(move |plain| seal.seal(plain, &token));
            let list = List::new(if counted { list.counted() } else { list }, namespaces.large_objects());
            let list = if namespaces.are_awaited() { list.awaiting(namespaces) } else { list };
            stream(body, Engine::List(list), &mut parts.headers)?
        }
        ResponseTransform::Watch { program, filter, arrivals, bookmarks, mapped_frames } => {
            let events = Events::Json(WatchStream::new(view.clone(), program, filter));
            stream(body, Engine::watch(events, arrivals, bookmarks, mapped_frames), &mut parts.headers)?
        }
    };
    not_switching(Response::from_parts(parts, shown))
}

/// A failure in JSON, which is a Status.
async fn failure(
    view: &View,
    transform: &ResponseTransform,
    not_found: impl FnOnce() -> Status,
    status_code: StatusCode,
    body: Upstream,
    headers: &mut HeaderMap,
    collector: Collector<'_>,
) -> Result<ShownBody, Refusal> {
    let body = body.collect(collector).await?;
    let nothing = Program::default();
    let shown = match transform {
        ResponseTransform::List { .. } if status_code == StatusCode::GONE => {
            Some(status(view, &nothing, Encoding::Json, &body).map(|status| transform.sealed(status)))
        }
        ResponseTransform::Object { program, .. }
        | ResponseTransform::List { program, .. }
        | ResponseTransform::Watch { program, .. }
            if program.is_of_cluster_bindings() =>
        {
            Some(status(view, program, Encoding::Json, &body).map(as_cluster_binding))
        }
        ResponseTransform::Object { program, .. } if status_code == StatusCode::UNPROCESSABLE_ENTITY => {
            let read = Status::from_json(&body).ok().and_then(|status| without_echo(view, program, status));
            read.map(Some)
        }
        _ => None,
    };
    match shown {
        Some(Some(status)) => Ok(ShownBody::whole(status.to_json().into(), headers)),
        Some(None) => Err(Refusal::Unreadable("its error is not a Status".to_owned())),
        None => {
            let shown = whole(view, &nothing, Filter::Everything, not_found, &body)?;
            Ok(ShownBody::whole(collector.concat(&shown)?, headers))
        }
    }
}

/// Refuses a response that switches protocols, because the request does not.
fn not_switching(response: Response<ShownBody>) -> Result<Response<ShownBody>, Refusal> {
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        return Err(Refusal::Unreadable("it switches protocols without a request to do so".into()));
    }
    Ok(response)
}

fn not_requested(headers: &HeaderMap) -> Refusal {
    let media_type = headers.get(header::CONTENT_TYPE);
    Refusal::Unreadable(format!("its media type is {media_type:?}, which the agent did not request"))
}

/// The same as [`object`]. Another thread maps an object that would occupy this one for too long.
async fn object_in_time(
    view: &View,
    program: &Program,
    filter: Filter,
    only: Option<&LabelSelector>,
    body: &Bytes,
    collector: Collector<'_>,
) -> Result<Option<Vec<Bytes>>, Refusal> {
    if !LargeObjectLimits::is_for_another_thread(body.len()) {
        return collector.work(body.len(), || object(view, program, filter, only, body));
    }
    let (view, program, only, body) = (view.clone(), program.clone(), only.cloned(), body.clone());
    Box::pin(collector.apart(move || object(&view, &program, filter, only.as_ref(), &body))).await
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

#[cfg(test)]
mod tests;

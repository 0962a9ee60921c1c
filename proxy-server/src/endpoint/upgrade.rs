//! Requests that switch protocols: exec, attach and port-forward, by SPDY or WebSocket.
//!
//! In the tunnel, they are extended CONNECT (RFC 8441): `:protocol` is the `Upgrade` token, and a header has the real
//! method. A 200 says that the API server has answered 101. It carries the headers of that response.

use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use hyper_util::rt::TokioIo;
use protocol::stream::METHOD;
use tracing::debug;

use super::admit::Admitted;
use super::body::ResponseBody;
use super::connection::Connection;
use super::record::Record;
use super::refusal::Refusal;
use super::{forward, head};

/// Whether the client requests another protocol (RFC 9110 section 7.8). `h2c` is not supported.
pub(super) fn is_wanted<B>(request: &Request<B>) -> bool {
    let headers = request.headers();
    let asked = headers.get_all(header::CONNECTION).iter().any(|value| {
        let value = value.to_str().unwrap_or_default();
        value.split(',').any(|option| option.trim().eq_ignore_ascii_case("upgrade"))
    });
    let h2c = headers.get(header::UPGRADE).is_some_and(|token| token.as_bytes().eq_ignore_ascii_case(b"h2c"));
    asked && !h2c && headers.contains_key(header::UPGRADE)
}

/// Like an ordinary exchange, but if the API server switches protocols, bytes then pass in both directions.
pub(super) async fn exchange(
    mut request: Request<()>,
    connection: &Connection,
    mut admitted: Admitted,
    record: &mut Record,
) -> Result<Response<ResponseBody>, Refusal> {
    let services = &*connection.services;
    let token = request.headers().get(header::UPGRADE).cloned().ok_or(Refusal::BadTarget)?;
    let protocol = token.to_str().map_err(|_| Refusal::BadTarget)?;
    let protocol = h2::ext::Protocol::from(protocol);
    let mut head = admitted.head(&mut request)?;
    let method = HeaderValue::from_str(head.method().as_str()).expect("a method is a token");
    head.headers_mut().insert(METHOD, method);
    // kubectl opens SPDY with an empty POST. The bytes after it on the stream are no content of that request (RFC 9110
    // section 9.3.6). A stream with `content-length: 0` would be reset at the first byte.
    head.headers_mut().remove(header::CONTENT_LENGTH);
    *head.method_mut() = Method::CONNECT;
    head.extensions_mut().insert(protocol);

    let tunnel = services.registry.tunnel(&admitted.cluster.name).map_err(Refusal::NoAgent)?;
    // Nothing is sent before the protocol is switched. Afterwards, a pipe holds only what it has just read.
    let (outbound, answer) = admitted.open(services, &tunnel, head, Some(0)).await?;
    let (response, mut lease) = forward::answered(answer, &admitted, || true).await?;
    record.heard(response.headers());
    admitted.heard(connection, &response, &mut lease);
    let (mut parts, inbound) = response.into_parts();
    head::response(&mut parts.headers);
    let end = admitted.end.clone();
    let held = admitted.hold(connection, lease, None);
    if parts.status != StatusCode::OK {
        return Ok(Response::from_parts(parts, ResponseBody::tunnel(inbound, held, end)));
    }
    let switched = hyper::upgrade::on(&mut request);
    let (entry, place) = (record.entry.take(), connection.place.clone());
    services.tasks.spawn("upgraded", async move {
        // The connection and the request continue here.
        let _held = (held, place);
        let io = match switched.await {
            Ok(io) => TokioIo::new(io),
            Err(error) => return debug!(%error, "the client left at the upgrade"),
        };
        let mut traffic = tunnel::pipe::Traffic::default();
        let piped = tokio::select! {
            piped = tunnel::pipe::pipe(io, inbound, outbound, &mut traffic) => piped,
            () = end.cancelled() => return debug!("the cluster is gone"),
        };
        if let Err(error) = &piped {
            debug!(%error, ?traffic, "upgraded connection broke");
        }
        if let Some(entry) = entry {
            entry.conversed(&traffic, piped.is_ok());
        }
    });
    parts.status = StatusCode::SWITCHING_PROTOCOLS;
    parts.headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    parts.headers.insert(header::UPGRADE, token);
    Ok(Response::from_parts(parts, ResponseBody::Whole(None)))
}

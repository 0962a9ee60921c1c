//! Requests that switch protocols: exec, attach and port-forward, by SPDY or WebSocket.
//!
//! In the tunnel, they are extended CONNECT (RFC 8441): `:protocol` is the `Upgrade` token, and a header has the real
//! method. A 200 means that the API server has responded with 101, and has the headers of that response. Then bytes are
//! forwarded in both directions. If the API server has responded with another success instead, a header has its status.

use std::sync::Arc;

use bytes::Bytes;
use h2::SendStream;
use h2::ext::Protocol;
use http::{HeaderValue, Method, Request, Response, StatusCode, header, response};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use protocol::stream::METHOD;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info};
use tunnel::Inbound;

use super::body::{ResponseBody, ResponseGuard};
use super::connection::Connection;
use super::record::Record;
use super::refusal::Refusal;

/// The protocol that a client requests.
#[derive(Debug)]
pub(super) struct Upgrade {
    token: HeaderValue,
    protocol: Protocol,
    /// The client's connection, after the 101.
    switched: OnUpgrade,
}

/// What the bytes after an upgrade need until they end.
pub(super) struct Session {
    /// From the agent.
    pub(super) inbound: Inbound,
    /// To the agent.
    pub(super) outbound: SendStream<Bytes>,
    /// Counts the request.
    pub(super) guard: ResponseGuard,
    /// Of the client.
    pub(super) connection: Arc<Connection>,
    /// Cancelled when the cluster is removed.
    pub(super) end: CancellationToken,
}

/// Whether the client requests another protocol (RFC 9110 section 7.8). `h2c` is not supported.
fn is_wanted<B>(request: &Request<B>) -> bool {
    let headers = request.headers();
    let is_requested = headers.get_all(header::CONNECTION).iter().any(|value| {
        let value = value.to_str().unwrap_or_default();
        value.split(',').any(|option| option.trim().eq_ignore_ascii_case("upgrade"))
    });
    let is_h2c = headers.get(header::UPGRADE).is_some_and(|token| token.as_bytes().eq_ignore_ascii_case(b"h2c"));
    is_requested && !is_h2c && headers.contains_key(header::UPGRADE)
}

// === impl Upgrade ===

impl Upgrade {
    /// The protocol switch that a request asks for, if any.
    pub(super) fn begin(request: &mut Request<()>) -> Result<Option<Self>, Refusal> {
        if !is_wanted(request) {
            return Ok(None);
        }
        let token = request.headers().get(header::UPGRADE).cloned().ok_or(Refusal::BadTarget)?;
        let protocol = token.to_str().map_err(|_| Refusal::BadTarget)?.into();
        Ok(Some(Self { token, protocol, switched: hyper::upgrade::on(request) }))
    }

    /// Turns the head for the agent into an extended CONNECT.
    pub(super) fn extend(&self, head: &mut Request<()>) {
        let method = HeaderValue::from_str(head.method().as_str()).expect("a method is a token");
        head.headers_mut().insert(METHOD, method);
        // kubectl opens SPDY with an empty POST. The bytes after it on the stream are no content of that request (RFC
        // 9110 section 9.3.6). A stream with `content-length: 0` would be reset at the first byte.
        head.headers_mut().remove(header::CONTENT_LENGTH);
        *head.method_mut() = Method::CONNECT;
        head.extensions_mut().insert(self.protocol.clone());
    }

    /// The response that switches the protocol. A task forwards the bytes after it.
    pub(super) fn switch(
        self,
        mut parts: response::Parts,
        session: Session,
        record: &mut Record,
    ) -> Response<ResponseBody> {
        let Self { token, switched, .. } = self;
        let Session { inbound, outbound, guard, connection, end } = session;
        // Before the task: the client may disconnect before it has switched.
        record.answered(StatusCode::SWITCHING_PROTOCOLS, &mut parts.headers);
        let (entry, audited, span) = (record.entry.take(), record.audited.take(), record.span.take());
        let permit = connection.permit.clone();
        connection.services.tasks.clone().spawn("upgraded", async move {
            // The connection and the request count until the bytes have ended. The span ends then, too.
            let _guards = (guard, permit, audited, span);
            let io = match switched.await {
                Ok(io) => TokioIo::new(io),
                Err(error) => return debug!(%error, "the client disconnected at the upgrade"),
            };
            let mut traffic = tunnel::pipe::Traffic::default();
            let is_whole = tokio::select! {
                piped = tunnel::pipe::pipe_session(io, inbound, outbound, &mut traffic) => match piped {
                    Ok(()) => true,
                    Err(error) => {
                        debug!(%error, ?traffic, "upgraded connection broke");
                        false
                    }
                },
                () = end.cancelled() => {
                    debug!("the cluster was removed");
                    false
                }
                () = connection.revoked() => {
                    info!("a credential of the client was revoked: closing the session");
                    false
                }
            };
            if let Some(mut entry) = entry {
                entry.ended_upgrade(&traffic, is_whole);
            }
        });
        parts.status = StatusCode::SWITCHING_PROTOCOLS;
        parts.headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        parts.headers.insert(header::UPGRADE, token);
        Response::from_parts(parts, ResponseBody::Whole(None))
    }
}

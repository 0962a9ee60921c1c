//! Requests that switch protocols: exec, attach, port-forward, and pods' own servers.
//!
//! The tunnel carries them as extended CONNECT, with the real method in a header; the API server gets an HTTP/1.1
//! upgrade on a connection of its own. From its 101 on, bytes pass both ways.

use std::sync::Arc;

use ::tunnel::Inbound;
use ::tunnel::outbound::send_body;
use ::tunnel::pipe::{Traffic, pipe};
use bytes::Bytes;
use h2::server::SendResponse;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body::Body as _;
use kube_wire::{RequestInfo, Status, Target};
use protocol::stream::METHOD;
use tracing::debug;

use super::plan::Plan;
use super::told::Told;
use super::{Asked, Parts};
use crate::exchange::body::Body;
use crate::refusal::Refusal;
use crate::translate::{ShownBody, show};
use host_client::{Conversation, Switched};
use virtual_cluster::clusters::VirtualCluster;

/// Headers of the two handshakes (RFC 6455 section 4.1; SPDY streams are Kubernetes' own).
const HANDSHAKE: [HeaderName; 6] = [
    header::SEC_WEBSOCKET_KEY,
    header::SEC_WEBSOCKET_VERSION,
    header::SEC_WEBSOCKET_PROTOCOL,
    header::SEC_WEBSOCKET_EXTENSIONS,
    header::ORIGIN,
    HeaderName::from_static("x-stream-protocol-version"),
];

/// What the host answered.
pub(super) enum Answer {
    /// 101.
    Conversation { head: Response<()>, host: Conversation, client: Inbound },
    /// Anything else.
    Response(Response<ShownBody>),
}

pub(super) async fn exchange(
    parts: &Parts,
    cluster: &Arc<VirtualCluster>,
    request: Request<Inbound>,
    told: &mut Told,
) -> Result<Answer, Refusal> {
    parts.admit(cluster).await?;
    let (head, client) = request.into_parts();
    let bad = |why: &str| Refusal::from(Status::bad_request(why));
    let method = head.headers.get(METHOD).and_then(|method| Method::from_bytes(method.as_bytes()).ok());
    let method = method.ok_or_else(|| bad("an upgrade without its method"))?;
    let token = head.extensions.get::<h2::ext::Protocol>().ok_or_else(|| bad("an upgrade without a protocol"))?;
    let token = HeaderValue::from_str(token.as_str()).map_err(|_| bad("the Upgrade header cannot be read"))?;
    let handshake = handshake(&head.headers);

    let info = RequestInfo::parse(&method, head.uri.path(), head.uri.query());
    let info = info.map_err(|error| Refusal::from(&error))?;
    let identified = Asked::identify(parts, cluster, info, head.headers).await?;
    told.identified(identified.caller());
    let asked = identified.authorise().await?;
    let connects = matches!(asked.info.target(), Target::Resource(request) if request.is_connect());
    if !connects {
        return Err(bad("only exec, attach, portforward and proxy switch protocols"));
    }
    let Plan { mut request, show: shown, mapping, not_found, .. } = asked.plan(&Body::Whole(Bytes::new())).await?;
    let headers = request.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, token);
    for name in HANDSHAKE {
        headers.remove(name);
    }
    for (name, value) in &handshake {
        headers.append(name.clone(), value.clone());
    }
    // A bearer token may come as a WebSocket protocol; `who` has taken it out of the client's list.
    if let Some(protocols) = asked.headers.get(header::SEC_WEBSOCKET_PROTOCOL) {
        headers.insert(header::SEC_WEBSOCKET_PROTOCOL, protocols.clone());
    } else {
        headers.remove(header::SEC_WEBSOCKET_PROTOCOL);
    }
    match parts.host.switch(request).await? {
        Switched::Upgraded(head, host) => Ok(Answer::Conversation { head, host, client }),
        Switched::Refused(response) => {
            let response = response.map(crate::translate::Upstream::Stream);
            show(&asked.view(mapping), shown, || not_found, response, asked.answer_collector())
                .await
                .map(Answer::Response)
        }
    }
}

fn handshake(headers: &HeaderMap) -> HeaderMap {
    let mut kept = HeaderMap::new();
    for name in HANDSHAKE {
        for value in headers.get_all(&name) {
            kept.append(name.clone(), value.clone());
        }
    }
    kept
}

// === impl Answer ===

impl Answer {
    /// Tells the client, and carries what follows.
    pub(super) async fn carry(self, mut respond: SendResponse<Bytes>, told: &Told) -> Result<(), h2::Error> {
        match self {
            Self::Conversation { head, host, client } => {
                let mut response = Response::new(());
                // 101 is not a status of HTTP/2; 200 says the same of an extended CONNECT (RFC 8441 section 5).
                *response.status_mut() = StatusCode::OK;
                *response.headers_mut() = head.headers().clone();
                for name in [header::CONNECTION, header::UPGRADE] {
                    response.headers_mut().remove(name);
                }
                told.write(response.headers_mut());
                let outbound = respond.send_response(response, false)?;
                let mut traffic = Traffic::default();
                if let Err(error) = pipe(host, client, outbound, &mut traffic).await {
                    debug!(error = &error as &dyn std::error::Error, ?traffic, "conversation broke");
                }
                Ok(())
            }
            Self::Response(response) => {
                let (parts, body) = response.into_parts();
                let bodiless = body.is_end_stream();
                // 200 would mean that the protocol was switched.
                let mut head = Response::from_parts(parts, ());
                told.write(head.headers_mut());
                if head.status() == StatusCode::OK {
                    *head.status_mut() = StatusCode::BAD_REQUEST;
                }
                let stream = respond.send_response(head, bodiless)?;
                if !bodiless && let Err(error) = send_body(body, stream).await {
                    debug!(error = &error as &dyn std::error::Error, "answer ended early");
                }
                Ok(())
            }
        }
    }
}

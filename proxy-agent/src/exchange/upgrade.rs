//! Requests that switch protocols: exec, attach, port-forward, logs, and requests to the servers of pods.
//!
//! The tunnel carries them as extended CONNECT, with the method of the client in a header. The API server gets an
//! HTTP/1.1 upgrade on a separate connection. After its response 101, bytes are forwarded in both directions.

use ::tunnel::outbound::send_body;
use ::tunnel::pipe::{Traffic, pipe_session};
use ::tunnel::{Inbound, Outbound, Reservation, Share};
use bytes::Bytes;
use h2::server::SendResponse;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header, request};
use http_body::Body as _;
use kube_wire::{Status, Target, Verb};
use protocol::stream::{METHOD, write_unswitched};
use tracing::debug;

use crate::exchange::body::Body;
use crate::exchange::call::Call;
use crate::exchange::decide::{Decision, decide};
use crate::exchange::incoming::{Admitted, RequestGuards};
use crate::exchange::kinds::is_opaque;
use crate::exchange::plan::Plan;
use crate::exchange::record::Record;
use crate::refusal::Refusal;
use crate::translate::{ShownBody, transform_response};
use host_client::{Switched, UpgradedStream};

/// The headers of both handshakes: WebSocket (RFC 6455 section 4.1), and Kubernetes' SPDY streams.
const HANDSHAKE: [HeaderName; 6] = [
    header::SEC_WEBSOCKET_KEY,
    header::SEC_WEBSOCKET_VERSION,
    header::SEC_WEBSOCKET_PROTOCOL,
    header::SEC_WEBSOCKET_EXTENSIONS,
    header::ORIGIN,
    HeaderName::from_static("x-stream-protocol-version"),
];

/// The response for the client, with the place of the request among those in flight.
pub(crate) struct UpgradeResponse {
    response: HostResponse,
    in_flight: Reservation,
}

/// The host's response.
enum HostResponse {
    /// The host has switched protocols (101).
    Upgraded { head: Response<()>, host: UpgradedStream, client: Inbound },
    /// Any other response.
    Response(Response<ShownBody>),
}

/// The part of the head that concerns the switch of protocols.
#[derive(Clone, Debug)]
pub(super) struct Handshake {
    /// The `Upgrade` header.
    token: HeaderValue,
    /// The headers of [`HANDSHAKE`].
    headers: HeaderMap,
}

/// The phase `decide` and `send`: asks the host to switch protocols.
pub(super) async fn switch(
    admitted: Admitted<'_, Box<Call<'_>>, Inbound>,
    handshake: Handshake,
) -> Result<UpgradeResponse, Refusal> {
    // The charge for the head is held until the host has answered, which a pod can delay for long.
    let Admitted { call, body: client, held: RequestGuards { in_flight, _charge }, .. } = admitted;
    match call.api.info.target() {
        Target::Resource(request) if is_opaque(request) => {}
        Target::Resource(request) if request.verb() == Verb::Watch => {
            return Err(bad_request("a watch is not served over WebSocket: request it without the header Upgrade"));
        }
        _ => return Err(bad_request("only exec, attach, portforward, proxy and log switch protocols")),
    }
    let Decision { plan, findings } = decide(&call, &Body::Whole(Bytes::new())).await;
    let Plan { mut request, transform, mapping, not_found, .. } = *plan?;
    let headers = request.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, handshake.token);
    for name in HANDSHAKE {
        headers.remove(name);
    }
    for (name, value) in &handshake.headers {
        headers.append(name.clone(), value.clone());
    }
    // A bearer token may come as a WebSocket protocol. `authn` has removed it from the client's list.
    if let Some(protocols) = call.api.headers.get(header::SEC_WEBSOCKET_PROTOCOL) {
        headers.insert(header::SEC_WEBSOCKET_PROTOCOL, protocols.clone());
    } else {
        headers.remove(header::SEC_WEBSOCKET_PROTOCOL);
    }
    let span = call.host_span(request.headers_mut());
    let switched = call.services.host.switch(request).await;
    if let Some(mut span) = span {
        let status = switched.as_ref().ok().map(|switched| match switched {
            Switched::Upgraded { .. } => StatusCode::SWITCHING_PROTOCOLS,
            Switched::Refused(response) => response.status(),
        });
        span.ended(status, "host");
    }
    let response = match switched? {
        Switched::Upgraded { head, stream } => HostResponse::Upgraded { head, host: stream, client },
        Switched::Refused(response) => {
            let response = response.map(crate::translate::Upstream::Stream);
            let (view, collector) = (call.view(mapping, &findings), call.answer_collector());
            let shown =
                transform_response(&view, transform, || not_found.status(&call.api), response, collector).await?;
            HostResponse::Response(shown)
        }
    };
    Ok(UpgradeResponse { response, in_flight })
}

fn bad_request(why: &str) -> Refusal {
    Status::bad_request(why).into()
}

// === impl Handshake ===

impl Handshake {
    /// Reads the head of an extended CONNECT. Returns the method of the client, too.
    pub(super) fn read(head: &request::Parts) -> Result<(Method, Self), Refusal> {
        let method = head.headers.get(METHOD).and_then(|method| Method::from_bytes(method.as_bytes()).ok());
        let method = method.ok_or_else(|| bad_request("the upgrade has no method"))?;
        let token = head.extensions.get::<h2::ext::Protocol>();
        let token = token.ok_or_else(|| bad_request("the upgrade has no protocol"))?;
        let token = HeaderValue::from_str(token.as_str());
        let token = token.map_err(|_| bad_request("the Upgrade header cannot be read"))?;
        let mut headers = HeaderMap::new();
        for name in HANDSHAKE {
            for value in head.headers.get_all(&name) {
                headers.append(name.clone(), value.clone());
            }
        }
        Ok((method, Self { token, headers }))
    }
}

// === impl UpgradeResponse ===

impl UpgradeResponse {
    /// Sends the response to the client, and then forwards bytes or the body. What waits for the tunnel is charged to `queue`.
    pub(crate) async fn carry(
        self,
        mut respond: SendResponse<Bytes>,
        queue: &Share,
        record: &mut Record,
    ) -> Result<(), h2::Error> {
        let Self { response, in_flight: _in_flight } = self;
        match response {
            HostResponse::Upgraded { head, host, client } => {
                let mut response = Response::new(());
                // HTTP/2 has no status 101. The response to an accepted extended CONNECT is 200 (RFC 8441 section 5).
                *response.status_mut() = StatusCode::OK;
                *response.headers_mut() = head.headers().clone();
                for name in [header::CONNECTION, header::UPGRADE] {
                    response.headers_mut().remove(name);
                }
                record.write(StatusCode::SWITCHING_PROTOCOLS, response.headers_mut());
                let outbound = Outbound::charged(respond.send_response(response, false)?, queue.clone());
                let mut traffic = Traffic::default();
                if let Err(error) = pipe_session(host, client, outbound, &mut traffic).await {
                    debug!(error = &error as &dyn std::error::Error, ?traffic, "upgraded stream ended with an error");
                }
                Ok(())
            }
            HostResponse::Response(response) => {
                let (mut parts, body) = response.into_parts();
                let bodiless = body.is_end_stream();
                record.write(parts.status, &mut parts.headers);
                write_unswitched(&mut parts.status, &mut parts.headers);
                let sent = respond.send_response(Response::from_parts(parts, ()), bodiless)?;
                let outbound = Outbound::charged(sent, queue.clone());
                if !bodiless && let Err(error) = send_body(body, outbound).await {
                    debug!(error = &error as &dyn std::error::Error, "response ended early");
                }
                Ok(())
            }
        }
    }
}

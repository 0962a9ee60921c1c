//! Forwards one stream of a peer to an agent.

use std::future::poll_fn;
use std::pin::pin;
use std::time::Duration;

use ::tunnel::outbound::{SendError, send_body};
use ::tunnel::{Inbound, Outbound};
use bytes::Bytes;
use h2::Reason;
use h2::server::SendResponse;
use http::header::CONTENT_LENGTH;
use http::{Method, Request, Response};
use http_body::Body as _;
use protocol::encoding::ENCODING;
use protocol::stream::{DESTINATION, restore_authorization, take_unproven};
use protocol::{ClusterName, Encoding};
use tokio::time::timeout;
use tracing::debug;

use super::account::Account;
use crate::registry::{OpenError, Registry};
use crate::tunnel::{Demand, NO_ROOM, PendingResponse, TunnelError, unread_body};

/// The time limit for the client to accept the bytes that arrived before a reset.
const LAST_BYTES_TIMEOUT: Duration = Duration::from_secs(5);

/// Forwards the stream to an agent that is connected to this process. If there is none, resets the stream with
/// `REFUSED_STREAM`, because nobody has processed the request (RFC 9113, section 8.7).
pub(super) async fn forward(
    registry: &Registry,
    cluster: &ClusterName,
    request: Request<Inbound>,
    mut respond: SendResponse<Bytes>,
    account: Account,
) -> Result<(), h2::Error> {
    let Some(end) = registry.end_of(cluster) else {
        respond.send_reset(Reason::REFUSED_STREAM);
        return Ok(());
    };
    let (mut parts, inbound) = request.into_parts();
    inbound.set_owner(account.owner);
    let is_proven = !take_unproven(&mut parts.headers);
    let (is_pipe, is_bodiless) = (parts.method == Method::CONNECT, inbound.is_end_stream());
    let length = parts.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    let unread = if is_bodiless || is_pipe { 0 } else { unread_body(length) };
    let demand = Demand { cluster, is_proven, unread };
    let is_destination = parts.headers.contains_key(DESTINATION);
    let opened = match registry.reserve_own(cluster, Some(demand)).await {
        // It would connect the bytes to its API server.
        Ok(reservation) if is_destination && !reservation.tunnel().abilities.connects_destinations => {
            Err((Reason::REFUSED_STREAM, "the agent does not connect to destinations".to_owned()))
        }
        Ok(reservation) => {
            if !reservation.tunnel().abilities.indexes_authorization {
                restore_authorization(&mut parts.headers);
            }
            let mut head = Request::new(());
            *head.method_mut() = parts.method;
            *head.uri_mut() = parts.uri;
            *head.headers_mut() = parts.headers;
            if let Some(protocol) = parts.extensions.get::<h2::ext::Protocol>() {
                head.extensions_mut().insert(protocol.clone());
            }
            reservation.open(head, is_bodiless).map_err(|error| (Reason::REFUSED_STREAM, error.to_string()))
        }
        Err(error @ OpenError::Full(_)) => Err((NO_ROOM, error.to_string())),
        Err(error @ OpenError::NoAgent(_)) => Err((Reason::REFUSED_STREAM, error.to_string())),
    };
    let (sender, pending) = match opened {
        Ok(stream) => stream.split(),
        Err((reason, why)) => {
            debug!(why, "not forwarded");
            respond.send_reset(reason);
            return Ok(());
        }
    };
    let upload = async {
        if is_bodiless { Ok(0) } else { send_body(inbound, Outbound::charged(sender, account.queue.clone())).await }
    };
    let download = respond_with(pending, respond, &account);
    let transfer = async {
        if is_pipe {
            both(async { upload.await.map_err(closed) }, download).await
        } else {
            response(upload, download).await
        }
    };
    // The configuration may be changed while the stream is open: the agent may no longer serve the cluster.
    end.run_until_cancelled(Box::pin(transfer)).await.unwrap_or_else(|| Err(Reason::CANCEL.into()))
}

/// Until the response ends. That may be before the end of the request, and whoever reads it decides what that means.
async fn response<T>(
    upload: impl Future<Output = T>,
    download: impl Future<Output = Result<(), h2::Error>>,
) -> Result<(), h2::Error> {
    let mut download = pin!(download);
    tokio::select! {
        ended = &mut download => ended,
        _ = upload => download.await,
    }
}

/// Until both directions of a pipe have ended, or one has failed.
async fn both(
    upload: impl Future<Output = Result<u64, h2::Error>>,
    download: impl Future<Output = Result<(), h2::Error>>,
) -> Result<(), h2::Error> {
    let (mut upload, mut download) = (pin!(upload), pin!(download));
    tokio::select! {
        sent = &mut upload => match sent {
            // The agent has sent everything, and reads no more (RFC 9113, section 8.1).
            Err(error) if error.reason() != Some(Reason::NO_ERROR) => {
                // The client still gets the bytes that arrived before.
                let _received = timeout(LAST_BYTES_TIMEOUT, download).await;
                Err(error)
            }
            _ => download.await,
        },
        received = &mut download => match received {
            Ok(()) => match upload.await {
                Err(error) if error.reason() != Some(Reason::NO_ERROR) => Err(error),
                _ => Ok(()),
            },
            failed => failed,
        },
    }
}

/// Passes the response on.
async fn respond_with(
    pending: PendingResponse,
    mut respond: SendResponse<Bytes>,
    account: &Account,
) -> Result<(), h2::Error> {
    let answered = tokio::select! {
        answered = pending.wait() => answered,
        reset = poll_fn(|cx| respond.poll_reset(cx)) => return reset.map(drop),
    };
    let (response, mut lease) = match answered {
        Ok(answered) => answered,
        Err(error) => {
            respond.send_reset(match error {
                TunnelError::Full(_) => NO_ROOM,
                TunnelError::Unsent { .. } => Reason::REFUSED_STREAM,
                TunnelError::Broken { .. } => Reason::INTERNAL_ERROR,
            });
            return Ok(());
        }
    };
    // The agent has authenticated the client, or refused it.
    lease.prove();
    let (mut parts, body) = response.into_parts();
    if lease.histories().is_none() {
        // The agent cannot encode bodies, so only the host can have set these headers.
        Encoding::Identity.write(&mut parts.headers);
    } else if parts.headers.contains_key(ENCODING) {
        lease.mark_compressed();
    }
    let is_bodiless = body.is_end_stream();
    let stream = respond.send_response(Response::from_parts(parts, ()), is_bodiless)?;
    if is_bodiless {
        return Ok(());
    }
    send_body(body, Outbound::charged(stream, account.queue.clone())).await.map(drop).map_err(closed)
}

/// The error of a stream. A failure of its source has reset it.
fn closed<E>(error: SendError<E>) -> h2::Error {
    match error {
        SendError::Closed(error) => error,
        SendError::Body(_) => Reason::CANCEL.into(),
    }
}

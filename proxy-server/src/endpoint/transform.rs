//! The fifth phase, and the phase of the response: makes the request for the agent, and the response for the client.

use std::sync::Arc;

use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, Request, Response, StatusCode, Uri, header};
use protocol::encoding::{UnknownEncoding, accept_blocks};
use protocol::stream::{unswitched, write_cluster};
use protocol::{ClusterName, Encoding, audit_id};
use request_traces::{Phase, Span};
use tokio_util::sync::CancellationToken;

use super::admit::{Admitted, Charge};
use super::body::ResponseBody;
use super::connection::{Connection, Services};
use super::deadline::Timed;
use super::documents::{Document, Key};
use super::head;
use super::peer::ClientIdentity;
use super::prefetch::{Decision, Forward, Prefetched, Prefetching, Reply, Stores};
use super::received::Received;
use super::record::{Record, Recorded, Refused, Responded};
use super::refusal::Refusal;
use super::route::Routed;
use super::send::{AgentResponse, Content, Outgoing, Sending, charged_head};
use super::until_removed::Lasting;
use super::upgrade::{Session, Upgrade};
use super::upload::Upload;
use super::watch_end::watch_end;
use crate::config::Cluster;

/// The context of a request that [`response`] needs.
#[derive(Debug)]
pub(super) struct Sent {
    record: Record,
    connection: Arc<Connection>,
    cluster: Arc<Cluster>,
    end: CancellationToken,
    charge: Charge,
    /// A body that the agent does not need.
    unwanted: Option<Upload>,
    upgrade: Option<Upgrade>,
    /// The time in the tunnel, if the request is traced.
    in_tunnel: Option<Box<Span>>,
    /// If the request is for a document: its key, and the last one.
    document: Option<(Key, Option<Document>)>,
    prefetching: Prefetching,
}

/// A request for the inner services, or a response that needs none of them, and its context.
pub(super) type Sendable = (Forward<Timed<Lasting<Outgoing>>>, Sent);

/// Makes the head for the agent, and decides whether a body follows.
pub(super) fn request(admitted: Admitted) -> Result<Sendable, Box<Refused>> {
    let Admitted { routed, identity, charge } = admitted;
    let Routed { recorded, cluster, end, is_long_running } = routed;
    let Recorded { head: mut client_head, upload, record, connection } = recorded;
    let prepared = Upgrade::begin(&mut client_head).and_then(|upgrade| {
        if charge.is_anonymous() {
            // Agents do not read the body of an anonymous request, so it is not sent.
            client_head.headers_mut().remove(header::CONTENT_LENGTH);
        }
        Ok((upgrade, agent_head(&mut client_head, &cluster.name, identity.as_deref())?))
    });
    let (upgrade, mut head) = match prepared {
        Ok(prepared) => prepared,
        Err(refusal) => {
            upload.discard(&connection.services.tasks);
            return Err(Box::new(Refused { refusal, record }));
        }
    };
    if let Some(audited) = &record.audited {
        audited.announce(head.headers_mut());
    }
    let (content, unwanted) = match &upgrade {
        Some(upgrade) => {
            upgrade.extend(&mut head);
            (Content::Upgrade, Some(upload))
        }
        None if upload.is_empty() || charge.is_anonymous() => (Content::Nothing, Some(upload)),
        None => (Content::Body(upload, content_length(head.headers())), None),
    };
    let in_tunnel = record.span.as_ref().and_then(|span| span.phase(Phase::Tunnel));
    connection.services.traces.write_for_agent(in_tunnel.as_deref(), head.headers_mut());
    let (mut document, mut prefetching, mut prefetched) = (None, Prefetching::Not, None);
    if upgrade.is_none() {
        accept_blocks(head.headers_mut());
        // A span or an audit event requires a request to the agent. A long head would stay in memory with the connection.
        let is_observed = record.span.is_some() || record.audited.is_some();
        if unwanted.is_some() && charge.is_proven() && !is_observed && charged_head(&head) == 0 {
            let Services { documents, expectations, .. } = &*connection.services;
            match connection.last_check.request(Stores { documents, expectations }, &cluster, &mut head) {
                Decision::Ask(role) => prefetching = role,
                Decision::Answer(response) => prefetched = Some(response),
            }
        } else {
            connection.last_check.end();
        }
        document = Key::of(&head).filter(|_| prefetched.is_none()).map(|key| {
            let last = connection.services.documents.get(&cluster, &key);
            (key, last)
        });
        if let Some((_, Some(last))) = &document {
            last.digest().write(head.headers_mut());
        }
    } else {
        connection.last_check.end();
    }
    let outgoing = Outgoing { head, content, cluster: Arc::clone(&cluster), is_proven: charge.is_proven() };
    let lasting = Lasting { cluster: Arc::clone(&cluster), end: end.clone(), request: outgoing };
    let timed = Timed { is_long_running: is_long_running || upgrade.is_some(), request: lasting };
    let forward = prefetched.map_or(Forward::Request(timed), Forward::Prefetched);
    Ok((
        forward,
        Sent { record, connection, cluster, end, charge, unwanted, upgrade, in_tunnel, document, prefetching },
    ))
}

/// Makes the client's response. Records the identity and the fault that the agent's response names.
pub(super) fn response(sent: Sent, result: Result<Reply<AgentResponse>, Refusal>) -> Result<Responded, Box<Refused>> {
    let Sent { mut record, connection, cluster, end, mut charge, unwanted, upgrade, in_tunnel, document, prefetching } =
        sent;
    if let (Some(mut in_tunnel), Err(refusal)) = (in_tunnel, &result) {
        in_tunnel.failed(refusal.fault().word());
    }
    if let Some(unwanted) = unwanted {
        unwanted.discard(&connection.services.tasks);
    }
    let (mut response, mut lease, sending) = match result {
        Ok(Reply::Agent(AgentResponse { response, lease, sending })) => (response, lease, sending),
        Ok(Reply::Prefetched(Prefetched { head, document })) => {
            let mut response = Response::new(());
            *response.headers_mut() = head;
            record.responded(response.status(), response.headers());
            head::response(response.headers_mut());
            let guard = charge.into_guard(&connection, None, None);
            let body = ResponseBody::tunnel(Received::stored(document), guard, end);
            return Ok(Responded { response: response.map(|()| body), record });
        }
        Err(refusal) => return Err(Box::new(Refused { refusal, record })),
    };
    audit_id::restore(response.headers_mut());
    record.responded(response.status(), response.headers());
    record.watch_end = record.is_watch.then(|| watch_end(&connection.services, &lease));
    charge.learn(&connection, &cluster.name, &response, &mut lease);
    let is_switched = response.status() == StatusCode::OK;
    let (mut parts, inbound) = response.into_parts();
    if upgrade.is_some() {
        parts.status = unswitched(parts.status, &parts.headers);
    }
    // The agent does not encode responses to upgrades.
    let histories = lease.histories().filter(|_| upgrade.is_none()).cloned();
    let encoding = match histories.as_ref().map_or(Ok(Encoding::Identity), |_| Encoding::take(&mut parts.headers)) {
        Ok(encoding) => encoding,
        Err(unknown) => return Err(Box::new(Refused { refusal: unknown.into(), record })),
    };
    if encoding != Encoding::Identity {
        lease.mark_compressed();
    }
    let (key, last) = document.unzip();
    let stored = match (encoding, last.flatten()) {
        (Encoding::Held, None) => return Err(Box::new(Refused { refusal: UnknownEncoding.into(), record })),
        (Encoding::Held, last) => last,
        (Encoding::Identity | Encoding::Blocks | Encoding::Primed, _) => None,
    };
    let length = content_length(&parts.headers).filter(|_| upgrade.is_none());
    let is_served = |cluster: &ClusterName| connection.services.registry.end_of(cluster).is_some();
    let (expectations, head) = (&connection.services.expectations, (parts.status, &parts.headers));
    connection.last_check.responded(expectations, &cluster, prefetching, head, is_served);
    head::response(&mut parts.headers);
    let response = match (upgrade, sending) {
        (Some(upgrade), Sending::Upgrade(outbound)) if is_switched => {
            let guard = charge.into_guard(&connection, Some(lease), None);
            let session = Session { inbound, outbound, guard, connection, end };
            upgrade.switch(parts, session, &mut record)
        }
        (_, sending) => {
            let received = match (stored, encoding, &histories) {
                (Some(document), ..) => Received::stored(document),
                (None, Encoding::Blocks, Some(histories)) => {
                    let key = key.filter(|_| parts.status == StatusCode::OK);
                    let arriving = key.map(|key| connection.services.documents.begin(&cluster, key));
                    Received::blocks(inbound, (histories, lease.link()), length, arriving)
                }
                (None, Encoding::Primed, Some(histories)) => {
                    Received::blocks(inbound, (&histories.primed(), lease.link()), length, None)
                }
                _ => Received::identity(inbound, length),
            };
            let guard = charge.into_guard(&connection, Some(lease), sending.guard());
            Response::from_parts(parts, ResponseBody::tunnel(received, guard, end))
        }
    };
    Ok(Responded { response, record })
}

/// The head of the request for the agent.
fn agent_head(
    client_head: &mut Request<()>,
    cluster: &ClusterName,
    identity: Option<&ClientIdentity>,
) -> Result<Request<()>, Refusal> {
    let mut head = Request::new(());
    let headers = client_head.headers_mut();
    head::request(headers)?;
    *head.headers_mut() = std::mem::take(headers);
    let headers = head.headers_mut();
    headers.remove(header::HOST);
    write_cluster(cluster, headers);
    if let Some(identity) = identity {
        identity.write(headers);
    }
    *head.method_mut() = client_head.method().clone();
    // The agent ignores the authority, but HTTP/2 requires one.
    let mut uri = http::uri::Parts::default();
    uri.scheme = Some(Scheme::HTTPS);
    uri.authority = Some(Authority::from_static("atoll"));
    let target = client_head.uri().path_and_query().cloned();
    uri.path_and_query = Some(target.unwrap_or_else(|| PathAndQuery::from_static("/")));
    *head.uri_mut() = Uri::from_parts(uri).map_err(|_| Refusal::BadTarget)?;
    Ok(head)
}

fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

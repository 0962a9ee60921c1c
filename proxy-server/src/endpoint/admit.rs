//! Admission of a request before the tunnel: its cluster, its caller, and the limits.
//!
//! A request reaches an agent only after its limits are checked.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use h2::SendStream;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderValue, Request, Response, Uri, header};
use protocol::Identity;
use protocol::stream::CLUSTER;
use tokio::time::sleep;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::body::Held;
use super::caller::Caller;
use super::connection::{Connection, Services};
use super::record::Record;
use super::refusal::Refusal;
use super::{head, route};
use crate::config::Cluster;
use crate::limits::{Limit, StreamPlace, Unanswered};
use crate::tunnel::{Answer, Demand, Lease, OpenError, Tunnel, UNREAD};

/// The time in which an unproven client must read its response, which is short.
const UNPROVEN_TIMEOUT: Duration = Duration::from_secs(60);

/// Heads up to this size, in bytes, are not charged.
const SMALL_HEAD: usize = 4096;

/// An admitted request.
#[derive(Debug)]
pub(super) struct Admitted {
    /// The cluster that it is for.
    pub(super) cluster: Arc<Cluster>,
    /// Cancelled when the requests for that cluster must end.
    pub(super) end: CancellationToken,
    identity: Option<Identity>,
    caller: Caller,
    place: StreamPlace,
}

/// Finds the cluster of a request and the client to charge, and checks the limits. Keep the second value until the
/// response head has arrived: if it is dropped, the request counts as abandoned.
pub(super) fn admit(
    connection: &Connection,
    request: &mut Request<()>,
    record: &mut Record,
) -> Result<(Admitted, Unanswered), Refusal> {
    let services = &*connection.services;
    let cluster = route::route(connection, request)?;
    record.routed(&services.metrics, &cluster.name, request.method(), request.uri());
    let end = services.registry.end_of(&cluster.name).ok_or_else(|| Refusal::NoCluster(cluster.name.to_string()))?;
    let identity = peer_identity(connection, &cluster)?;
    if let Some(identity) = &identity {
        record.identified(&identity.user);
    }
    let limits = &services.limits;
    let exceeded = |limit| {
        limits.note(&cluster.name, limit);
        Refusal::TooMany(limit)
    };
    let caller = Caller::of(limits, &cluster.name, identity.as_ref(), request.headers());
    if let Some(user) = caller.user() {
        connection.place.prove(Some(&cluster.name), user).map_err(exceeded)?;
    }
    let network = connection.place.network();
    let party = caller.party(network);
    if limits.abandoned.is_exceeded(&cluster.name, &party) {
        return Err(exceeded(Limit::Abandoned));
    }
    let place = limits.streams.enter(&cluster.name, caller.client(network)).map_err(exceeded)?;
    let unanswered = limits.abandoned.watch(&cluster.name, party);
    Ok((Admitted { cluster, end, identity, caller, place }, unanswered))
}

/// The identity that a certificate proves. A certificate of another cluster is refused even if the request has a token,
/// too, because the client would act as another user than it expects.
fn peer_identity(connection: &Connection, cluster: &Cluster) -> Result<Option<Identity>, Refusal> {
    let ca = connection
        .services
        .client_cas
        .get(&cluster.name)
        .ok_or_else(|| Refusal::NoCluster(cluster.name.to_string()))?;
    Ok(connection.peer.identify(&ca.borrow(), SystemTime::now())?)
}

/// The bytes of a body that may be unread at a time, by its length.
pub(super) fn unread_body(length: Option<u64>) -> usize {
    length.map_or(UNREAD, |length| usize::try_from(length).unwrap_or(UNREAD).min(UNREAD))
}

/// The bytes of a head that are charged.
fn charged_head<B>(head: &Request<B>) -> usize {
    let fields = head.headers().iter().map(|(name, value)| name.as_str().len() + value.len());
    let target = head.uri().path_and_query().map_or(0, |target| target.as_str().len());
    let bytes = fields.sum::<usize>() + target;
    if bytes > SMALL_HEAD { bytes } else { 0 }
}

// === impl Admitted ===

impl Admitted {
    /// Whether the client has shown no credential.
    pub(super) fn is_anonymous(&self) -> bool {
        self.caller.is_anonymous()
    }

    /// The head of the request for the agent.
    pub(super) fn head<B>(&mut self, request: &mut Request<B>) -> Result<Request<()>, Refusal> {
        let mut head = Request::new(());
        let headers = request.headers_mut();
        head::request(headers)?;
        *head.headers_mut() = std::mem::take(headers);
        let headers = head.headers_mut();
        headers.remove(header::HOST);
        let name = HeaderValue::from_str(self.cluster.name.as_str()).expect("a DNS label is a header value");
        headers.insert(CLUSTER, name);
        if let Some(identity) = self.identity.take() {
            identity.write(headers);
        }
        *head.method_mut() = request.method().clone();
        // The agent ignores the authority, but HTTP/2 requires one.
        let mut uri = http::uri::Parts::default();
        uri.scheme = Some(Scheme::HTTPS);
        uri.authority = Some(Authority::from_static("atoll"));
        let target = request.uri().path_and_query().cloned();
        uri.path_and_query = Some(target.unwrap_or_else(|| PathAndQuery::from_static("/")));
        *head.uri_mut() = Uri::from_parts(uri).map_err(|_| Refusal::BadTarget)?;
        Ok(head)
    }

    /// Opens the stream of the request. `body` is the number of bytes of its body that may be unread at a time, if it
    /// has one.
    pub(super) async fn open(
        &self,
        services: &Services,
        tunnel: &Arc<Tunnel>,
        head: Request<()>,
        body: Option<usize>,
    ) -> Result<(SendStream<Bytes>, Answer), Refusal> {
        let unread = charged_head(&head) + body.unwrap_or_default();
        let demand = Demand { cluster: &self.cluster.name, is_proven: self.caller.user().is_some(), unread };
        match tunnel.open_for(demand, head, body.is_none()).await {
            Ok(opened) => Ok(opened.split()),
            Err(OpenError::Broken(error)) => Err(Refusal::Tunnel(error)),
            Err(OpenError::Full(_)) => {
                services.limits.note(&self.cluster.name, Limit::Tunnel);
                Err(Refusal::TooMany(Limit::Tunnel))
            }
        }
    }

    /// Learns the identity of the caller from the agent's response.
    pub(super) fn heard<B>(&mut self, connection: &Connection, response: &Response<B>, lease: &mut Lease) {
        let Some(user) = self.caller.heard(&connection.services.limits, response.status(), response.headers()) else {
            return;
        };
        // If that user has too many connections, the next request on this one is refused.
        let _ = connection.place.prove(Some(&self.cluster.name), &user);
        self.place.prove(Arc::clone(&user));
        lease.prove();
    }

    /// The resources that are held until the client has read the response. If that takes too long, the connection of an
    /// unproven client is closed.
    pub(super) fn hold(self, connection: &Connection, lease: Lease, upload: Option<DropGuard>) -> Held {
        let watched = (!self.place.is_proven()).then(|| {
            let (read, place) = (CancellationToken::new(), connection.place.clone());
            let guard = read.clone().drop_guard();
            connection.services.tasks.spawn("unproven answer", async move {
                if read.run_until_cancelled(sleep(UNPROVEN_TIMEOUT)).await.is_some() {
                    place.evict();
                }
            });
            guard
        });
        Held { _lease: lease, _place: self.place, _upload: upload, _watched: watched }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_charged_what_may_be_unread() {
        let mut head = Request::new(());
        head.headers_mut().insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        assert_eq!(charged_head(&head), 0);
        assert_eq!([Some(1_000), Some(u64::MAX), None].map(unread_body), [1_000, UNREAD, UNREAD]);
        *head.uri_mut() = format!("/api?labelSelector={}", "a".repeat(SMALL_HEAD)).parse().unwrap();
        let with_uri = charged_head(&head);
        assert!(with_uri > SMALL_HEAD);
        head.headers_mut().insert(header::AUTHORIZATION, HeaderValue::from_str(&"a".repeat(SMALL_HEAD)).unwrap());
        assert!(charged_head(&head) > with_uri + SMALL_HEAD);
    }
}

//! The fourth phase: the limits of clients, before the first byte of a request enters the tunnel.
//!
//! `tower::limit` does not fit: it has one number for all requests, counts a request until the head of its response, and
//! lets the others wait. The limits here are those of a user, a network and a cluster. A request counts until the end of
//! its body, and what exceeds a limit is refused at once.

use std::sync::Arc;
use std::time::Duration;

use http::Response;
use protocol::ClusterName;
use tokio::time::sleep;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::authenticate::Authenticated;
use super::body::Held;
use super::caller::Caller;
use super::connection::Connection;
use super::peer::Proven;
use super::record::Refused;
use super::refusal::Refusal;
use super::route::Routed;
use crate::limits::{Limit, StreamPlace, Unanswered};
use crate::tunnel::Lease;

/// The time in which an unproven client must read its response, which is short.
const UNPROVEN_TIMEOUT: Duration = Duration::from_secs(60);

/// An admitted request.
#[derive(Debug)]
pub(super) struct Admitted {
    pub(super) routed: Routed,
    pub(super) identity: Option<Arc<Proven>>,
    pub(super) charge: Charge,
}

/// The client to which a request is charged, and the request's place in the limits.
#[derive(Debug)]
pub(super) struct Charge {
    caller: Caller,
    place: StreamPlace,
}

/// Checks the limits. If the second value is dropped, the request counts as abandoned.
pub(super) fn admit(authenticated: Authenticated) -> Result<(Admitted, Unanswered), Box<Refused>> {
    let Authenticated { routed, identity, caller } = authenticated;
    match enter(&routed.recorded.connection, &routed.cluster.name, &caller) {
        Ok((place, unanswered)) => Ok((Admitted { routed, identity, charge: Charge { caller, place } }, unanswered)),
        Err(limit) => {
            routed.recorded.connection.services.limits.note(&routed.cluster.name, limit);
            Err(routed.recorded.refuse(Refusal::TooMany(limit)))
        }
    }
}

fn enter(connection: &Connection, cluster: &ClusterName, caller: &Caller) -> Result<(StreamPlace, Unanswered), Limit> {
    let limits = &connection.services.limits;
    if let Some(user) = caller.user() {
        connection.place.prove(Some(cluster), user)?;
    }
    let network = connection.place.network();
    let party = caller.party(network);
    if limits.abandoned.is_exceeded(cluster, &party) {
        return Err(Limit::Abandoned);
    }
    let place = limits.streams.enter(cluster, caller.client(network))?;
    Ok((place, limits.abandoned.watch(cluster, party)))
}

/// The request has a result, so its client has not abandoned it.
pub(super) fn answered<T>(unanswered: Unanswered, result: T) -> T {
    unanswered.answered();
    result
}

// === impl Charge ===

impl Charge {
    /// Whether the client has shown no credential.
    pub(super) fn is_anonymous(&self) -> bool {
        self.caller.is_anonymous()
    }

    /// Whether the client is proven.
    pub(super) fn is_proven(&self) -> bool {
        self.caller.user().is_some()
    }

    /// Learns the identity of the caller from the agent's response.
    pub(super) fn heard<B>(
        &mut self,
        connection: &Connection,
        cluster: &ClusterName,
        response: &Response<B>,
        lease: &mut Lease,
    ) {
        let limits = &connection.services.limits;
        let Some(user) = self.caller.heard(limits, response.status(), response.headers()) else { return };
        // If that user has too many connections, the next request on this one is refused.
        let _ = connection.place.prove(Some(cluster), &user);
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

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
use super::body::ResponseGuard;
use super::caller::Caller;
use super::connection::{Connection, Services};
use super::peer::ClientIdentity;
use super::record::Refused;
use super::refusal::Refusal;
use super::route::Routed;
use crate::limits::{AbandonGuard, Limit, StreamPermit, User};
use crate::tunnel::Lease;

/// The time in which an unproven client must read its response, which is short.
const UNPROVEN_TIMEOUT: Duration = Duration::from_secs(60);

/// An admitted request.
#[derive(Debug)]
pub(super) struct Admitted {
    pub(super) routed: Routed,
    pub(super) identity: Option<Arc<ClientIdentity>>,
    pub(super) charge: Charge,
}

/// The client to which a request is charged, and the permit of the request.
#[derive(Debug)]
pub(super) struct Charge {
    caller: Caller,
    permit: StreamPermit,
}

/// Checks the limits. If the client resets the request before it has a result, the guard counts it as abandoned.
pub(super) fn admit(authenticated: Authenticated) -> Result<(Admitted, AbandonGuard), Box<Refused>> {
    let Authenticated { routed, identity, caller } = authenticated;
    match enter(&routed.recorded.connection, &routed.cluster.name, &caller) {
        Ok((permit, guard)) => Ok((Admitted { routed, identity, charge: Charge { caller, permit } }, guard)),
        Err(limit) => {
            routed.recorded.connection.services.limits.count_refused(&routed.cluster.name, limit);
            Err(routed.recorded.refuse(Refusal::TooMany(limit)))
        }
    }
}

fn enter(
    connection: &Connection,
    cluster: &ClusterName,
    caller: &Caller,
) -> Result<(StreamPermit, AbandonGuard), Limit> {
    let limits = &connection.services.limits;
    if let Some(user) = caller.user() {
        connection.permit.prove(Some(cluster), user)?;
    }
    let network = connection.permit.network();
    let party = caller.party(network);
    if limits.abandoned.is_exceeded(cluster, &party) {
        return Err(Limit::Abandoned);
    }
    let permit = limits.streams.enter(cluster, caller.client(network))?;
    Ok((permit, limits.abandoned.guard(cluster, party)))
}

/// The request has a result, so its client has not abandoned it.
pub(super) fn answered<T>(guard: AbandonGuard, result: T) -> T {
    guard.disarm();
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

    /// A token has been verified here: from now on, the request and the connection count for its user.
    pub(super) fn prove(&mut self, connection: &Connection, cluster: &ClusterName, user: &User) -> Result<(), Limit> {
        self.caller.prove(&connection.services.limits, user);
        if !self.permit.is_proven() {
            self.permit.prove(Arc::clone(user));
        }
        connection.permit.prove(Some(cluster), user)
    }

    /// The token of the client is refused.
    pub(super) fn forget(&self, services: &Services) {
        self.caller.forget(&services.limits);
    }

    /// Learns the identity of the caller from the agent's response.
    pub(super) fn learn<B>(
        &mut self,
        connection: &Connection,
        cluster: &ClusterName,
        response: &Response<B>,
        lease: &mut Lease,
    ) {
        let limits = &connection.services.limits;
        let Some(user) = self.caller.learn(limits, response.status(), response.headers()) else { return };
        // If that user has too many connections, the next request on this one is refused.
        let _ = connection.permit.prove(Some(cluster), &user);
        self.permit.prove(Arc::clone(&user));
        lease.prove();
    }

    /// A guard that is held until the client has read the response. If that takes too long, the connection of an unproven
    /// client is closed.
    pub(super) fn into_guard(
        self,
        connection: &Connection,
        lease: Option<Lease>,
        upload: Option<DropGuard>,
    ) -> ResponseGuard {
        let read_timeout = (!self.permit.is_proven()).then(|| {
            let (read, permit) = (CancellationToken::new(), connection.permit.clone());
            let guard = read.clone().drop_guard();
            connection.services.tasks.spawn("unproven response", async move {
                if read.run_until_cancelled(sleep(UNPROVEN_TIMEOUT)).await.is_some() {
                    permit.evict();
                }
            });
            guard
        });
        ResponseGuard { _lease: lease, _permit: self.permit, _upload: upload, _read_timeout: read_timeout }
    }
}

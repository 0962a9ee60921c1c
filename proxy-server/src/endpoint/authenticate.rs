//! The third phase: verifies the client certificate. [`verify`](super::verify) and the agent authenticate tokens. The span of a
//! traced request begins here, because the identity says whether the client decides that. API servers begin it at the same place.

use std::sync::Arc;
use std::time::SystemTime;

use request_traces::Trust;
use tracing::info;

use super::caller::Caller;
use super::connection::Connection;
use super::peer::ClientIdentity;
use super::record::{Recorded, Refused};
use super::refusal::Refusal;
use super::route::Routed;
use crate::config::Cluster;

/// A request with the credential of its client.
#[derive(Debug)]
pub(super) struct Authenticated {
    pub(super) routed: Routed,
    /// The identity that a certificate proves.
    pub(super) identity: Option<Arc<ClientIdentity>>,
    pub(super) caller: Caller,
}

/// Verifies the client certificate against the CA of the cluster, and looks for a token.
pub(super) fn authenticate(mut routed: Routed) -> Result<Authenticated, Box<Refused>> {
    let identity = match peer_identity(&routed.recorded.connection, &routed.cluster) {
        Ok(identity) => identity,
        Err(refusal) => return Err(routed.recorded.refuse(refusal)),
    };
    if let Some(identity) = &identity {
        routed.recorded.record.identified(identity);
    }
    let Recorded { head, record, connection, .. } = &mut routed.recorded;
    let trust = identity.as_ref().map_or(Trust::Link, |identity| identity.trust);
    record.traced(&connection.services.traces, &routed.cluster.name, head, trust);
    let (limits, headers) = (&routed.recorded.connection.services.limits, routed.recorded.head.headers());
    let caller = Caller::of(limits, &routed.cluster.name, identity.as_deref(), headers);
    Ok(Authenticated { routed, identity, caller })
}

/// The identity that a certificate proves. A certificate of another cluster is refused even if the request has a token,
/// too, because the client would act as another user than it expects.
fn peer_identity(connection: &Connection, cluster: &Cluster) -> Result<Option<Arc<ClientIdentity>>, Refusal> {
    let ca = connection.services.client_cas.get(&cluster.name);
    let ca = ca.ok_or_else(|| Refusal::NoCluster(cluster.name.to_string()))?;
    let Some(identity) = connection.peer.identify(&ca.borrow(), SystemTime::now())? else { return Ok(None) };
    // Before the check: if the list changes in between, the connection ends.
    connection.peer.accepted(&cluster.name, &identity)?;
    if connection.services.client_cas.revocations().revokes_user(&cluster.name, identity.certificate()) {
        info!(user = %identity.user, cluster = %cluster.name, "the client certificate is revoked");
        return Err(Refusal::Revoked);
    }
    Ok(Some(identity))
}

#[cfg(test)]
mod tests {
    use http::{Request, header};

    use super::super::fixture;
    use super::super::route::route;
    use super::*;

    #[tokio::test]
    async fn a_token_does_not_prove_an_identity_here() {
        let connection = fixture::connection(Some("ke-beijing"));
        let bearer = Request::get("/api").header(header::AUTHORIZATION, "Bearer t").body(()).unwrap();
        let routed = route(fixture::recorded(bearer, &connection).await).unwrap();
        let authenticated = authenticate(routed).unwrap();
        assert!(authenticated.identity.is_none() && authenticated.caller.user().is_none());
        assert!(!authenticated.caller.is_anonymous());
        let routed = route(fixture::recorded(Request::new(()), &connection).await).unwrap();
        assert!(authenticate(routed).unwrap().caller.is_anonymous());
    }
}

//! Checks whether an API server that was down may get requests again.
//!
//! After a restart, an API server listens before it has read its RBAC objects, and responds with 403 to all requests
//! until then. So a probe requests `/readyz`, as a load balancer does (kubernetes.io, "Kubernetes API health
//! endpoints").

use http::{Request, Uri};
use kubeconfig::{Address, Bearer};
use tokio::time::timeout;

use super::connection::{Connection, Driver};
use super::error::{ConnectReason, Stage};
use super::head::Head;
use super::limits::HANDSHAKE_TIMEOUT;
use super::request_body::Kind;

/// Sends the probe on a new connection that no request uses yet. Only success counts as ready: an API server that does
/// not allow the probe is used only if there is no other one.
pub(super) async fn ready(
    address: &Address,
    bearer: Option<&Bearer>,
    connection: &Connection,
    driver: &mut Driver,
) -> Result<(), ConnectReason> {
    let failed = |error: &dyn std::error::Error| ConnectReason::Http(error.to_string().into());
    let (mut parts, ()) = Request::new(()).into_parts();
    parts.uri = Uri::from_static("/readyz");
    let request = Head::plain(parts, &Kind::Empty).and_then(|head| head.http2(address, bearer));
    let request = request.map_err(|error| failed(&error))?;
    let status = timeout(HANDSHAKE_TIMEOUT, connection.request(driver, request))
        .await
        .map_err(|_| ConnectReason::Silent(Stage::Readiness))?
        .map_err(|error| failed(&error))?;
    if status.is_success() { Ok(()) } else { Err(ConnectReason::NotReady(status)) }
}

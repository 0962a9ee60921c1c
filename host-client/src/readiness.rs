//! Whether an API server that was away may have requests again.
//!
//! One that was restarted listens before it has read its RBAC objects, and answers 403 to everybody meanwhile. So a
//! probe asks `/readyz`, as a load balancer does (kubernetes.io, "Kubernetes API health endpoints").

use http::{Request, Uri};
use ops::files::Watched;
use tokio::time::timeout;

use super::connection::{Connection, Driver};
use super::error::{ConnectReason, Stage};
use super::head::Head;
use super::limits::HANDSHAKE;
use super::pool::Common;
use super::request_body::Kind;

/// Asks on a new connection that nobody else uses yet. Anything but success is no: an API server that does not let us
/// ask is used only if there is no other.
pub(super) async fn ready(common: &Common, connection: &Connection, driver: &mut Driver) -> Result<(), ConnectReason> {
    let failed = |error: &dyn std::error::Error| ConnectReason::Http(error.to_string().into());
    let (mut parts, ()) = Request::new(()).into_parts();
    parts.uri = Uri::from_static("/readyz");
    let bearer = common.bearer.as_ref().map(Watched::borrow);
    let request = Head::plain(parts, &Kind::Empty).and_then(|head| head.http2(&common.address, bearer.as_deref()));
    let request = request.map_err(|error| failed(&error))?;
    let status = timeout(HANDSHAKE, connection.ask(driver, request))
        .await
        .map_err(|_| ConnectReason::Silent(Stage::Readiness))?
        .map_err(|error| failed(&error))?;
    if status.is_success() { Ok(()) } else { Err(ConnectReason::NotReady(status)) }
}

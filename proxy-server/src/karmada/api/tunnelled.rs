//! Requests to a virtual cluster as its administrator. Like those of clients, they pass through a tunnel and the checks of
//! the agent.
//!
//! They need no certificate: the agent trusts the identity headers of a tunnel, because only the proxy-server writes
//! them. A certificate would require the key of the client CA, which may be kept elsewhere.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, Uri};
use protocol::stream::CLUSTER;
use protocol::{ClusterName, Identity};
use tunnel::outbound::send_bytes;

use super::{Route, RouteError, collect};
use crate::registry::Registry;

/// The user. Its name in the host's audit log is `vc:CLUSTER:atoll-auto-join`.
const USER: &str = "atoll-auto-join";
/// The group of administrators of the virtual cluster. It has no rights on the host.
const GROUP: &str = "system:masters";

/// Reaches one virtual cluster.
#[derive(Clone, Debug)]
pub struct Tunnelled {
    registry: Arc<Registry>,
    cluster: ClusterName,
}

// === impl Tunnelled ===

impl Tunnelled {
    /// To this cluster.
    pub fn new(registry: Arc<Registry>, cluster: ClusterName) -> Self {
        Self { registry, cluster }
    }

    fn head(&self, request: &Request<Bytes>) -> Request<()> {
        let mut head = Request::new(());
        *head.method_mut() = request.method().clone();
        *head.headers_mut() = request.headers().clone();
        let headers = head.headers_mut();
        let name = HeaderValue::from_str(self.cluster.as_str()).expect("a DNS label is a header value");
        headers.insert(CLUSTER, name);
        let identity = Identity { user: USER.to_owned(), groups: vec![GROUP.to_owned()], uid: None, credential: None };
        identity.write(headers);
        let uri = Uri::builder().scheme("https").authority("atoll");
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        *head.uri_mut() = uri.path_and_query(path).build().expect("all three parts are there");
        head
    }
}

impl Route for Tunnelled {
    async fn exchange(&self, request: Request<Bytes>) -> Result<Response<Bytes>, RouteError> {
        let reservation = self.registry.reserve(&self.cluster, None).await?;
        let head = self.head(&request);
        let body = request.into_body();
        let (mut stream, pending) = reservation.open(head, body.is_empty())?.split();
        if !body.is_empty() {
            send_bytes(&mut stream, body, true).await.map_err(|error| RouteError::Broken(error.into()))?;
        }
        let (response, _lease) = pending.wait().await?;
        let (parts, body) = response.into_parts();
        Ok(Response::from_parts(parts, collect(body).await?))
    }
}

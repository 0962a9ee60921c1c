//! The cluster of a CONNECT.

use std::sync::Arc;

use http::{Request, header};
use protocol::destination::CLUSTER;
use protocol::registration::Mode;

use super::refusal::ConnectRefusal;
use crate::config::Cluster;
use crate::registry::{AtAddress, Clusters};
use protocol::Authority;

/// The port of a virtual cluster's endpoint, in `https://<cluster>.<domain>:443`.
const ENDPOINT_PORT: u16 = 443;

/// The target of a CONNECT.
#[derive(Debug)]
pub(super) enum Route {
    /// TLS ends here.
    Virtual(Arc<Cluster>),
    /// TLS ends at the edge cluster's API server.
    Physical(Arc<Cluster>),
    /// Bytes to another address of a site, for clients who may reach it.
    Destination(Authority),
}

/// Finds the cluster by the request target. A different Host header is refused, because logs or other proxies could trust
/// it.
pub(super) fn route<B>(request: &Request<B>, clusters: &Clusters, domain: &str) -> Result<Route, ConnectRefusal> {
    let target = request.uri().authority().ok_or(ConnectRefusal::BadAuthority)?;
    let authority: Authority = target.as_str().parse().map_err(|_| ConnectRefusal::BadAuthority)?;
    if let Some(host) = request.headers().get(header::HOST) {
        let host = host.to_str().ok().and_then(|host| with_port(host, authority.port()));
        if host.as_ref() != Some(&authority) {
            return Err(ConnectRefusal::HostDiffers);
        }
    }
    if request.headers().contains_key(CLUSTER) {
        return Ok(Route::Destination(authority));
    }
    match clusters.by_api_server(&authority) {
        Some(AtAddress::One(cluster)) => return Ok(Route::Physical(Arc::clone(cluster))),
        Some(AtAddress::Several) => return Err(ConnectRefusal::Ambiguous(authority, domain.to_owned())),
        None => {}
    }
    let Some(label) = authority.label_in(domain) else {
        return Err(ConnectRefusal::NotAllowed(authority));
    };
    let cluster = clusters.get(label).ok_or_else(|| ConnectRefusal::NoCluster(authority.clone()))?;
    match cluster.mode {
        Mode::Physical => Ok(Route::Physical(Arc::clone(cluster))),
        Mode::Virtual if authority.port() == ENDPOINT_PORT => Ok(Route::Virtual(Arc::clone(cluster))),
        Mode::Virtual => Err(ConnectRefusal::Port(authority)),
    }
}

/// A Host header may omit the port.
fn with_port(host: &str, port: u16) -> Option<Authority> {
    host.parse().or_else(|_| format!("{host}:{port}").parse()).ok()
}

#[cfg(test)]
mod tests;

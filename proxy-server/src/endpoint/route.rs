//! The cluster of a request, and the remaining path.

use std::sync::Arc;

use http::uri::PathAndQuery;
use http::{Request, Uri, header};

use super::connection::Connection;
use super::refusal::Refusal;
use crate::config::Cluster;

/// The prefix of paths that name the cluster, on connections without a name.
const PREFIX: &str = "/clusters/";

/// Finds the cluster. Removes `/clusters/<name>` if it names the cluster.
pub(super) fn route<B>(connection: &Connection, request: &mut Request<B>) -> Result<Arc<Cluster>, Refusal> {
    let clusters = connection.services.registry.clusters();
    if let Some(bound) = &connection.bound {
        let cluster = clusters.get(bound.as_str()).ok_or_else(|| Refusal::NoCluster(bound.to_string()))?;
        check_host(&connection.services.domain, bound.as_str(), request)?;
        return Ok(Arc::clone(cluster));
    }
    let target = request.uri().path_and_query().map_or("/", PathAndQuery::as_str);
    let rest = target.strip_prefix(PREFIX).ok_or(Refusal::NoClusterNamed)?;
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (name, rest) = rest.split_at(end);
    // A physical cluster has no endpoint here: its own API server ends TLS.
    let cluster = clusters.get(name).filter(|cluster| cluster.client_ca.is_some());
    let cluster = cluster.ok_or_else(|| Refusal::NoCluster(name.chars().take(63).collect()))?;
    let rest = if rest.starts_with('/') { rest.to_owned() } else { format!("/{rest}") };
    let rest = PathAndQuery::try_from(rest).map_err(|_| Refusal::BadTarget)?;
    let cluster = Arc::clone(cluster);
    *request.uri_mut() = Uri::from(rest);
    Ok(cluster)
}

/// Refuses a Host (or `:authority`) that names another cluster than the connection, because logs, caches or others
/// could trust it. Names that belong to no cluster are allowed: port-forwards and `tls-server-name` use any names.
fn check_host<B>(domain: &str, bound: &str, request: &Request<B>) -> Result<(), Refusal> {
    let host = match request.uri().authority() {
        Some(authority) => Some(authority.host().to_owned()),
        None => request.headers().get(header::HOST).map(|host| {
            let host = String::from_utf8_lossy(host.as_bytes());
            host.rsplit_once(':').map_or(&*host, |(host, _)| host).to_owned()
        }),
    };
    let Some(host) = host else { return Ok(()) };
    let host = host.to_ascii_lowercase();
    match host.strip_suffix(domain).and_then(|label| label.strip_suffix('.')) {
        Some(label) if label != bound => Err(Refusal::HostDiffers),
        _ => Ok(()),
    }
}

//! The second phase: the cluster of a request, the remaining path, and how long the request may last.

use std::sync::Arc;

use audit::{Audited, Received};
use http::uri::PathAndQuery;
use http::{Method, Request, Uri, header};
use kube_wire::RequestInfo;
use protocol::registration::Mode;
use tokio_util::sync::CancellationToken;

use super::connection::Connection;
use super::record::{Recorded, Refused};
use super::refusal::Refusal;
use crate::config::Cluster;

/// The prefix of paths that name the cluster, if neither CONNECT nor SNI names one.
const PREFIX: &str = "/clusters/";

/// A request whose cluster is known.
#[derive(Debug)]
pub(super) struct Routed {
    pub(super) recorded: Recorded,
    pub(super) cluster: Arc<Cluster>,
    /// Cancelled when the requests for that cluster must end.
    pub(super) end: CancellationToken,
    pub(super) is_long_running: bool,
}

/// Finds the cluster, and adds it to the record. If the cluster has an audit log, the record of the request for it begins.
pub(super) fn route(mut recorded: Recorded) -> Result<Routed, Box<Refused>> {
    let cluster = match find(&recorded.connection, &mut recorded.head) {
        Ok(cluster) => cluster,
        Err(refusal) => return Err(recorded.refuse(refusal)),
    };
    let Recorded { head, record, connection, .. } = &mut recorded;
    let info = RequestInfo::parse(head.method(), head.uri().path(), head.uri().query()).ok();
    record.routed(&connection.services.metrics, &cluster.name, info.as_ref());
    if let Some(auditor) = connection.services.auditors.get(&cluster.name) {
        let (method, uri, headers) = (head.method(), head.uri(), head.headers());
        let received = Received { method, uri, headers, info: info.as_ref(), remote: connection.address() };
        record.audited = Some(Audited::begin(auditor, received));
    }
    let is_long_running = info.as_ref().is_some_and(RequestInfo::is_long_running);
    match connection.services.registry.end_of(&cluster.name) {
        Some(end) => Ok(Routed { recorded, cluster, end, is_long_running }),
        None => Err(recorded.refuse(Refusal::NoCluster(cluster.name.to_string()))),
    }
}

/// Finds the cluster. Removes `/clusters/<name>` if it names the cluster.
fn find<B>(connection: &Connection, request: &mut Request<B>) -> Result<Arc<Cluster>, Refusal> {
    // In the tunnel, CONNECT would be a stream to a physical cluster, which the agent opens without authentication.
    if request.method() == Method::CONNECT {
        return Err(Refusal::MethodNotAllowed);
    }
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
    // A physical cluster has no endpoint here: TLS ends at its API server.
    let cluster = clusters.get(name).filter(|cluster| cluster.mode == Mode::Virtual);
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
        Some(authority) => Some(authority.host().as_bytes()),
        None => request.headers().get(header::HOST).map(|host| {
            let host = host.as_bytes();
            let colon = host.iter().rposition(|byte| *byte == b':');
            &host[..colon.unwrap_or(host.len())]
        }),
    };
    match host.and_then(|host| label_in(host, domain)) {
        Some(label) if !label.eq_ignore_ascii_case(bound.as_bytes()) => Err(Refusal::HostDiffers),
        _ => Ok(()),
    }
}

/// The part of a host name before this domain, in any case.
fn label_in<'h>(host: &'h [u8], domain: &str) -> Option<&'h [u8]> {
    let (label, end) = host.split_at_checked(host.len().checked_sub(domain.len())?)?;
    label.strip_suffix(b".").filter(|_| end.eq_ignore_ascii_case(domain.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use super::*;

    /// The cluster of a request and the target that its agent sees, or the status of the refusal.
    async fn routed(bound: Option<&str>, uri: &str, host: &str) -> Result<(String, String), u16> {
        let request = Request::get(uri).header(header::HOST, host).body(()).unwrap();
        let routed = route(fixture::recorded(request, &fixture::connection(bound)).await);
        let routed = routed.map_err(|refused| refused.refusal.status().code)?;
        Ok((routed.cluster.name.to_string(), routed.recorded.head.uri().to_string()))
    }

    #[tokio::test]
    async fn the_connection_or_the_path_names_the_cluster() {
        let found = |target: &str| Ok(("ke-beijing".to_owned(), target.to_owned()));
        let bound = Some("ke-beijing");
        for (bound, uri, host, expected) in [
            (bound, "/api?a=b", "ke-beijing.atoll.internal:443", found("/api?a=b")),
            (bound, "/clusters/x", "localhost", found("/clusters/x")),
            (bound, "/api", "KE-HANGZHOU.atoll.internal", Err(400)),
            (Some("nowhere"), "/api", "localhost", Err(404)),
            (None, "/clusters/ke-beijing/api?a=b", "127.0.0.1", found("/api?a=b")),
            (None, "/clusters/ke-beijing?a=b", "127.0.0.1", found("/?a=b")),
            (None, "/clusters/branch-7/api", "127.0.0.1", Err(404)),
            (None, "/api", "ke-beijing.atoll.internal", Err(404)),
        ] {
            assert_eq!(routed(bound, uri, host).await, expected, "{bound:?} {uri} {host}");
        }
    }

    #[tokio::test]
    async fn connect_is_not_a_method_of_the_api() {
        for (bound, uri) in [(Some("ke-beijing"), "10.0.0.1:6443"), (None, "/clusters/ke-beijing/api")] {
            let request = Request::connect(uri).body(()).unwrap();
            let refused = route(fixture::recorded(request, &fixture::connection(bound)).await).unwrap_err();
            assert_eq!(refused.refusal.status().code, 405, "{uri}");
        }
    }
}

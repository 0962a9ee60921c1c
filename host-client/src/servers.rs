//! The API servers of the host cluster, in order of preference.
//!
//! All serve the same cluster. Requests go to the first one that works, because reads from one cache never go back in
//! time, and reads from several caches might. An API server that is down gets probes but no requests, unless all are
//! down.

use std::sync::Arc;

use ops::drain::Tasks;
use ops::files::Watched;
use ops::workers::PerWorker;
use tokio::time::Instant;

use super::connection::Permit;
use super::counters::{Counters, ServerStatistics};
use super::dial::{BoxIo, Dial, Version};
use super::error::{ConnectError, Unreachable};
use super::health::Health;
use super::pool::{Common, Pool, Size};
use kubeconfig::Address;
use kubeconfig::Bearer;

/// What a request may do to others on its connection. Each class has separate connections, so that neither a thousand watches nor a
/// large list delays a short request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// It ends with its response.
    Brief,
    /// A watch or a followed log.
    Lasting,
    /// A pod or a Service responds, through the API server's proxy. It can break the connection to this client: with headers of
    /// 112 KiB, for example, because `h2` then ends the connection.
    Proxied,
}

/// All API servers.
pub(super) struct Servers(Vec<Server>);

struct Server {
    common: Common,
    /// A connection and the requests on it are on the same worker.
    brief: PerWorker<Pool>,
    lasting: PerWorker<Pool>,
    /// Each connection carries one request at a time.
    proxied: PerWorker<Pool>,
}

// === impl Servers ===

impl Servers {
    /// Opens no connection.
    pub(super) fn new(
        addresses: &[Address],
        dial: &Arc<dyn Dial>,
        bearer: Option<&Watched<Bearer>>,
        counters: &Arc<Counters>,
        tasks: &Tasks,
    ) -> Self {
        let servers = addresses.iter().map(|address| {
            let common = Common {
                address: address.clone(),
                dial: Arc::clone(dial),
                health: Arc::new(Health::new()),
                bearer: bearer.cloned(),
                counters: Arc::clone(counters),
                tasks: tasks.clone(),
            };
            let pools = |size: Size| PerWorker::new(|| Pool::new(common.clone(), size));
            let (brief, lasting) = (pools(Size { warm: 1, ..Size::SHARED }), pools(Size::SHARED));
            Server { brief, lasting, proxied: pools(Size::SINGLE), common }
        });
        Self(servers.collect())
    }

    /// A permit for a stream at the first API server that accepts a connection, and the address of that server.
    pub(super) async fn permit(&self, class: Class) -> Result<(Permit, &Address), Unreachable> {
        let mut attempts = Vec::new();
        for server in self.in_order() {
            let pool = match class {
                Class::Brief => server.brief.here(),
                Class::Lasting => server.lasting.here(),
                Class::Proxied => server.proxied.here(),
            };
            match pool.permit().await {
                Ok(permit) => return Ok((permit, &server.common.address)),
                Err(error) => attempts.push(error),
            }
        }
        Err(Unreachable(attempts))
    }

    /// A separate HTTP/1.1 connection, and its address.
    pub(super) async fn connect(&self) -> Result<(BoxIo, &Address), Unreachable> {
        let mut attempts = Vec::new();
        for Server { common, .. } in self.in_order() {
            match common.dial.dial(&common.address, Version::Http1).await {
                Ok(io) => {
                    common.health.works(Instant::now());
                    return Ok((io, &common.address));
                }
                Err(reason) => {
                    common.health.failed(Instant::now());
                    attempts.push(ConnectError { address: common.address.clone(), reason });
                }
            }
        }
        Err(Unreachable(attempts))
    }

    /// Probes servers that are down and due, and closes idle connections. While `draining`, it closes all idle ones.
    pub(super) fn tend(&self, now: Instant, draining: bool) {
        for server in &self.0 {
            let due = server.common.health.down_until().is_some_and(|due| now >= due);
            if due && !draining {
                server.brief.elsewhere().probe();
            }
            server.pools().for_each(|pool| pool.tend(now, draining));
        }
    }

    /// Lets new requests use new connections, because the credentials have changed.
    pub(super) fn retire(&self) {
        for server in &self.0 {
            server.pools().for_each(Pool::retire);
        }
    }

    /// Retires all pools: they accept no new requests.
    pub(super) fn close(&self) {
        for server in &self.0 {
            server.pools().for_each(Pool::close);
        }
    }

    pub(super) fn statistics(&self) -> Vec<ServerStatistics> {
        let each = self.0.iter().map(|server| {
            let sizes = server.pools().map(Pool::size);
            let (connections, streams) = sizes.fold((0, 0), |sum, size| (sum.0 + size.0, sum.1 + size.1));
            let up = server.common.health.down_until().is_none();
            ServerStatistics { address: server.common.address.clone(), up, connections, streams }
        });
        each.collect()
    }

    /// The servers that are up in the configured order, then the others, ordered by their next attempt.
    fn in_order(&self) -> Vec<&Server> {
        let mut servers: Vec<_> = self.0.iter().map(|server| (server.common.health.down_until(), server)).collect();
        servers.sort_by_key(|(down_until, _)| *down_until);
        servers.into_iter().map(|(_, server)| server).collect()
    }
}

// === impl Server ===

impl Server {
    fn pools(&self) -> impl Iterator<Item = &Pool> {
        self.brief.iter().chain(&self.lasting).chain(&self.proxied)
    }
}

// === impl Class ===

impl Class {
    /// Determines the class as an API server does: the subresource `proxy`, `watch` of a list, `follow` of a log. The deprecated
    /// path of watches (`/api/v1/watch/...`) counts too.
    pub(super) fn of(path: &http::uri::PathAndQuery) -> Self {
        let query = kube_wire::query::Query::new(path.query().unwrap_or_default());
        let is_set = |key| match query.first(key) {
            Ok(value) => value.is_some_and(|value| kube_wire::query::parse_bool(&value)),
            Err(_) => false,
        };
        let is_watch_path =
            || path.path().contains("/watch") && path.path().split('/').any(|segment| segment == "watch");
        if is_proxied(path.path()) {
            Self::Proxied
        } else if is_set("watch") || is_set("follow") || is_watch_path() {
            Self::Lasting
        } else {
            Self::Brief
        }
    }
}

/// Whether the API server forwards the request to a pod, a Service or a node: `/api/v1/namespaces/NAMESPACE/pods/NAME/proxy/...`, for
/// example.
fn is_proxied(path: &str) -> bool {
    let Some(rest) = path.strip_prefix("/api/v1/") else { return false };
    let mut segments = rest.split('/');
    // RESOURCE/NAME/proxy, after namespaces/NAMESPACE or not.
    match segments.nth(2) {
        Some("proxy") => true,
        Some(_) => rest.starts_with("namespaces/") && segments.nth(1) == Some("proxy"),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_a_class() {
        for (path, class) in [
            ("/api/v1/namespaces/a/pods/b", Class::Brief),
            ("/api/v1/namespaces/a/pods/proxy", Class::Brief),
            ("/api/v1/namespaces/a/pods?watch=1", Class::Lasting),
            ("/api/v1/watch/pods", Class::Lasting),
            ("/api/v1/namespaces/a/pods/b/log?follow=true", Class::Lasting),
            ("/api/v1/namespaces/a/pods/b/proxy", Class::Proxied),
            ("/api/v1/namespaces/a/pods/http:b:80/proxy/x?watch=1", Class::Proxied),
            ("/api/v1/namespaces/a/services/b/proxy/", Class::Proxied),
            ("/api/v1/namespaces/pods/services/b/proxy/", Class::Proxied),
            ("/api/v1/nodes/b/proxy/metrics", Class::Proxied),
            ("/apis/example.com/v1/namespaces/a/pods/b/proxy", Class::Brief),
        ] {
            assert_eq!(Class::of(&path.parse().unwrap()), class, "{path}");
        }
    }
}

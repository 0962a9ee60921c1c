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
use super::pool::{Common, Pool};
use kubeconfig::Address;
use kubeconfig::Bearer;

/// The expected duration of a request. Each class has separate connections, so that neither a thousand watches nor a
/// large list delays a short request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// It ends with its response.
    Brief,
    /// A watch or a followed log.
    Lasting,
}

/// All API servers.
pub(super) struct Servers(Vec<Server>);

struct Server {
    common: Common,
    /// A connection and the requests on it are on the same worker.
    brief: PerWorker<Pool>,
    lasting: PerWorker<Pool>,
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
            let pools = |warm| PerWorker::new(|| Pool::new(common.clone(), warm));
            Server { brief: pools(1), lasting: pools(0), common }
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
        self.brief.iter().chain(&self.lasting)
    }
}

// === impl Class ===

impl Class {
    /// Determines the class from the query, as an API server does: `watch` of a list, `follow` of a log. The deprecated
    /// path of watches (`/api/v1/watch/...`) counts too.
    pub(super) fn of(path: &http::uri::PathAndQuery) -> Self {
        let query = kube_wire::query::Query::new(path.query().unwrap_or_default());
        let is_set = |key| match query.first(key) {
            Ok(value) => value.is_some_and(|value| kube_wire::query::parse_bool(&value)),
            Err(_) => false,
        };
        let is_watch_path =
            || path.path().contains("/watch") && path.path().split('/').any(|segment| segment == "watch");
        if is_set("watch") || is_set("follow") || is_watch_path() { Self::Lasting } else { Self::Brief }
    }
}

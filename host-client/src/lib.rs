//! The client of a host's API server.
//!
//! All upstream requests use [`Host`]. It has the addresses and the agent's own credentials, keeps HTTP/2 connections
//! with free streams, and repeats requests that were certainly not processed. What is *not* here: authentication and
//! authorisation of callers, rewriting, and Kubernetes' resources (except in [`api`], which the agent's own loops use).
//!
//! Reading order:
//! - [`Host::send`], then `exchange` (one request on one connection) and `retry` (whether to repeat it);
//! - `servers` (chooses an address), `health` and `readiness` (whether an address is usable), `pool` (chooses a
//!   connection), `connection`, `dial`;
//! - `switch` (upgrades), `head` (the head that is sent), [`RequestBody`], [`HostBody`], [`HostError`];
//! - `access` (addresses and credentials, which can change), with `in_cluster` and the crate `kubeconfig`;
//! - `upkeep` and `limits`; `in_memory` (a host in memory).

mod access;
pub mod api;
pub mod collect;
pub mod config;
mod connection;
mod counters;
mod dial;
mod error;
mod exchange;
mod head;
mod health;
mod host_body;
mod in_cluster;
pub mod in_memory;
mod limits;
mod pool;
mod readiness;
mod request_body;
mod retry;
mod servers;
mod switch;
mod upkeep;
mod upload;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use http::{Request, Response};
use ops::drain::Tasks;
use ops::files::Reloader;
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::debug;
use tunnel::Budget;

use access::{Access, Origin};
use counters::Counters;
pub use counters::{ServerStatistics, Statistics};
pub use error::{ConnectError, ConnectReason, Fault, HostError, InvalidRequest, OpenError, Stage, Unreachable};
use exchange::exchange;
use head::Head;
pub use host_body::{HostBody, HostBodyError};
pub use in_cluster::InClusterError;
pub use kubeconfig::{Address, AddressError, KubeconfigError, TokenError};
use kubeconfig::{address, bearer, client_config};
pub use request_body::{BoxError, RequestBody, empty, full, stream};
use retry::Retries;
use servers::Class;
pub use switch::{Switched, UpgradedStream};

/// The time limit of kube-apiserver for a request that is not long-running (`--request-timeout`).
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// The time limit for a request in the queues of API Priority and Fairness: a quarter of [`REQUEST_TIMEOUT`]
/// (`DefaultBuildHandlerChain` in apiserver's `pkg/server/config.go`).
pub const QUEUE_WAIT: Duration = Duration::from_secs(15);

/// The host's API server, with all its addresses. Clones share their state. After the last clone is dropped, each
/// connection closes when its streams have ended.
#[derive(Clone)]
pub struct Host(Arc<Held>);

struct Held {
    core: Arc<Core>,
    /// Ends the upkeep when it is dropped.
    _gone: DropGuard,
}

/// The state that requests and the upkeep share.
struct Core {
    access: ArcSwap<Access>,
    budget: Arc<Budget>,
    counters: Arc<Counters>,
    tasks: Tasks,
}

// === impl Host ===

impl Host {
    /// Reads the configuration and the files that it names, and reloads them when they change. It opens no connection,
    /// so that the agent can start while the API server is down. It must be called within a tokio runtime.
    pub fn open(config: &config::Host, reloader: &Reloader, tasks: Tasks) -> Result<Self, OpenError> {
        let counters = Arc::new(Counters::default());
        let origin = Origin::new(config, reloader, Arc::clone(&counters), tasks.clone())?;
        let (access, renewals) = origin.open()?;
        let (host, core, gone) = Self::begin(access, counters, tasks);
        let stop = core.tasks.clone();
        let followed = origin.follow(renewals, core, gone);
        let until_stopped = async move {
            tokio::select! {
                () = followed => {}
                () = stop.cancelled() => {}
            }
        };
        host.0.core.tasks.spawn("host credentials", until_stopped);
        Ok(host)
    }

    /// Sends one request, and returns when the head of the response has arrived. The body of the response streams.
    ///
    /// The target is a path with its query. This function sets the authority, removes an `Authorization` header, and
    /// adds the agent's own credentials. All other headers are those of the caller, including the headers for
    /// impersonation.
    ///
    /// A request that was certainly not processed (no connection, REFUSED_STREAM, beyond a GOAWAY) is sent again,
    /// possibly to another address, unless its body is a stream that has been read from. A GET or HEAD is also sent
    /// again once if its connection broke before the response. Dropping the future cancels the request at the API
    /// server.
    pub async fn send(&self, request: Request<RequestBody>) -> Result<Response<HostBody>, HostError> {
        let core = &*self.0.core;
        let mut counted = Some(core.counters.request());
        let (parts, mut body) = request.into_parts();
        let head = Head::plain(parts, body.kind())?;
        let class = Class::of(head.path());
        let mut retries = Retries::new(head.method());
        loop {
            let access = core.access.load_full();
            let (permit, address) = access.servers.permit(class).await?;
            let bearer = access.bearer.as_ref().map(ops::files::Watched::borrow);
            let request = head.http2(address, bearer.as_deref())?;
            let resources = exchange::Resources { permit, budget: &core.budget, tasks: &core.tasks };
            let failure = match exchange(resources, request, &mut body, &mut counted).await {
                Ok(response) => return Ok(response),
                Err(failure) => failure,
            };
            if !(body.is_whole() && retries.again(&failure)) {
                return Err(failure.into_error(address));
            }
            debug!(%address, ?failure, "sent again");
            core.counters.retry();
        }
    }

    /// Sends a request to switch protocols, as its `Upgrade` header says, on a separate HTTP/1.1 connection. It tries
    /// other addresses if it cannot connect, but never sends the request twice.
    pub async fn switch(&self, request: Request<RequestBody>) -> Result<Switched, HostError> {
        let core = &*self.0.core;
        let counted = core.counters.request();
        let (parts, body) = request.into_parts();
        let head = Head::upgrade(parts)?;
        let access = core.access.load_full();
        let (io, address) = access.servers.connect().await?;
        let bearer = access.bearer.as_ref().map(ops::files::Watched::borrow);
        let request = head.http1(address, bearer.as_deref())?.map(|()| body);
        switch::switch(io, address, request, counted, &core.tasks).await
    }

    /// The numbers for metrics.
    pub fn statistics(&self) -> Statistics {
        let core = &self.0.core;
        core.counters.read(core.access.load().servers.statistics())
    }

    fn begin(access: Access, counters: Arc<Counters>, tasks: Tasks) -> (Self, Arc<Core>, CancellationToken) {
        let core = Arc::new(Core {
            access: ArcSwap::from_pointee(access),
            budget: Budget::new(limits::UNREAD),
            counters,
            tasks,
        });
        let gone = CancellationToken::new();
        core.tasks.spawn("host upkeep", upkeep::upkeep(Arc::clone(&core), gone.clone()));
        let held = Held { core: Arc::clone(&core), _gone: gone.clone().drop_guard() };
        (Self(Arc::new(held)), core, gone)
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").field("statistics", &self.statistics()).finish_non_exhaustive()
    }
}

#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;

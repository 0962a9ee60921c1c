//! The host: sends requests to its API server.

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use http::{Request, Response};
use ops::drain::Tasks;
use ops::files::{Reloader, Watched};
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::debug;
use tunnel::Budget;

use super::core::Core;
use super::counters::{Counters, Statistics};
use super::error::{HostError, OpenError};
use super::exchange::{self, exchange};
use super::follow::follow;
use super::head::Head;
use super::host_body::HostBody;
use super::request_body::RequestBody;
use super::retry::Retries;
use super::servers::Class;
use super::switch::{Switched, switch};
use super::upkeep::upkeep;
use super::upstream::{Upstream, UpstreamSource};
use super::{config, limits};

/// The host's API server, with all its addresses. Clones share their state. After the last clone is dropped, each
/// connection closes when its streams have ended.
#[derive(Clone)]
pub struct Host(Arc<Inner>);

struct Inner {
    core: Arc<Core>,
    /// Ends the upkeep when it is dropped.
    _gone: DropGuard,
}

// === impl Host ===

impl Host {
    /// Reads the configuration and the files that it names, and reloads them when they change. It opens no connection,
    /// so that the agent can start while the API server is down. It must be called within a tokio runtime.
    pub fn open(config: &config::Host, reloader: &Reloader, tasks: Tasks) -> Result<Self, OpenError> {
        let counters = Arc::new(Counters::default());
        let source = UpstreamSource::new(config, reloader, Arc::clone(&counters), tasks.clone())?;
        let (upstream, renewals) = source.open()?;
        let (host, core, gone) = Self::begin(upstream, counters, tasks);
        let stop = core.tasks.clone();
        let followed = follow(source, renewals, core, gone);
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
            let upstream = core.upstream.load_full();
            let (permit, address) = upstream.servers.permit(class).await?;
            let bearer = upstream.bearer.as_ref().map(Watched::borrow);
            let request = head.http2(address, bearer.as_deref())?;
            let resources = exchange::Resources { permit, budget: &core.budget, tasks: &core.tasks };
            let failure = match exchange(resources, request, &mut body, &mut counted).await {
                Ok(response) => return Ok(response),
                Err(failure) => failure,
            };
            if !(body.is_whole() && retries.should_repeat(&failure)) {
                return Err(failure.into_error(address));
            }
            debug!(%address, ?failure, "sending the request again");
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
        let upstream = core.upstream.load_full();
        let (io, address) = upstream.servers.connect().await?;
        let bearer = upstream.bearer.as_ref().map(Watched::borrow);
        let request = head.http1(address, bearer.as_deref())?.map(|()| body);
        switch(io, address, request, counted, &core.tasks).await
    }

    /// The numbers for metrics.
    pub fn statistics(&self) -> Statistics {
        let core = &self.0.core;
        core.counters.read(core.upstream.load().servers.statistics())
    }

    /// A host with this upstream. Also returns what the upkeep shares, and what ends it.
    pub(super) fn begin(
        upstream: Upstream,
        counters: Arc<Counters>,
        tasks: Tasks,
    ) -> (Self, Arc<Core>, CancellationToken) {
        let core = Arc::new(Core {
            upstream: ArcSwap::from_pointee(upstream),
            budget: Budget::new(limits::UNREAD),
            counters,
            tasks,
        });
        let gone = CancellationToken::new();
        core.tasks.spawn("host upkeep", upkeep(Arc::clone(&core), gone.clone()));
        let held = Inner { core: Arc::clone(&core), _gone: gone.clone().drop_guard() };
        (Self(Arc::new(held)), core, gone)
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").field("statistics", &self.statistics()).finish_non_exhaustive()
    }
}

#[cfg(test)]
impl Host {
    pub(super) fn tasks(&self) -> &Tasks {
        &self.0.core.tasks
    }
}

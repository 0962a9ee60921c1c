//! Keeps tunnels to proxy-servers up, and tells each proxy-server which clusters this process serves.
//!
//! ```text
//! resolve -> TCP (or CONNECT through HTTPS_PROXY) -> TLS 1.3 -> POST /atoll/tunnel -> 101 -> serve -> pause -> ...
//! ```
//!
//! An agent dials all proxy-servers, and a proxy-server dials the others. Each implements [`Service`], which serves the
//! streams of a tunnel. What is *not* here: how a stream is served.
//!
//! Reading order: [`Dial`], `address` (the tunnels to one address), `demand` (how many tunnels), `connect` and
//! `register` (one attempt), [`enrol`] and [`user_certificate`] (certificates), [`routes`] (the state of all tunnels), [`streams`] (the
//! streams of one tunnel), [`offers`] (the clusters).

mod address;
mod connect;
mod demand;
mod egress;
pub mod enrol;
mod error;
pub mod offers;
mod register;
pub mod routes;
mod stop;
pub mod streams;
pub mod user_certificate;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use ops::backoff::Backoff;
use ops::drain::Tasks;
use ops::files::Watched;
use ops::tls::Identity;
use ops::workers::Workers;
use protocol::{AgentId, Authority, Offer, ProtocolVersion, Refusal, RefusalReason, Registration, Verdict};
use rustls::ClientConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::{Instrument, debug, info, warn};

use address::Address;
use connect::{Target, establish};
pub use egress::{Egress, InvalidProxy};
use error::CONNECT_TIMEOUT;
pub use error::DialError;
use register::Established;
use routes::{Route, Tunnels, Verdicts};
pub use stop::Stop;

/// The interval of name resolution. A proxy-server that is added behind a name gets a tunnel within this time.
const RESOLVE_INTERVAL: Duration = Duration::from_secs(30);

/// The interval of name resolution while a name has no address.
const RESOLVE_RETRY_INTERVAL: Duration = Duration::from_secs(2);

/// An attempt that lasted at least this long was successful, so the back-off begins anew.
const HEALTHY: Duration = Duration::from_secs(10);

/// When a proxy-server is stopping, its agents dial again within this time, and not all at once.
const MOVE_TIME: Duration = Duration::from_secs(1);

/// The maximum pause that a proxy-server can demand.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(3600);

/// The pauses between the attempts of an agent. Thousands of agents may lose the same proxy-server, and all of them should be back
/// within 30 s after it has started again (`bench storm`).
pub const BACKOFF_OF_AGENTS: Backoff = Backoff::new(Duration::from_millis(250), Duration::from_secs(20));

/// Addresses from which proxy-servers have dialled this process. A new one may not have its address in DNS yet. None for an agent.
pub type Callers = watch::Receiver<BTreeSet<IpAddr>>;

/// What a process tells a proxy-server, and what it does with the streams that the proxy-server opens.
pub trait Service: Clone + Send + Sync + 'static {
    /// What the process tells the proxy-server when it registers.
    fn registration(&self) -> Registration;

    /// Serves a tunnel until it ends, and returns the reason. When `stop` requests it, the tunnel accepts no more
    /// streams, and ends when its last stream ends. `verdicts` gets the verdicts of the proxy-server about the clusters
    /// of this process.
    fn serve<S>(self, io: S, stop: &Stop, verdicts: Verdicts) -> impl Future<Output = Result<String, h2::Error>> + Send
    where
        S: AsyncRead + AsyncWrite + Send + Unpin;
}

/// The callers of an agent.
pub fn no_callers() -> Callers {
    watch::channel(BTreeSet::new()).1
}

/// The registration of this software. What it can do is the same for agents and for proxy-servers.
pub fn registration(agent: &AgentId, instance: &str, clusters: Vec<Offer>) -> Registration {
    Registration {
        protocol: ProtocolVersion::CURRENT,
        agent: agent.clone(),
        instance: instance.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        clusters: clusters.into_iter().map(|offer| Offer { member: None, ..offer }).collect(),
        capabilities: [
            protocol::offers::CAPABILITY,
            protocol::encoding::CAPABILITY,
            protocol::field_table::CAPABILITY,
            protocol::stream::AUTHORIZATION_CAPABILITY,
            protocol::stream::DESTINATION_CAPABILITY,
        ]
        .map(str::to_owned)
        .into(),
    }
}

/// Dials proxy-servers.
#[derive(Clone, Debug)]
pub struct Dial<S> {
    /// The TLS settings, with the identity of this process. After a renewal, the next attempt uses the new certificate.
    pub tls: Arc<ClientConfig>,
    /// Reports when the certificate in `tls` has been renewed.
    pub identity: Watched<Identity>,
    /// The HTTP proxy of the site, if there is one.
    pub egress: Arc<Egress>,
    /// Serves the streams of tunnels.
    pub service: S,
    /// The pauses between attempts.
    pub backoff: Backoff,
    /// The tasks of tunnels.
    pub tasks: Tasks,
    /// Gets the state of each tunnel, for readiness and status.
    pub tunnels: Arc<Tunnels>,
    /// The threads of tunnels.
    pub workers: Workers,
}

/// A tunnel that is served.
struct Running {
    /// Returns the route when the tunnel has ended.
    serving: Pin<Box<dyn Future<Output = Route> + Send>>,
    /// The last verdict of the proxy-server.
    verdict: watch::Receiver<Verdict>,
}

// === impl Dial ===

impl<S: Service> Dial<S> {
    /// Keeps tunnels to one configured server up. Its name may resolve to several addresses, each of which gets a
    /// tunnel. Each of the `callers` gets one, too, with the port and the name of the server.
    pub async fn keep(self, server: Authority, mut callers: Callers) {
        let mut targets: HashMap<Target, DropGuard> = HashMap::new();
        // The status of the server while it has no address.
        let mut unresolved = Some(self.tunnels.route(&server, None));
        loop {
            let called = callers.borrow_and_update().clone();
            match self.targets(&server, &called).await {
                Ok(found) => {
                    unresolved = None;
                    targets.retain(|target, _| found.contains(target));
                    for target in found {
                        targets.entry(target.clone()).or_insert_with(|| {
                            let stop = CancellationToken::new();
                            let (dial, to) = (self.clone(), server.clone());
                            let dial = move |stop| dial.clone().keep_one(to.clone(), target.clone(), stop);
                            let address = Address::new(server.clone(), self.workers.clone(), self.tasks.clone(), dial);
                            self.tasks.spawn("address", address.keep(stop.clone()));
                            stop.drop_guard()
                        });
                    }
                }
                Err(error) => {
                    // Tunnels that are up stay, even if the name does not resolve any more.
                    if targets.is_empty() {
                        warn!(error = &error as &dyn std::error::Error, "cannot resolve the proxy-server");
                        unresolved.get_or_insert_with(|| self.tunnels.route(&server, None)).down(&error);
                    }
                }
            }
            let pause = if targets.is_empty() { RESOLVE_RETRY_INTERVAL } else { RESOLVE_INTERVAL };
            tokio::select! {
                () = sleep(pause) => {}
                Ok(()) = callers.changed() => {}
            }
        }
    }

    /// The addresses of a server.
    async fn targets(&self, server: &Authority, callers: &BTreeSet<IpAddr>) -> Result<HashSet<Target>, DialError> {
        if self.egress.for_server(server).is_some() {
            return Ok(HashSet::from([Target::Named]));
        }
        let found = tokio::net::lookup_host((server.host(), server.port())).await;
        let found = found.map_err(|source| DialError::Resolve { server: server.clone(), source })?;
        let called = callers.iter().map(|address| SocketAddr::new(*address, server.port()));
        Ok(found.chain(called).map(Target::Address).collect())
    }

    /// Keeps one tunnel up until `stop` is cancelled.
    async fn keep_one(self, server: Authority, target: Target, stop: CancellationToken) {
        let mut backoff = self.backoff;
        let mut route = self.tunnels.route(&server, target.address());
        let mut renewals = self.identity.changes();
        // Ends the tunnel with the previous certificate when the one that replaces it is up.
        let mut replaced: Option<Stop> = None;
        // A tunnel that ends while the process stops has been drained, and must not be replaced.
        while !stop.is_cancelled() && !self.tasks.is_cancelled() {
            let begun = Instant::now();
            let mut min_pause = Duration::ZERO;
            match self.establish(&server, &target).await {
                Ok(established) => {
                    if let Some(previous) = replaced.take() {
                        previous.replace();
                    }
                    let own = Stop::new(&stop);
                    let mut tunnel = self.serve(established, route, own.clone());
                    tokio::select! {
                        ended = &mut tunnel.serving => route = ended,
                        _ = tunnel.verdict.wait_for(|verdict| verdict.draining) => {
                            info!("the proxy-server is stopping: dialling again");
                            self.tasks.spawn("tunnel", async move { drop(tunnel.serving.await) }.in_current_span());
                            route = self.tunnels.route(&server, target.address());
                            min_pause = MOVE_TIME.mul_f64(fastrand::f64());
                        }
                        true = renewals.changed() => {
                            info!("the certificate was renewed: dialling again");
                            self.tasks.spawn("tunnel", async move { drop(tunnel.serving.await) }.in_current_span());
                            route = self.tunnels.route(&server, target.address());
                            replaced = Some(own);
                            continue;
                        }
                    }
                }
                Err(DialError::Refused { refusal }) if refusal.reason == RefusalReason::Itself => {
                    debug!("this process itself listens at this address");
                    // The address may be that of a load balancer, which leads elsewhere the next time.
                    drop(route);
                    tokio::select! {
                        () = sleep(RESOLVE_INTERVAL) => {}
                        () = stop.cancelled() => return,
                        () = self.tasks.cancelled() => return,
                    }
                    route = self.tunnels.route(&server, target.address());
                    continue;
                }
                Err(error) => {
                    warn!(error = &error as &dyn std::error::Error, "cannot establish a tunnel");
                    route.down(&error);
                    if let DialError::Refused { refusal: Refusal { retry_after_seconds: Some(seconds), .. } } = error {
                        min_pause = Duration::from_secs(seconds).min(MAX_RETRY_AFTER);
                    }
                }
            }
            if begun.elapsed() >= HEALTHY {
                backoff.reset();
            }
            tokio::select! {
                () = sleep(backoff.fail_with_full_jitter().max(min_pause)) => {}
                // The proxy-server may have refused the previous certificate.
                true = renewals.changed() => backoff.reset(),
                () = stop.cancelled() => {}
                () = self.tasks.cancelled() => {}
            }
        }
    }

    /// Establishes a tunnel.
    async fn establish(&self, server: &Authority, target: &Target) -> Result<Established, DialError> {
        let registration = self.service.registration();
        let established = establish(&self.tls, &self.egress, server, target, &registration);
        tokio::time::timeout(CONNECT_TIMEOUT, established).await.map_err(|_| DialError::Silent)?
    }

    /// Begins to serve a tunnel.
    fn serve(&self, established: Established, route: Route, stop: Stop) -> Running {
        let Established { io, acceptance } = established;
        info!(proxy_server = acceptance.server, protocol = %acceptance.protocol, "tunnel established");
        let (up, service) = (route.up(acceptance), self.service.clone());
        let verdict = up.verdict();
        let serving = async move {
            match service.serve(io, &stop, up.verdicts()).await {
                Ok(why) => {
                    info!(why, "tunnel ended");
                    up.ended()
                }
                Err(error) => {
                    let error = DialError::Tunnel(error);
                    warn!(error = &error as &dyn std::error::Error, "the tunnel has failed");
                    let route = up.ended();
                    route.down(&error);
                    route
                }
            }
        };
        Running { serving: Box::pin(serving), verdict }
    }
}

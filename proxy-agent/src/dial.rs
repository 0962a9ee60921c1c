//! Keeps tunnels to every proxy-server: dial, register, serve, and again.
//!
//! ```text
//! resolve -> TCP (or CONNECT through HTTPS_PROXY) -> TLS 1.3 -> POST /atoll/tunnel -> 101 -> serve -> back off -> ...
//! ```

mod address;
mod connect;
mod demand;
mod egress;
mod error;
mod register;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use ops::backoff::Backoff;
use ops::drain::Tasks;
use ops::workers::Workers;
use protocol::{Authority, Refusal};
use rustls::ClientConfig;
use tokio::time::{Instant, sleep};
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::{info, warn};

use crate::offers::Current;
use crate::ready::Route;
use crate::serve::Streams;
use address::Address;
use connect::{Target, establish};
pub use egress::{Egress, InvalidProxy};
use error::CONNECT_TIMEOUT;
pub use error::DialError;

/// How often a name is resolved anew, so that a proxy-server that was added gets a tunnel.
const RESOLVE_EVERY: Duration = Duration::from_secs(30);

/// A tunnel that lived this long was a good one: the next attempt begins without a wait behind it.
const HEALTHY: Duration = Duration::from_secs(10);

/// The waits between attempts.
const PAUSES: Backoff = Backoff::new(Duration::from_millis(250), Duration::from_secs(30));

/// What every attempt needs.
#[derive(Clone, Debug)]
pub struct Dial {
    /// Who we are to the proxy-servers; a replaced certificate is used from the next attempt on.
    pub tls: Arc<ClientConfig>,
    /// How to get out of the site.
    pub egress: Arc<Egress>,
    /// What is offered.
    pub offers: Current,
    /// The identity of the certificate.
    pub agent: protocol::AgentId,
    /// This process among its replicas.
    pub instance: Arc<str>,
    /// What serves the streams.
    pub streams: Streams,
    /// Where tunnels live.
    pub tasks: Tasks,
    /// Which are up, for readiness and status.
    pub up: Arc<crate::ready::Tunnels>,
    /// The threads on which tunnels live.
    pub workers: Workers,
}

// === impl Dial ===

impl Dial {
    /// Keeps tunnels to one configured server, which may be several processes behind one name.
    pub async fn keep(self, server: Authority) {
        let mut targets: HashMap<Target, DropGuard> = HashMap::new();
        let mut nowhere = Some(self.up.route(&server, None));
        loop {
            match self.targets(&server).await {
                Ok(found) => {
                    nowhere = None;
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
                    // A name that stopped resolving says nothing about the tunnels that are up.
                    if targets.is_empty() {
                        warn!(error = &error as &dyn std::error::Error, "cannot resolve the proxy-server");
                        nowhere.get_or_insert_with(|| self.up.route(&server, None)).down(&error);
                    }
                }
            }
            let pause = if targets.is_empty() { Duration::from_secs(2) } else { RESOLVE_EVERY };
            sleep(pause).await;
        }
    }

    async fn targets(&self, server: &Authority) -> Result<Vec<Target>, DialError> {
        if self.egress.for_host(server.host()).is_some() {
            return Ok(vec![Target::Named]);
        }
        let found = tokio::net::lookup_host((server.host(), server.port())).await;
        let found = found.map_err(|source| DialError::Resolve { server: server.clone(), source })?;
        Ok(found.map(Target::Address).collect())
    }

    /// Keeps one tunnel up until `stop`.
    async fn keep_one(self, server: Authority, target: Target, stop: CancellationToken) {
        let mut backoff = PAUSES;
        let route = self.up.route(&server, target.address());
        // A tunnel that ends while the process stops has been drained: no other takes its place.
        while !stop.is_cancelled() && !self.tasks.is_cancelled() {
            let began = Instant::now();
            let mut at_least = Duration::ZERO;
            match self.once(&server, &target, &route, &stop).await {
                Ok(why) => info!(why, "tunnel ended"),
                Err(error) => {
                    warn!(error = &error as &dyn std::error::Error, "cannot establish a tunnel");
                    route.down(&error);
                    if let DialError::Refused { refusal: Refusal { retry_after_seconds: Some(seconds), .. } } = error {
                        at_least = Duration::from_secs(seconds.min(3600));
                    }
                }
            }
            if began.elapsed() >= HEALTHY {
                backoff.reset();
            }
            tokio::select! {
                () = sleep(backoff.fail_with_full_jitter().max(at_least)) => {}
                () = stop.cancelled() => {}
                () = self.tasks.cancelled() => {}
            }
        }
    }

    async fn once(
        &self,
        server: &Authority,
        target: &Target,
        route: &Route,
        stop: &CancellationToken,
    ) -> Result<String, DialError> {
        let (io, acceptance) = tokio::time::timeout(
            CONNECT_TIMEOUT,
            establish(&self.tls, &self.egress, (server, target), &self.registration()),
        )
        .await
        .map_err(|_| DialError::Silent)??;
        info!(proxy_server = acceptance.server, protocol = %acceptance.protocol, "tunnel established");
        let _up = route.up(acceptance);
        self.streams.clone().serve(io, stop).await.map_err(DialError::Tunnel)
    }

    fn registration(&self) -> protocol::Registration {
        protocol::Registration {
            protocol: protocol::ProtocolVersion::CURRENT,
            agent: self.agent.clone(),
            instance: self.instance.to_string(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            clusters: self.offers.borrow().to_vec(),
            capabilities: vec![protocol::offers::CAPABILITY.to_owned()],
        }
    }
}

//! Builds all parts of the proxy-agent, in order, and runs them until they must stop.

mod declared;
pub(crate) mod exchange;
mod kubeconfigs;
mod metrics;
mod observe;
mod reload;
mod status;

use std::future::pending;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use dial::routes::Tunnels;
use dial::{Dial, Egress};
use ops::drain::{Drained, Tasks};
use ops::files::{Reloader, Watched};
use ops::listen::Listener;
use ops::metrics::Registry;
use ops::probes::Listeners;
use ops::tls::{Identity, ServerCa, TlsVersions, client_config};
use ops::workers::{Threads, Workers, cores};
use protocol::{AgentId, Authority};
use request_metrics::{Names, RequestMetrics};
use request_traces::{Exporter, Service, Traces};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::timeout;
use tracing::{info, warn};
use tunnel::Budget;
use virtual_cluster::declared::Judged;

use crate::agent::Agent;
use crate::app::declared::Declarations;
use crate::app::exchange::ClusterServices;
use crate::app::kubeconfigs::ProxyServers;
use crate::config::{self, ProxyAgentConfiguration};
use crate::layer4::Layer4;
use crate::renew::Renewal;
use crate::serve::Streams;

/// The time for the responses of probes and of the admin listener to end.
const PAGES_TIMEOUT: Duration = Duration::from_millis(500);

/// The agent dials after this time, even if it cannot serve requests yet. Then clients learn the reason.
const START_TIMEOUT: Duration = Duration::from_secs(5);

/// A proxy-agent whose ports are bound, and which does not dial yet.
pub struct App {
    /// The addresses of the listeners.
    pub bound: Bound,
    /// The identity of this agent.
    pub agent: AgentId,
    listeners: Listeners,
    dial: Dial<Agent>,
    unread: Arc<Budget>,
    servers: Vec<Authority>,
    services: Option<ClusterServices>,
    /// The virtual clusters that objects of the host declare; `None` until they are known.
    judged: watch::Receiver<Option<Judged>>,
    reload: reload::Reload,
    /// `None` if no traces are exported.
    exporter: Option<Exporter>,
    status: Arc<status::StatusSource>,
    metrics: Registry,
    threads: Threads,
    /// If a proxy-server issues the certificate.
    renewal: Option<Renewal>,
    tasks: Tasks,
    drain: Duration,
}

/// The addresses of the listeners, with their actual ports.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    /// Probes.
    pub probes: SocketAddr,
    /// The operator.
    pub admin: SocketAddr,
    /// Prometheus. `None` if the configuration has no such listener.
    pub metrics: Option<SocketAddr>,
}

// === impl App ===

impl std::fmt::Debug for App {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("App").field("agent", &self.agent).field("bound", &self.bound).finish_non_exhaustive()
    }
}

impl App {
    /// Reads the files that the configuration names, and binds its ports. `file` is the configuration file; its list of
    /// virtual clusters is reloaded when it changes. `egress` is the HTTP proxy of the site.
    pub async fn bind(config: &ProxyAgentConfiguration, file: &Path, egress: Egress) -> anyhow::Result<Self> {
        let tasks = Tasks::new();
        let reloader = Reloader::new(Reloader::DEFAULT_PERIOD);
        let (server_ca, identity) = identity(config, &reloader)?;
        let agent = agent_id(&identity.borrow())?;
        let tls =
            client_config(server_ca.clone(), Some(identity.clone()), &[protocol::upgrade::ALPN], TlsVersions::Tls13);
        let (tls, egress) = (Arc::new(tls), Arc::new(egress));
        let servers: Vec<_> = config.servers.iter().map(|server| (**server).clone()).collect();
        let tunnels = Arc::new(Tunnels::default());
        let metrics = metrics::metrics(&tunnels);
        let requests = Arc::new(RequestMetrics::new(&metrics, Names::AGENT));
        let instance: Arc<str> = format!("{:016x}", fastrand::u64(..)).into();
        let service = Service { name: "proxy-agent", version: env!("CARGO_PKG_VERSION"), instance: &instance };
        let (traces, exporter) = Traces::open(config.tracing.as_ref(), service, &metrics, &reloader)?;
        let (exchange, cluster_services) = exchange::open(config, &reloader, (&requests, traces), &tasks)?.unzip();
        metrics::of_host(&metrics, cluster_services.as_ref());
        let status = Arc::new(status::StatusSource {
            agent: agent.clone(),
            tunnels: Arc::clone(&tunnels),
            services: cluster_services.clone(),
            physical: config.physical_clusters.iter().map(|cluster| (**cluster).clone()).collect(),
            server_ca,
            identity: identity.clone(),
        });
        let certified = Arc::clone(&status);
        ops::expiry::observe(&metrics, move || certified.certificates());
        let services = cluster_services.clone();
        let declarations = match &cluster_services {
            Some(services) if config.watch_virtual_clusters => {
                let (identity, tls, servers, egress) = (identity.clone(), tls.clone(), servers.clone(), egress.clone());
                let issuer = ProxyServers { identity, tls, servers, egress, last: Arc::default() };
                Declarations::follow(config, services, &tunnels, issuer, &tasks)
            }
            _ => Declarations::none(),
        };
        let judged = declarations.judged.subscribe();
        let reload = reload::Reload::new(config, file, reloader.clone(), cluster_services, declarations)?;
        let offers = reload.offers();
        let layer4 = Arc::new(layer4(config));
        let main = Handle::current();
        let unread = Budget::new(protocol::settings::BUFFER_BUDGET);
        let streams = Streams {
            layer4,
            exchange,
            offers: offers.clone(),
            unread: Arc::clone(&unread),
            compression: config.compression.into(),
            drain: config.drain.into(),
            tasks: tasks.child(),
            main,
        };
        let (workers, threads) = Workers::start(cores()).context("cannot start threads")?;
        let dial = Dial {
            tls,
            identity,
            egress,
            service: Agent { id: agent.clone(), instance, offers, streams },
            backoff: dial::BACKOFF_OF_AGENTS,
            tasks: tasks.child(),
            tunnels,
            workers,
        };
        let renewal = config.join.as_ref().map(|_| renewal(config, &dial, reloader));
        let config::Listeners { probes, admin, metrics: for_prometheus } = &config.listeners;
        let listeners = Listeners::bind(probes, admin, for_prometheus.as_deref()).await?;
        Ok(Self {
            bound: Bound::of(&listeners),
            agent,
            listeners,
            dial,
            unread,
            services,
            judged,
            servers,
            reload,
            exporter,
            status,
            metrics,
            threads,
            renewal,
            tasks,
            drain: config.drain.into(),
        })
    }

    /// Serves until `stop` completes. Then waits until all streams have ended, for the time of the configuration's `drain` at
    /// most, or until `hurry` completes.
    pub async fn run(self, stop: impl Future, hurry: impl Future) -> Drained {
        let Self { listeners, dial, unread, servers, services, reload, status, metrics, threads, tasks, .. } = self;
        let judged = self.judged;
        if let Some(renewal) = self.renewal {
            tasks.spawn_until_cancelled("renewal", renewal.run());
        }
        // Probes and status pages must respond until the drain ends.
        let pages = Tasks::new();
        if let Some(exporter) = self.exporter {
            pages.spawn("traces", exporter.run(pages.cancelled()));
        }
        observe::serve(listeners, status, &metrics, &dial.workers, (&pages, &tasks));
        tasks.spawn_until_cancelled("unread", limit_unread(unread));
        tasks.spawn_until_cancelled("reload", reload.run());
        tasks.spawn_until_cancelled("start", {
            let tasks = tasks.clone();
            async move {
                // Until this process can serve requests, replicas serve them.
                if let Some(services) = services
                    && timeout(START_TIMEOUT, services.ready(judged)).await.is_err()
                {
                    warn!("dialling the proxy-servers, although the virtual clusters cannot be served yet");
                }
                for server in servers {
                    tasks.spawn_until_cancelled("dial", dial.clone().keep(server, dial::no_callers()));
                }
            }
        });
        stop.await;
        info!(deadline = ?self.drain, "draining");
        let drained = tasks.drain(self.drain, hurry).await;
        pages.drain(PAGES_TIMEOUT, pending::<()>()).await;
        threads.end().await;
        drained
    }
}

// === impl Bound ===

impl Bound {
    fn of(listeners: &Listeners) -> Self {
        let Listeners { probes, admin, metrics } = listeners;
        Self { probes: probes.bound(), admin: admin.bound(), metrics: metrics.as_ref().map(Listener::bound) }
    }
}

fn renewal(config: &ProxyAgentConfiguration, dial: &Dial<Agent>, reloader: Reloader) -> Renewal {
    Renewal {
        identity: dial.identity.clone(),
        files: config.identity.clone(),
        tls: Arc::clone(&dial.tls),
        servers: config.servers.iter().map(|server| (**server).clone()).collect(),
        egress: Arc::clone(&dial.egress),
        reloader,
    }
}

/// Resets streams while they leave too many bytes unread.
async fn limit_unread(unread: Arc<Budget>) {
    unread.keep(|sweep| warn!(reset = sweep.reset, "streams with unread request data were reset")).await;
}

fn identity(
    config: &ProxyAgentConfiguration,
    reloader: &Reloader,
) -> anyhow::Result<(Watched<ServerCa>, Watched<Identity>)> {
    let files = &config.identity;
    let server_ca = reloader
        .watch([files.server_ca.to_path_buf()], |[pem]| ServerCa::from_pem(pem))
        .context("identity.serverCA")?;
    let identity = reloader
        .watch([files.certificate.to_path_buf(), files.key.to_path_buf()], |[certificate, key]| {
            Identity::from_pem(certificate, key)
        })
        .context("identity")?;
    Ok((server_ca, identity))
}

fn agent_id(identity: &Identity) -> anyhow::Result<AgentId> {
    let Some(name) = identity.common_name() else {
        bail!("identity: the certificate has no common name; make one with `atoll certs agent ID`");
    };
    name.parse().context("identity: the certificate's common name is not an agent's identity")
}

fn layer4(config: &ProxyAgentConfiguration) -> Layer4 {
    let physical = config.physical_clusters.iter();
    let physical = physical.map(|cluster| (cluster.name.clone(), cluster.api_servers.clone()));
    // The checks of the configuration have refused invalid destinations.
    let destinations = config.destinations.iter().filter_map(|destination| destination.parse().ok());
    Layer4::new(physical, destinations)
}

//! Builds all parts of the proxy-server, in order, and runs them until they must stop.
//!
//! [`App::bind`] reports errors of the configuration: files that cannot be read, ports that are in use. When it
//! returns, clients can connect. `atoll demo` calls the same two functions.

mod files;
mod metrics;
mod observe;
mod peers;
mod reload;
mod status;

use std::future::pending;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use audit::Auditors;
use ops::drain::{Drained, Tasks};
use ops::files::Reloader;
use ops::listen::{Connection, Listener, Slot};
use ops::machine;
use ops::tls::{ALPN_HTTP1, ClientAuth, EndpointTls, MintedCertificates, TlsVersions, server_config};
use protocol::ClusterName;
use request_metrics::{Names, RequestMetrics};
use request_traces::{Exporter, Service, Traces};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info};

use crate::agents::{Agents, HandshakeRate};
use crate::config::{self, ProxyServerConfiguration, fitting};
use crate::connect::Connect;
use crate::endpoint::{Endpoint, Services, TLS_TIMEOUT};
use crate::grants::{self, Grants};
use crate::karmada::{Desired, Reconciler};
use crate::limits::{ConnectionPermit, Connections, Limits};
use crate::links::Links;
use crate::registry::{Clusters, Registry};
use crate::user_certificates::{self, UserCertificates};
use crate::workers::{Threads, Workers};

/// The number of connections that a listener accepts above its limit, because some are still closing.
const CLOSING_CONNECTIONS: usize = 256;

/// The time for audit logs to write what they have, after the last request.
const AUDIT_TIMEOUT: Duration = Duration::from_secs(5);

/// The time for the responses of probes and of the admin listener to end.
const PAGES_TIMEOUT: Duration = Duration::from_millis(500);

/// The maximum number of tunnels of one agent. It may have replicas, each with several tunnels.
const MAX_TUNNELS_PER_AGENT: usize = 64;

/// The maximum of [`handover`]. An agent dials within a second, and needs a few round trips.
const MAX_HANDOVER: Duration = Duration::from_secs(5);

/// The workers that accept the connections of each listener. With fewer workers, one accepts those of several listeners.
const PROXY_WORKER: usize = 0;
const ENDPOINT_WORKER: usize = 1;
const AGENTS_WORKER: usize = 2;

/// A proxy-server whose ports are bound, and which is not running yet.
pub struct App {
    /// The addresses of the listeners.
    pub bound: Bound,
    listeners: Listeners,
    agents: Agents,
    agent_tls: TlsAcceptor,
    agent_connections: Arc<Connections>,
    limits: Arc<Limits>,
    connect: Connect,
    proxy_tls: Option<ProxyTls>,
    endpoint: Endpoint,
    observe: observe::Observe,
    /// `None` if no traces are exported.
    exporter: Option<Exporter>,
    reload: reload::Reload,
    grants: Option<Arc<Grants>>,
    reconciler: Reconciler,
    peers: Option<peers::Peers>,
    workers: Workers,
    threads: Threads,
    /// Cancelled when the process begins to stop.
    stopping: CancellationToken,
    tasks: Tasks,
    auditors: Arc<Auditors>,
    handover: Duration,
    drain: Duration,
}

/// The addresses of the listeners, with their actual ports.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    /// Clients, as an HTTP proxy.
    pub proxy: SocketAddr,
    /// Clients, directly.
    pub endpoint: SocketAddr,
    /// Agents.
    pub agents: SocketAddr,
    /// Probes.
    pub probes: SocketAddr,
    /// The operator.
    pub admin: SocketAddr,
    /// Prometheus. `None` if the configuration has no such listener.
    pub metrics: Option<SocketAddr>,
}

#[derive(Debug)]
struct Listeners {
    proxy: Listener,
    endpoint: Listener,
    agents: Listener,
    pages: ops::probes::Listeners,
}

impl std::fmt::Debug for App {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("App").field("bound", &self.bound).finish_non_exhaustive()
    }
}

// === impl App ===

impl App {
    /// Reads the files that the configuration names, and binds its ports. `file` is the configuration file; its list of
    /// clusters is reloaded when it changes.
    pub async fn bind(config: &ProxyServerConfiguration, file: &Path) -> anyhow::Result<Self> {
        let (tasks, stopping) = (Tasks::new(), CancellationToken::new());
        let reloader = Reloader::new(Reloader::DEFAULT_PERIOD);
        let config = &grants::with_added(config).context("grants")?;
        let registry = Arc::new(Registry::new(Clusters::of(config)));
        let grants = Grants::open(config, &registry).context("grants")?;

        let metrics = metrics::metrics(&registry);
        let files = files::open(config, &reloader, &metrics, &tasks)?;
        let certificates = Arc::new(files.certificates(config, &registry));
        let agent_tls = files.agent_tls(&certificates);

        let (client_limits, agent_limits) = connection_limits(config);
        let limits = Limits::new(&config.limits, client_limits, &metrics);
        metrics::of_clients(&metrics, &registry, &limits);
        let links = Arc::new(Links::new(&metrics));
        let (workers, threads) = Workers::start(ops::workers::cores()).context("cannot start threads")?;
        let listeners = Listeners::bind(config, client_limits.all, agent_limits.all).await?.adopted_by(&workers)?;
        let requests = Arc::new(RequestMetrics::new(&metrics, Names::SERVER));
        // In containers, all processes have the same ID.
        let server_id: Arc<str> = format!("{:016x}", fastrand::u64(..)).into();
        let service = Service { name: "proxy-server", version: env!("CARGO_PKG_VERSION"), instance: &server_id };
        let (traces, exporter) = Traces::open(config.tracing.as_ref(), service, &metrics, &reloader)?;
        let services = services(config, (&registry, &files, &limits), (&requests, traces), &tasks);
        let domain = Arc::clone(&services.domain);
        let endpoint_tls = EndpointTls::new(Arc::clone(&certificates)).context("cannot set up TLS")?;
        let endpoint = Endpoint::new(services, endpoint_tls, workers.clone());
        let (desired_sender, desired) = watch::channel(Desired::of(config));
        let (reconciler, left) = reconciler(desired, &registry, &files, (&reloader, &tasks, &metrics));
        let counted = (&limits, &requests, &links);
        let status = status::StatusSource::new(&registry, &files, reconciler.memberships(), counted, &tasks);
        let peers = peers::Peers::open(config, &reloader, (&registry, &server_id), (&workers, &tasks))?;
        let identity = peers.as_ref().map(|peers| peers.identity.clone());
        let followers = reload::Followers {
            registry: Arc::clone(&registry),
            client_cas: Arc::clone(&files.client_cas),
            issuers: files.issuers,
            auditors: Arc::clone(&files.auditors),
            requests: Arc::clone(&requests),
            peer: peers.as_ref().map(|peers| peers.id.clone()),
            karmada: desired_sender,
            grants: grants.clone(),
        };
        let reload = reload::Reload::new(config, file, reloader, followers, left)?;
        let agents = Agents {
            handshakes: Arc::new(HandshakeRate::of_machine(&metrics)),
            registry: Arc::clone(&registry),
            grants: grants.clone(),
            server_id,
            domain: Arc::clone(&domain),
            links,
            peers: peers.as_ref().map(|peers| (peers.id.clone(), Arc::clone(&peers.callers))),
            agent_ca: files.agent_ca,
            enrolment: files.enrolment,
            user_certificates: grants.clone().map(|grants| UserCertificates {
                grants,
                serving_ca: files.serving_ca,
                revocations: files.client_cas.revocations().clone(),
                turns: Arc::new(Semaphore::new(user_certificates::CONCURRENT)),
            }),
            revocations: files.client_cas.revocations().clone(),
            validity: Arc::default(),
            workers: workers.clone(),
            stopping: stopping.clone(),
            tasks: tasks.child(),
        };
        let connect = Connect {
            client_cas: Arc::clone(&files.client_cas),
            registry: Arc::clone(&registry),
            endpoint: endpoint.clone(),
            limits: Arc::clone(&limits),
            requests: Arc::clone(&requests),
            domain,
            workers: workers.clone(),
            tasks: tasks.child(),
        };
        Ok(Self {
            bound: listeners.bound(),
            listeners,
            agents,
            agent_tls: TlsAcceptor::from(Arc::new(agent_tls)),
            agent_connections: Connections::new(agent_limits),
            limits,
            connect,
            // HTTP/1.1 only: Go offers h2 to an https proxy, but does not support it.
            proxy_tls: config.proxy.tls.then(|| ProxyTls::new(&certificates)),
            endpoint,
            observe: observe::Observe::new(status.with_peer_identity(identity), metrics, &workers),
            exporter,
            reload,
            grants,
            reconciler,
            peers,
            workers,
            threads,
            stopping,
            tasks,
            auditors: files.auditors,
            handover: handover(config),
            drain: config.drain.into(),
        })
    }

    /// Serves until `stop` completes. Then serves new clients until the handover ends, closes the listeners, and waits until all
    /// connections have ended. All this takes at most the time of the configuration's `drain`, or until `hurry`
    /// completes.
    pub async fn run(self, stop: impl Future, hurry: impl Future) -> Drained {
        let Self { listeners, agents, agent_tls, agent_connections, limits, stopping, .. } = self;
        let Self {
            connect,
            proxy_tls,
            endpoint,
            observe,
            exporter,
            reload,
            grants,
            reconciler,
            peers,
            workers,
            threads,
            tasks,
            auditors,
            ..
        } = self;
        tasks.spawn_until_cancelled("reload", reload.run());
        if let Some(grants) = grants {
            tasks.spawn_until_cancelled("grants", grants.run());
        }
        tasks.spawn_until_cancelled("karmada", reconciler.run());
        let knows_others = peers.as_ref().map(peers::Peers::knows_others);
        let knows_peers = move || knows_others.as_ref().is_none_or(|knows_others| knows_others());
        // Probes and status pages must respond until the drain ends.
        let pages = Tasks::new();
        if let Some(exporter) = exporter {
            pages.spawn("traces", exporter.run(pages.cancelled()));
        }
        observe.serve(listeners.pages, &pages, stopping.clone(), knows_peers);
        if let Some(peers) = peers {
            peers.run(&tasks);
        }
        let accepting_agents = tasks.child();
        workers.at(AGENTS_WORKER).spawn(&tasks, "agents", {
            let accepting = accepting_agents.clone();
            listeners.agents.run(accepting, "agent", move |Connection { stream, client, slot }| {
                if let Some(permit) = agent_connections.admit(client.0.ip().into()) {
                    agents.assign(stream, permit, slot, agent_tls.clone());
                } else {
                    debug!(%client, "the limit of connections is reached");
                }
                std::future::ready(())
            })
        });
        let connections = Arc::clone(&limits.connections);
        workers.at(ENDPOINT_WORKER).spawn(&tasks, "endpoint", {
            let accepting = tasks.clone();
            listeners.endpoint.run(accepting, "endpoint", move |connection| {
                let endpoint = endpoint.clone();
                with_permit(&connections, connection, |stream, permit, slot| {
                    endpoint.serve_direct(stream, permit, slot)
                })
            })
        });
        workers.at(PROXY_WORKER).spawn(&tasks, "proxy", {
            let accepting = tasks.clone();
            listeners.proxy.run(accepting, "proxy", move |connection| {
                let (connect, tls) = (connect.clone(), proxy_tls.clone());
                with_permit(&limits.connections, connection, |stream, permit, slot| async move {
                    serve_proxy(connect, tls, stream, permit).await;
                    drop(slot);
                })
            })
        });
        stop.await;
        info!(deadline = ?self.drain, "draining");
        stopping.cancel();
        accepting_agents.cancel();
        let mut hurry = pin!(hurry);
        let drained = tokio::select! {
            () = sleep(self.handover) => tasks.drain(self.drain.saturating_sub(self.handover), hurry).await,
            _ = &mut hurry => tasks.drain(Duration::ZERO, pending::<()>()).await,
        };
        // Now no request is left that adds to the audit logs.
        auditors.drain(AUDIT_TIMEOUT).await;
        pages.drain(PAGES_TIMEOUT, pending::<()>()).await;
        threads.end().await;
        drained
    }
}

/// The reconciler for Karmada, and the clusters that have left.
fn reconciler(
    desired: watch::Receiver<Desired>,
    registry: &Arc<Registry>,
    files: &files::Files,
    (reloader, tasks, metrics): (&Reloader, &Tasks, &ops::metrics::Registry),
) -> (Reconciler, mpsc::Receiver<ClusterName>) {
    let (left_sender, left) = mpsc::channel(16);
    let (registry, serving_ca) = (Arc::clone(registry), files.serving_ca.clone());
    let reconciler =
        Reconciler::new(registry, serving_ca, reloader.clone(), tasks.child(), metrics, desired, left_sender);
    (reconciler, left)
}

/// What the requests of clients use.
fn services(
    config: &ProxyServerConfiguration,
    (registry, files, limits): (&Arc<Registry>, &files::Files, &Arc<Limits>),
    (metrics, traces): (&Arc<RequestMetrics>, Traces),
    tasks: &Tasks,
) -> Services {
    Services {
        registry: Arc::clone(registry),
        client_cas: Arc::clone(&files.client_cas),
        issuers: Arc::clone(&files.issuers),
        limits: Arc::clone(limits),
        metrics: Arc::clone(metrics),
        traces,
        domain: config.domain.to_ascii_lowercase().into(),
        tasks: tasks.child(),
        documents: Arc::default(),
        expectations: Arc::default(),
        auditors: Arc::clone(&files.auditors),
        drain: Duration::from(config.drain).saturating_sub(handover(config)),
    }
}

/// How long the process still serves new connections of clients when it stops. In this time, load balancers and agents
/// switch to another proxy-server, if there is one.
fn handover(config: &ProxyServerConfiguration) -> Duration {
    let drain = Duration::from(config.drain);
    config.peers.as_ref().map_or(Duration::ZERO, |_| (drain / 2).min(MAX_HANDOVER))
}

/// The limits of the connections of clients, and of agents.
fn connection_limits(config: &ProxyServerConfiguration) -> (config::Connections, config::Connections) {
    let (memory, open_files) = (machine::memory(), machine::open_files());
    let (clients, agents) = (config.limits.connections(memory, open_files), fitting(memory, open_files));
    info!(clients = clients.all, agents, "limits of connections");
    // All agents may come from one address at the same time.
    let agents =
        config::Connections { all: agents, per_address: agents, per_cluster: agents, per_user: MAX_TUNNELS_PER_AGENT };
    (clients, agents)
}

/// TLS of the proxy listener.
#[derive(Clone)]
struct ProxyTls {
    /// Requests no client certificate. kubectl sends its certificate to whoever requests one, and a certificate that this process
    /// cannot read would end the handshake.
    without: TlsAcceptor,
    /// Requests one, while a cluster has destinations.
    with_certificate: TlsAcceptor,
}

/// Serves a connection, unless it exceeds a limit.
fn with_permit<F: Future<Output = ()>, S: FnOnce(TcpStream, ConnectionPermit, Slot) -> F>(
    connections: &Arc<Connections>,
    connection: Connection,
    serve: S,
) -> impl Future<Output = ()> + use<F, S> {
    let Connection { stream, client, slot } = connection;
    let permit = connections.admit_from(client.0.ip());
    let serving = permit.map(|permit| serve(stream, permit, slot));
    async move {
        if let Some(serving) = serving {
            serving.await;
        } else {
            debug!(%client, "the limit of connections is reached");
        }
    }
}

async fn serve_proxy(connect: Connect, tls: Option<ProxyTls>, stream: TcpStream, permit: ConnectionPermit) {
    let Some(tls) = tls else { return connect.serve(stream, Arc::default(), permit).await };
    let tls = if connect.registry.clusters().have_destinations() { tls.with_certificate } else { tls.without };
    tokio::select! {
        accepted = timeout(TLS_TIMEOUT, tls.accept(stream)) => match accepted {
            Ok(Ok(stream)) => {
                let chain = stream.get_ref().1.peer_certificates().unwrap_or_default().into();
                connect.serve(stream, chain, permit).await;
            }
            Ok(Err(error)) => debug!(%error, "TLS with a proxy client failed"),
            Err(_) => debug!("TLS handshake with a proxy client timed out"),
        },
        () = permit.evicted() => debug!("closed in favour of a newer connection"),
    }
}

// === impl ProxyTls ===

impl ProxyTls {
    fn new(certificates: &Arc<MintedCertificates>) -> Self {
        let acceptor = |auth| {
            let config = server_config(certificates.clone(), auth, &[ALPN_HTTP1], TlsVersions::Tls12And13);
            TlsAcceptor::from(Arc::new(config))
        };
        Self { without: acceptor(ClientAuth::None), with_certificate: acceptor(ClientAuth::Requested) }
    }
}

// === impl Listeners ===

impl Listeners {
    /// Binds all listeners. `clients` and `agents` are the limits of their connections.
    async fn bind(config: &ProxyServerConfiguration, clients: usize, agents: usize) -> anyhow::Result<Self> {
        let addresses = &config.listeners;
        let bind =
            |addr, limit: usize| Listener::bind(addr, NonZeroUsize::MIN.saturating_add(limit + CLOSING_CONNECTIONS));
        Ok(Self {
            proxy: bind(&addresses.proxy, clients).await.context("listeners.proxy")?,
            endpoint: bind(&addresses.endpoint, clients).await.context("listeners.endpoint")?,
            agents: bind(&addresses.agents, agents).await.context("listeners.agents")?,
            pages: ops::probes::Listeners::bind(&addresses.probes, &addresses.admin, addresses.metrics.as_deref())
                .await?,
        })
    }

    /// Makes workers accept clients and agents. The pages stay on the runtime of the caller.
    fn adopted_by(self, workers: &Workers) -> anyhow::Result<Self> {
        let Self { proxy, endpoint, agents, pages } = self;
        let by = |number, listener: Listener| workers.at(number).adopt(|| listener.adopt());
        Ok(Self {
            proxy: by(PROXY_WORKER, proxy).context("listeners.proxy")?,
            endpoint: by(ENDPOINT_WORKER, endpoint).context("listeners.endpoint")?,
            agents: by(AGENTS_WORKER, agents).context("listeners.agents")?,
            pages,
        })
    }

    fn bound(&self) -> Bound {
        Bound {
            proxy: self.proxy.bound(),
            endpoint: self.endpoint.bound(),
            agents: self.agents.bound(),
            probes: self.pages.probes.bound(),
            admin: self.pages.admin.bound(),
            metrics: self.pages.metrics.as_ref().map(Listener::bound),
        }
    }
}

#[cfg(test)]
mod tests;

//! Builds all parts of the proxy-server, in order, and runs them until they must stop.
//!
//! [`App::bind`] reports errors of the configuration: files that cannot be read, ports that are in use. When it
//! returns, clients can connect. `atoll demo` calls the same two functions.

mod files;
mod observe;
mod reload;
mod standing;

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use ops::drain::{Drained, Tasks};
use ops::files::Reloader;
use ops::listen::{Connection, Listener, Slot};
use ops::tls::{ALPN_HTTP1, ClientAuth, EndpointTls, TlsVersions, agent_listener_config, server_config};
use ops::{machine, probes};
use request_metrics::{Names, RequestMetrics};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tracing::{debug, info};

use crate::agents::Agents;
use crate::config::{self, ProxyServerConfiguration, fitting};
use crate::connect::Connect;
use crate::endpoint::{Endpoint, TLS_TIMEOUT};
use crate::karmada::{Reconciler, Wanted};
use crate::limits::{Connections, Limits, Place};
use crate::registry::{Clusters, Registry};
use crate::workers::{Threads, Workers};

/// Connections that a listener accepts above its limit, because some are still closing.
const ENDING: usize = 256;

/// The maximum number of tunnels of one agent: it may have replicas, each with several connections.
const TUNNELS: usize = 64;

/// The workers that accept from each listener; with fewer cores, some are the same.
const PROXY: usize = 0;
const ENDPOINT: usize = 1;
const AGENTS: usize = 2;

/// A proxy-server that is bound but not running yet.
pub struct App {
    /// The address of each listener.
    pub bound: Bound,
    listeners: Listeners,
    agents: Agents,
    agent_tls: TlsAcceptor,
    agent_connections: Arc<Connections>,
    limits: Arc<Limits>,
    connect: Connect,
    proxy_tls: Option<TlsAcceptor>,
    endpoint: Endpoint,
    observe: observe::Observe,
    reload: reload::Reload,
    reconciler: Reconciler,
    workers: Workers,
    threads: Threads,
    tasks: Tasks,
    drain: Duration,
}

/// Addresses with their actual ports.
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
}

#[derive(Debug)]
struct Listeners {
    proxy: Listener,
    endpoint: Listener,
    agents: Listener,
    probes: Listener,
    admin: Listener,
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
        let tasks = Tasks::new();
        let reloader = Reloader::new(Reloader::DEFAULT_PERIOD);
        let registry = Arc::new(Registry::new(Clusters::of(config)));
        let domain: Arc<str> = config.domain.to_ascii_lowercase().into();

        let files = files::open(config, &reloader)?;
        let certificates = Arc::new(files.certificates(config, &registry));
        let endpoint_tls = EndpointTls::new(Arc::clone(&certificates)).context("cannot set up TLS")?;
        let agent_tls = agent_listener_config(certificates.clone(), files.agent_ca.clone(), &[protocol::upgrade::ALPN]);
        // HTTP/1.1 only: Go offers h2 to an https proxy, but does not support it.
        let proxy_tls = config
            .proxy
            .tls
            .then(|| server_config(certificates, ClientAuth::None, &[ALPN_HTTP1], TlsVersions::Tls12And13));

        let metrics = observe::metrics(&registry);
        let (memory, files_open) = (machine::memory(), machine::open_files());
        let (of_clients, of_agents) = (config.limits.connections(memory, files_open), fitting(memory, files_open));
        info!(clients = of_clients.all, agents = of_agents, "limits of connections");
        let limits = Limits::new(&config.limits, of_clients, &metrics);
        // All agents may come from one address at the same time.
        let agent_connections = Connections::new(config::Connections {
            all: of_agents,
            per_address: of_agents,
            per_cluster: of_agents,
            per_user: TUNNELS,
        });

        let cores = ops::workers::cores();
        let (workers, threads) = Workers::start(cores).context("cannot start threads")?;
        let listeners = Listeners::bind(config, of_clients.all, of_agents).await?.adopted_by(&workers)?;
        let client_cas = Arc::clone(&files.client_cas);
        let requests = Arc::new(RequestMetrics::new(&metrics, Names::SERVER));
        let (of_registry, charged) = (Arc::clone(&registry), (Arc::clone(&limits), Arc::clone(&requests)));
        let served = (workers.clone(), tasks.child());
        let endpoint = Endpoint::new(of_registry, endpoint_tls, client_cas.clone(), charged, domain.clone(), served);
        let (orders, wanted) = watch::channel(Wanted::of(config));
        let (departed, departures) = mpsc::channel(16);
        let serving_ca = files.serving_ca.clone();
        let ends = (wanted, departed);
        let reconciler =
            Reconciler::new(Arc::clone(&registry), serving_ca, reloader.clone(), tasks.child(), &metrics, ends);
        let standing = standing::Standing::new(&registry, &files, reconciler.memberships());
        let parts = reload::Parts { registry: Arc::clone(&registry), client_cas, requests };
        let reload = reload::Reload::new(config, file, reloader, parts, (orders, departures))?;
        let agents = Agents {
            registry: Arc::clone(&registry),
            server_id: format!("{:016x}", std::process::id()).into(),
            agent_ca: files.agent_ca,
            workers: workers.clone(),
            tasks: tasks.child(),
        };
        let connect = Connect {
            registry: Arc::clone(&registry),
            endpoint: endpoint.clone(),
            limits: Arc::clone(&limits),
            domain,
            workers: workers.clone(),
            tasks: tasks.child(),
        };
        Ok(Self {
            bound: listeners.bound(),
            listeners,
            agents,
            agent_tls: TlsAcceptor::from(Arc::new(agent_tls)),
            agent_connections,
            limits,
            connect,
            proxy_tls: proxy_tls.map(|config| TlsAcceptor::from(Arc::new(config))),
            endpoint,
            observe: observe::Observe::new(standing, metrics, &workers),
            reload,
            reconciler,
            workers,
            threads,
            tasks,
            drain: config.drain.into(),
        })
    }

    /// Serves until `stop`. Then lets connections end for the time of `drain`, or until `hurry`.
    pub async fn run(self, stop: impl Future, hurry: impl Future) -> Drained {
        let Self { listeners, agents, agent_tls, agent_connections, limits, .. } = self;
        let Self { connect, proxy_tls, endpoint, observe, reload, reconciler, workers, threads, tasks, .. } = self;
        tasks.spawn("reload", {
            let cancelled = tasks.cancelled();
            async move {
                tokio::select! {
                    () = reload.run() => {}
                    () = cancelled => {}
                }
            }
        });
        tasks.spawn("karmada", {
            let cancelled = tasks.cancelled();
            async move {
                tokio::select! {
                    () = reconciler.run() => {}
                    () = cancelled => {}
                }
            }
        });
        observe.serve(listeners.probes, listeners.admin, &tasks);
        workers.at(AGENTS).spawn(&tasks, "agents", {
            let accepting = tasks.clone();
            listeners.agents.run(accepting, "agent", move |Connection { stream, client, slot }| {
                if let Some(place) = agent_connections.admit(client.0.ip().into()) {
                    agents.assign(stream, place, slot, agent_tls.clone());
                } else {
                    debug!(%client, "the limit of connections is reached");
                }
                std::future::ready(())
            })
        });
        let connections = Arc::clone(&limits.connections);
        workers.at(ENDPOINT).spawn(&tasks, "endpoint", {
            let accepting = tasks.clone();
            listeners.endpoint.run(accepting, "endpoint", move |connection| {
                let endpoint = endpoint.clone();
                with_place(&connections, connection, |stream, place, slot| endpoint.serve_direct(stream, place, slot))
            })
        });
        workers.at(PROXY).spawn(&tasks, "proxy", {
            let accepting = tasks.clone();
            listeners.proxy.run(accepting, "proxy", move |connection| {
                let (connect, tls) = (connect.clone(), proxy_tls.clone());
                with_place(&limits.connections, connection, |stream, place, slot| async move {
                    serve_proxy(connect, tls, stream, place).await;
                    drop(slot);
                })
            })
        });
        stop.await;
        info!(deadline = ?self.drain, "draining");
        let drained = tasks.drain(self.drain, hurry).await;
        threads.end().await;
        drained
    }
}

/// Serves a connection, if the limits have room for it.
fn with_place<F: Future<Output = ()>, S: FnOnce(TcpStream, Place, Slot) -> F>(
    connections: &Arc<Connections>,
    connection: Connection,
    serve: S,
) -> impl Future<Output = ()> + use<F, S> {
    let Connection { stream, client, slot } = connection;
    let place = connections.admit(client.0.ip().into());
    let serving = place.map(|place| serve(stream, place, slot));
    async move {
        if let Some(serving) = serving {
            serving.await;
        } else {
            debug!(%client, "the limit of connections is reached");
        }
    }
}

async fn serve_proxy(connect: Connect, tls: Option<TlsAcceptor>, stream: TcpStream, place: Place) {
    let Some(tls) = tls else { return connect.serve(stream, place).await };
    tokio::select! {
        accepted = timeout(TLS_TIMEOUT, tls.accept(stream)) => match accepted {
            Ok(Ok(stream)) => connect.serve(stream, place).await,
            Ok(Err(error)) => debug!(%error, "TLS with a proxy client failed"),
            Err(_) => debug!("TLS handshake with a proxy client timed out"),
        },
        () = place.evicted() => debug!("closed in favour of a newer connection"),
    }
}

// === impl Listeners ===

impl Listeners {
    async fn bind(config: &ProxyServerConfiguration, of_clients: usize, of_agents: usize) -> anyhow::Result<Self> {
        let wanted = &config.listeners;
        let bind = |addr, most: usize| Listener::bind(addr, NonZeroUsize::MIN.saturating_add(most + ENDING));
        Ok(Self {
            proxy: bind(&wanted.proxy, of_clients).await.context("listeners.proxy")?,
            endpoint: bind(&wanted.endpoint, of_clients).await.context("listeners.endpoint")?,
            agents: bind(&wanted.agents, of_agents).await.context("listeners.agents")?,
            probes: Listener::bind(&wanted.probes, probes::MAX_CONNECTIONS).await.context("listeners.probes")?,
            admin: Listener::bind(&wanted.admin, probes::MAX_CONNECTIONS).await.context("listeners.admin")?,
        })
    }

    /// Lets workers accept clients and agents. Probes and the operator stay on the runtime of the caller.
    fn adopted_by(self, workers: &Workers) -> anyhow::Result<Self> {
        let Self { proxy, endpoint, agents, probes, admin } = self;
        let by = |number, listener: Listener| workers.at(number).adopt(|| listener.adopt());
        Ok(Self {
            proxy: by(PROXY, proxy).context("listeners.proxy")?,
            endpoint: by(ENDPOINT, endpoint).context("listeners.endpoint")?,
            agents: by(AGENTS, agents).context("listeners.agents")?,
            probes,
            admin,
        })
    }

    fn bound(&self) -> Bound {
        Bound {
            proxy: self.proxy.bound(),
            endpoint: self.endpoint.bound(),
            agents: self.agents.bound(),
            probes: self.probes.bound(),
            admin: self.admin.bound(),
        }
    }
}

#[cfg(test)]
mod tests;

//! Dials the other proxy-servers.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use dial::routes::Tunnels;
use dial::{Dial, Egress};
use ops::backoff::Backoff;
use ops::config::Located;
use ops::drain::Tasks;
use ops::files::{Reloader, Watched};
use ops::tls::{Identity, ServerCa, TlsVersions, client_config};
use protocol::registration::Offer;
use protocol::{AgentId, Authority};
use tokio::sync::watch;

use crate::config::{self, ProxyServerConfiguration};
use crate::peers::{Peer, PeerAddresses, publish};
use crate::registry::Registry;
use crate::workers::Workers;

/// The pauses between attempts. Proxy-servers are few, so they need not spread their attempts. After a restart, clients
/// wait until the tunnels are up.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(1));

/// Everything that the other proxy-servers need.
pub(super) struct Peers {
    /// The common name of all proxy-servers.
    pub(super) id: AgentId,
    dial: Dial<Peer>,
    servers: Vec<Authority>,
    registry: Arc<Registry>,
    offers: watch::Sender<Arc<[Offer]>>,
    /// The addresses from which others have dialled this process.
    pub(super) callers: Arc<PeerAddresses>,
    /// The certificate of this process.
    pub(super) identity: Watched<Identity>,
}

// === impl Peers ===

impl Peers {
    /// Reads the certificate. `None` if the configuration has no `peers`.
    pub(super) fn open(
        config: &ProxyServerConfiguration,
        reloader: &Reloader,
        (registry, server_id): (&Arc<Registry>, &Arc<str>),
        (workers, tasks): (&Workers, &Tasks),
    ) -> anyhow::Result<Option<Self>> {
        let ProxyServerConfiguration { peers, clusters, serving_ca, .. } = config;
        let Some(config) = peers else { return Ok(None) };
        let config::KeyPair { certificate, key } = &*config.identity;
        let identity = reloader
            .watch([certificate.to_path_buf(), key.to_path_buf()], |[certificate, key]| {
                Identity::from_pem(certificate, key)
            })
            .context("peers.identity")?;
        let server_ca = reloader
            .watch([serving_ca.certificate.to_path_buf()], |[pem]| ServerCa::from_pem(pem))
            .context("servingCA")?;
        let shown = identity.clone();
        let name = identity.borrow().common_name().map(str::to_owned);
        let Some(name) = name else {
            bail!("peers.identity: the certificate has no common name; run `atoll certs agent proxy-servers`");
        };
        let id: AgentId = name.parse().context("peers.identity: the common name is invalid")?;
        Self::check(&id, clusters)?;
        let tls = client_config(server_ca, Some(identity.clone()), &[protocol::upgrade::ALPN], TlsVersions::Tls13);
        let offers = watch::Sender::new(Arc::from([]));
        let current = offers.subscribe();
        let service = Peer::new(Arc::clone(registry), id.clone(), Arc::clone(server_id), current, tasks.child());
        let dial = Dial {
            tls: Arc::new(tls),
            identity,
            egress: Arc::new(Egress::default()),
            service,
            backoff: BACKOFF,
            tasks: tasks.child(),
            tunnels: Arc::new(Tunnels::default()),
            workers: workers.clone(),
        };
        let servers = config.servers.iter().map(|server| (**server).clone()).collect();
        Ok(Some(Self {
            id,
            dial,
            servers,
            registry: Arc::clone(registry),
            offers,
            callers: Arc::default(),
            identity: shown,
        }))
    }

    /// Refuses a configuration in which an agent has the name of the proxy-servers: its certificate would make it one of them.
    pub(super) fn check(id: &AgentId, clusters: &[Located<config::Cluster>]) -> anyhow::Result<()> {
        let named = clusters.iter().find(|cluster| cluster.agents.contains(id));
        named.map_or(Ok(()), |cluster| {
            let cluster = &cluster.name;
            bail!(
                "cluster {cluster}: `agents` lists {id}, which is the common name of `peers.identity`: create \
                 `peers.identity` with a name that no agent has"
            )
        })
    }

    /// Whether each proxy-server that this one has reached has sent its offers.
    pub(super) fn knows_others(&self) -> impl Fn() -> bool + Clone + Send + Sync + use<> {
        let (registry, tunnels) = (Arc::clone(&self.registry), Arc::clone(&self.dial.tunnels));
        move || {
            let known = registry.peers().known();
            let dialled = tunnels.all().into_iter().filter_map(|route| route.tunnel.ok());
            let mut dialled = dialled.map(|tunnel| known.contains(&tunnel.acceptance.server)).peekable();
            dialled.peek().is_some() && dialled.all(|is_known| is_known)
        }
    }

    /// Starts the tasks.
    pub(super) fn run(self, tasks: &Tasks) {
        let Self { dial, servers, registry, offers, callers, .. } = self;
        tasks.spawn_until_cancelled("unread", dial.service.clone().limit_unread());
        tasks.spawn_until_cancelled("offers", publish(registry, offers));
        // A list has an entry for each proxy-server, so no address is missing, and it would be unclear which entry's
        // port and name an address has.
        let is_name_of_all = servers.len() == 1;
        for server in servers {
            let callers = if is_name_of_all { callers.follow() } else { dial::no_callers() };
            tasks.spawn_until_cancelled("dial", dial.clone().keep(server, callers));
        }
    }
}

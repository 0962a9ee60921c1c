//! Dials the other proxy-servers.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use dial::routes::Tunnels;
use dial::{Dial, Egress};
use ops::backoff::Backoff;
use ops::drain::Tasks;
use ops::files::Reloader;
use ops::tls::{Identity, ServerCa, TlsVersions, client_config};
use protocol::registration::Offer;
use protocol::{AgentId, Authority};
use tokio::sync::watch;

use crate::config;
use crate::peers::{Peer, publish};
use crate::registry::Registry;
use crate::workers::Workers;

/// The pauses between attempts. Proxy-servers are few, and the clients of one that has started again wait for the others.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(1));

/// Everything that the other proxy-servers need.
pub(super) struct Peers {
    /// The common name of all proxy-servers.
    pub(super) id: AgentId,
    dial: Dial<Peer>,
    servers: Vec<Authority>,
    registry: Arc<Registry>,
    offers: watch::Sender<Arc<[Offer]>>,
}

// === impl Peers ===

impl Peers {
    /// Reads the certificate. `serving_ca` is the CA of the listeners of all proxy-servers.
    pub(super) fn open(
        (config, serving_ca): (&config::Peers, &config::KeyPair),
        reloader: &Reloader,
        (registry, server_id): (&Arc<Registry>, &Arc<str>),
        (workers, tasks): (&Workers, &Tasks),
    ) -> anyhow::Result<Self> {
        let config::KeyPair { certificate, key } = &*config.identity;
        let identity = reloader
            .watch([certificate.to_path_buf(), key.to_path_buf()], |[certificate, key]| {
                Identity::from_pem(certificate, key)
            })
            .context("peers.identity")?;
        let server_ca = reloader
            .watch([serving_ca.certificate.to_path_buf()], |[pem]| ServerCa::from_pem(pem))
            .context("servingCA")?;
        let name = identity.borrow().common_name().map(str::to_owned);
        let Some(name) = name else {
            bail!("peers.identity: the certificate has no common name; make one with `atoll certs agent NAME`");
        };
        let id: AgentId = name.parse().context("peers.identity: the common name is invalid")?;
        let tls = client_config(server_ca, Some(identity), &[protocol::upgrade::ALPN], TlsVersions::Tls13);
        let offers = watch::Sender::new(Arc::from([]));
        let current = offers.subscribe();
        let service = Peer::new(Arc::clone(registry), id.clone(), Arc::clone(server_id), current, tasks.child());
        let dial = Dial {
            tls: Arc::new(tls),
            egress: Arc::new(Egress::default()),
            service,
            backoff: BACKOFF,
            tasks: tasks.child(),
            tunnels: Arc::new(Tunnels::default()),
            workers: workers.clone(),
        };
        let servers = config.servers.iter().map(|server| (**server).clone()).collect();
        Ok(Self { id, dial, servers, registry: Arc::clone(registry), offers })
    }

    /// Starts the tasks.
    pub(super) fn run(self, tasks: &Tasks) {
        let Self { dial, servers, registry, offers, .. } = self;
        tasks.spawn_until_cancelled("unread", dial.service.clone().limit_unread());
        tasks.spawn_until_cancelled("offers", publish(registry, offers));
        for server in servers {
            tasks.spawn_until_cancelled("dial", dial.clone().keep(server));
        }
    }
}

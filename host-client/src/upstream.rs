//! The addresses of the API servers and the agent's credentials, which can change.

use std::sync::Arc;

use ops::drain::Tasks;
use ops::files::{Changes, Reloader, Watched};

use super::counters::Counters;
use super::dial::{Dial, TlsDial};
use super::error::OpenError;
use super::in_cluster;
use super::servers::Servers;
use crate::config;
use kubeconfig::Address;
use kubeconfig::Bearer;
use kubeconfig::{ClientConfig, Credentials};

/// The servers and credentials for new requests.
pub(super) struct Upstream {
    pub(super) servers: Servers,
    pub(super) bearer: Option<Watched<Bearer>>,
}

/// The source of [`Upstream`].
pub(super) struct UpstreamSource {
    client_config: Watched<ClientConfig>,
    /// Subscribed before `client_config` was first read, so that no change is missed.
    client_config_changes: Changes,
    more: Vec<Address>,
    reloader: Reloader,
    counters: Arc<Counters>,
    tasks: Tasks,
}

/// Notifies of changes of the certificates that handshakes use.
pub(super) struct Renewals {
    authorities: Changes,
    identity: Option<Changes>,
}

// === impl UpstreamSource ===

impl UpstreamSource {
    /// Reads the configuration, and a kubeconfig if it names one.
    pub(super) fn new(
        config: &config::Host,
        reloader: &Reloader,
        counters: Arc<Counters>,
        tasks: Tasks,
    ) -> Result<Self, OpenError> {
        let more = config.servers.iter().map(|server| server.parse().map_err(OpenError::Server));
        let more = more.collect::<Result<_, _>>()?;
        let client_config = match &config.kubeconfig {
            Some(path) => kubeconfig::watch(path.to_path_buf(), reloader)?,
            None if config.in_cluster => Watched::fixed(in_cluster::client_config()?),
            None => return Err(OpenError::Nothing),
        };
        Ok(Self {
            client_config_changes: client_config.changes(),
            client_config,
            more,
            reloader: reloader.clone(),
            counters,
            tasks,
        })
    }

    /// Reads the files that the configuration names. Blocks on the file system, and opens no connection.
    pub(super) fn open(&self) -> Result<(Upstream, Renewals), OpenError> {
        let client_config = self.client_config.borrow();
        let credentials = client_config.open(&self.reloader)?;
        let mut addresses = vec![client_config.server.clone()];
        // The operator may list the kubeconfig's own address again.
        for address in &self.more {
            if !addresses.contains(address) {
                addresses.push(address.clone());
            }
        }
        let dial: Arc<dyn Dial> = Arc::new(TlsDial::new(&credentials, client_config.server_name.clone()));
        let servers = Servers::new(&addresses, &dial, credentials.bearer.as_ref(), &self.counters, &self.tasks);
        let renewals = Renewals::of(&credentials);
        Ok((Upstream { servers, bearer: credentials.bearer }, renewals))
    }

    /// The changes of the kubeconfig since it was first read.
    pub(super) fn changes(&self) -> Changes {
        self.client_config_changes.clone()
    }
}

// === impl Renewals ===

impl Renewals {
    fn of(credentials: &Credentials) -> Self {
        Self {
            authorities: credentials.authorities.changes(),
            identity: credentials.identity.as_ref().map(Watched::changes),
        }
    }

    /// Waits for the next change.
    pub(super) async fn next(&mut self) {
        tokio::select! {
            () = changed(Some(&mut self.authorities)) => {}
            () = changed(self.identity.as_mut()) => {}
        }
    }
}

/// Never ends if nothing can change.
pub(super) async fn changed(changes: Option<&mut Changes>) {
    let is_exchanged = match changes {
        Some(changes) => changes.changed().await,
        None => false,
    };
    if !is_exchanged {
        std::future::pending::<()>().await;
    }
}

#[cfg(test)]
mod tests;

//! The addresses of the API servers and the agent's credentials, which are kept up to date.
//!
//! A changed kubeconfig (another address, other files) replaces the pools. A changed certificate replaces only their
//! connections. A changed token replaces neither.

use std::sync::Arc;

use ops::drain::Tasks;
use ops::files::{Changes, Reloader, Watched};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{error, info};

use super::address::Address;
use super::bearer::Bearer;
use super::client_config::{ClientConfig, Credentials};
use super::counters::Counters;
use super::dial::{Dial, TlsDial};
use super::error::OpenError;
use super::limits::REOPEN;
use super::servers::Servers;
use super::{Core, in_cluster};
use crate::config;

/// The servers and credentials for new requests.
pub(super) struct Access {
    pub(super) servers: Servers,
    pub(super) bearer: Option<Watched<Bearer>>,
}

/// The source of [`Access`].
pub(super) struct Origin {
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

// === impl Origin ===

impl Origin {
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
    pub(super) fn open(&self) -> Result<(Access, Renewals), OpenError> {
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
        Ok((Access { servers, bearer: credentials.bearer }, renewals))
    }

    /// Applies changes until `gone` is cancelled.
    pub(super) async fn follow(self, mut renewals: Renewals, core: Arc<Core>, gone: CancellationToken) {
        let origin = Arc::new(self);
        let mut client_config = origin.client_config_changes.clone();
        loop {
            tokio::select! {
                () = gone.cancelled() => return,
                () = changed(Some(&mut client_config)) => match origin.reopen(&gone).await {
                    Some((access, new)) => {
                        info!("the kubeconfig has changed");
                        core.access.swap(Arc::new(access)).servers.close();
                        renewals = new;
                    }
                    None => return,
                },
                () = renewals.next() => {
                    info!("credentials have changed; new requests go over new connections");
                    core.access.load().servers.retire();
                }
            }
        }
    }

    /// Repeats until it succeeds, because the kubeconfig may exist before the files that it names.
    async fn reopen(self: &Arc<Self>, gone: &CancellationToken) -> Option<(Access, Renewals)> {
        loop {
            let origin = Arc::clone(self);
            // It is joined at once, so it does not outlive the drain. A blocked file system must not stop the runtime.
            match tokio::task::spawn_blocking(move || origin.open()).await {
                Ok(Ok(opened)) => return Some(opened),
                Ok(Err(error)) => {
                    let error: &dyn std::error::Error = &error;
                    error!(error, "the new kubeconfig cannot be used yet, the old one stays in force");
                }
                Err(panic) => error!(%panic, "reading the new kubeconfig failed"),
            }
            gone.run_until_cancelled(sleep(REOPEN)).await?;
        }
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
    async fn next(&mut self) {
        tokio::select! {
            () = changed(Some(&mut self.authorities)) => {}
            () = changed(self.identity.as_mut()) => {}
        }
    }
}

/// Never ends if nothing can change.
async fn changed(changes: Option<&mut Changes>) {
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

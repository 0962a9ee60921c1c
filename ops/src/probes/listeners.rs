//! The listeners of a process for probes, for the operator, and for Prometheus.

use super::pages::Pages;
use super::serve::{MAX_CONNECTIONS, serve};
use crate::drain::Tasks;
use crate::listen::{BindError, ListenAddr, Listener};

/// The listeners, which have different addresses because different parties may reach them.
#[derive(Debug)]
pub struct Listeners {
    /// The kubelet: `listeners.probes` of the configuration.
    pub probes: Listener,
    /// The operator: `listeners.admin`.
    pub admin: Listener,
    /// Prometheus: `listeners.metrics`. `None` if the configuration has none.
    pub metrics: Option<Listener>,
}

/// A listener cannot be bound.
#[derive(Debug, thiserror::Error)]
#[error("listeners.{key}")]
pub struct ListenersError {
    key: &'static str,
    source: BindError,
}

// === impl Listeners ===

impl Listeners {
    /// Binds the ports.
    pub async fn bind(
        probes: &ListenAddr,
        admin: &ListenAddr,
        metrics: Option<&ListenAddr>,
    ) -> Result<Self, ListenersError> {
        let metrics = match metrics {
            Some(address) => Some(bind("metrics", address).await?),
            None => None,
        };
        Ok(Self { probes: bind("probes", probes).await?, admin: bind("admin", admin).await?, metrics })
    }

    /// Serves the pages of each listener as tasks. See [`serve`] for the scope that they need.
    pub fn serve(self, probes: Pages, admin: Pages, metrics: Pages, tasks: &Tasks) {
        tasks.spawn("probes", serve(self.probes, probes, tasks.clone(), "probes"));
        tasks.spawn("admin", serve(self.admin, admin, tasks.clone(), "admin"));
        if let Some(listener) = self.metrics {
            tasks.spawn("metrics", serve(listener, metrics, tasks.clone(), "metrics"));
        }
    }
}

async fn bind(key: &'static str, address: &ListenAddr) -> Result<Listener, ListenersError> {
    Listener::bind(address, MAX_CONNECTIONS).await.map_err(|source| ListenersError { key, source })
}

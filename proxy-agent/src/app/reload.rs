//! Reloads the configuration while the process runs. Changes of `virtualClusters` and `sharedObjects` take effect at
//! once, and all other changes after a restart.
//!
//! A file that cannot be read, or that is invalid, changes nothing. The reloader logs the reason, with line numbers.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use ops::config::Located;
use ops::files::{Reloader, Watched};
use protocol::Offer;
use tokio::sync::watch;
use tracing::{error, info, warn};

use super::exchange::ClusterServices;
use crate::config::ProxyAgentConfiguration;
use dial::offers::Current;
use virtual_cluster::config::VirtualCluster;

/// Follows the configuration file.
pub(super) struct Reload {
    file: Watched<ProxyAgentConfiguration>,
    path: PathBuf,
    /// The content of the file when it was last read.
    seen: Arc<ProxyAgentConfiguration>,
    /// The configuration in force.
    running: ProxyAgentConfiguration,
    reloader: Reloader,
    services: Option<ClusterServices>,
    offers: watch::Sender<Arc<[Offer]>>,
}

// === impl Reload ===

impl Reload {
    /// Starts to follow the file. `config` is the configuration in force.
    pub(super) fn new(
        config: &ProxyAgentConfiguration,
        path: &Path,
        reloader: Reloader,
        services: Option<ClusterServices>,
    ) -> anyhow::Result<Self> {
        let origin = path.to_owned();
        let parse = move |[text]: [&[u8]; 1]| ops::config::parse(&String::from_utf8_lossy(text), &origin);
        let file = reloader.watch([path.to_owned()], parse).context("the configuration")?;
        let offers = watch::Sender::new(config.offers().into());
        // Flags override keys of the file. A key that they override has not changed.
        let running = ProxyAgentConfiguration {
            virtual_clusters: config.virtual_clusters.clone(),
            shared_objects: config.shared_objects.clone(),
            ..ProxyAgentConfiguration::clone(&file.borrow())
        };
        let seen = Arc::new(running.clone());
        Ok(Self { file, path: path.to_owned(), seen, running, reloader, services, offers })
    }

    /// The clusters that the agent offers.
    pub(super) fn offers(&self) -> Current {
        self.offers.subscribe()
    }

    /// Reloads the files for ever.
    pub(super) async fn run(self) {
        let reloader = self.reloader.clone();
        tokio::join!(reloader.run(), self.follow());
    }

    async fn follow(mut self) {
        let mut changes = self.file.changes();
        loop {
            let config = self.file.borrow();
            // Comments and the order of keys may differ.
            if *config != *self.seen {
                self.apply(&config);
                self.seen = config;
            }
            if !changes.changed().await {
                return;
            }
        }
    }

    fn apply(&mut self, config: &ProxyAgentConfiguration) {
        let file = self.path.display();
        if config.virtual_clusters != self.running.virtual_clusters {
            match self.services.as_ref().map(|services| (services, services.read(config))) {
                Some((services, Ok(clusters))) => {
                    let before = std::mem::replace(&mut self.running.virtual_clusters, config.virtual_clusters.clone());
                    let (before, now) = (names(&before), names(&config.virtual_clusters));
                    info!(?before, ?now, "a new list of virtual clusters is in force");
                    // First withdraw the clusters that were removed, so that the proxy-server sends no more requests
                    // for them.
                    self.offers.send_replace(self.running.offers().into());
                    services.exchange(clusters);
                }
                Some((_, Err(error))) => {
                    let error: &dyn std::error::Error = &error;
                    error!(%file, error, "the new list of virtual clusters is not in force");
                }
                None => warn!(%file, "virtual clusters need `host`; restart the agent to apply it"),
            }
        }
        if config.shared_objects != self.running.shared_objects {
            self.running.shared_objects = config.shared_objects.clone();
            if let Some(services) = &self.services {
                services.shared.exchange(&config.shared_objects);
                info!("the new `sharedObjects` are in force");
            }
        }
        let virtual_clusters = self.running.virtual_clusters.clone();
        if (ProxyAgentConfiguration { virtual_clusters, ..config.clone() }) != self.running {
            warn!(%file, "only changes of `virtualClusters` and `sharedObjects` are in force; restart the agent to apply the others");
        }
    }
}

fn names(clusters: &[Located<VirtualCluster>]) -> Vec<&str> {
    clusters.iter().map(|cluster| cluster.name.as_str()).collect()
}

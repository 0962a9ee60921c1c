//! Reloads the configuration while the process runs. Changes of `virtualClusters` and `sharedObjects` take effect at
//! once, and all other changes after a restart. VirtualClusters of the host are served in addition to those of the file.
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

use super::declared::Declarations;
use super::exchange::ClusterServices;
use crate::config::ProxyAgentConfiguration;
use dial::offers::Current;
use virtual_cluster::config::VirtualCluster;
use virtual_cluster::declared::{Accepted, InForce, Judged, Objects, Others, accept};

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
    declarations: Declarations,
    /// The virtual clusters of VirtualClusters that are served.
    declared: InForce,
}

// === impl Reload ===

impl Reload {
    /// Starts to follow the file. `config` is the configuration in force.
    pub(super) fn new(
        config: &ProxyAgentConfiguration,
        path: &Path,
        reloader: Reloader,
        services: Option<ClusterServices>,
        declarations: Declarations,
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
        let (path, declared) = (path.to_owned(), InForce::new());
        Ok(Self { file, path, seen, running, reloader, services, offers, declarations, declared })
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
            let mut is_new = false;
            if *config != *self.seen {
                is_new = self.apply(&config);
                self.seen = config;
            }
            let objects = self.declarations.objects.borrow_and_update().clone();
            self.serve(objects, is_new);
            tokio::select! {
                can_change = changes.changed() => if !can_change {
                    return;
                },
                Ok(()) = self.declarations.objects.changed() => {}
            }
        }
    }

    /// Takes over what has changed in the file. Returns whether it has another list of virtual clusters.
    fn apply(&mut self, config: &ProxyAgentConfiguration) -> bool {
        let file = self.path.display();
        let mut is_new = false;
        if config.virtual_clusters != self.running.virtual_clusters {
            match self.services.as_ref().map(|services| services.read(of_file(config))) {
                Some(Ok(_)) => {
                    let before = std::mem::replace(&mut self.running.virtual_clusters, config.virtual_clusters.clone());
                    let (before, now) = (names(&before), names(&config.virtual_clusters));
                    info!(?before, ?now, "a new list of virtual clusters is in force");
                    is_new = true;
                }
                Some(Err(error)) => {
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
        is_new
    }

    /// Serves the virtual clusters of the file and of VirtualClusters, if either have changed. `objects` is `None` until they are
    /// known.
    fn serve(&mut self, objects: Option<Arc<Objects>>, is_new: bool) {
        let Some(services) = &self.services else { return };
        let Accepted { clusters, verdicts } = match &objects {
            Some(objects) => accept(&others(&self.running), &self.declared, objects),
            None => Accepted::default(),
        };
        if is_new || clusters != self.declared {
            let all = of_file(&self.running).chain(clusters.values().map(|(_, cluster)| cluster));
            match services.read(all) {
                Ok(all) => {
                    if clusters.keys().ne(self.declared.keys()) {
                        let (before, now): (Vec<_>, Vec<_>) =
                            (self.declared.keys().collect(), clusters.keys().collect());
                        info!(?before, ?now, "the VirtualClusters that are served have changed");
                    }
                    // First withdraw the clusters that were removed, so that the proxy-server sends no more requests
                    // for them.
                    let declared = clusters.values().map(|(_, cluster)| cluster.offer());
                    self.offers.send_replace(self.running.offers().into_iter().chain(declared).collect());
                    services.exchange(all);
                    self.declared = clusters;
                }
                Err(error) => {
                    // Each has been checked alone.
                    let error: &dyn std::error::Error = &error;
                    error!(error, "the new list of virtual clusters is not in force");
                    return;
                }
            }
        }
        if let Some(objects) = objects {
            let verdicts = verdicts.into_iter().collect();
            self.declarations.judged.send_replace(Some(Judged { objects, verdicts }));
        }
    }
}

/// The virtual clusters of the file.
fn of_file(config: &ProxyAgentConfiguration) -> impl Iterator<Item = &VirtualCluster> {
    config.virtual_clusters.iter().map(|cluster| &**cluster)
}

/// The names in the file.
fn others(config: &ProxyAgentConfiguration) -> Others {
    Others {
        virtuals: of_file(config).map(|cluster| cluster.name.to_string()).collect(),
        physicals: config.physical_clusters.iter().map(|cluster| cluster.name.to_string()).collect(),
    }
}

fn names(clusters: &[Located<VirtualCluster>]) -> Vec<&str> {
    clusters.iter().map(|cluster| cluster.name.as_str()).collect()
}

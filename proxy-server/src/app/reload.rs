//! Reloads the configuration while the process runs: the list of clusters and the section `karmada`. Other changes need
//! a restart.
//!
//! A file that cannot be read or is invalid changes nothing; the reloader logs the reason with the lines. If the
//! configuration names a client CA file that does not exist yet, it takes effect once the file exists.
//!
//! A cluster that is a member of Karmada and leaves the file is served until Karmada has released it, because Karmada
//! empties a member through its endpoint.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use ops::config::Located;
use ops::files::{Changes, Reloader, Watched};
use protocol::ClusterName;
use request_metrics::RequestMetrics;
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;
use tracing::{error, info, warn};

use crate::client_cas::{ByCluster, ClientCas};
use crate::config::{Cluster, ProxyServerConfiguration};
use crate::karmada::{self, Wanted};
use crate::registry::{Clusters, Registry};

/// The pause between two attempts to read a missing file.
const RETRY: Duration = Duration::from_secs(2);

/// The parts that follow the file.
pub(super) struct Reload {
    file: Watched<ProxyServerConfiguration>,
    path: PathBuf,
    /// The content of the file at the last read.
    seen: Arc<ProxyServerConfiguration>,
    /// The configuration in force.
    running: ProxyServerConfiguration,
    reloader: Reloader,
    parts: Parts,
    /// Clusters that have left the file, and are served until Karmada has released them.
    leaving: Vec<Located<Cluster>>,
    karmada: Orders,
}

/// What a new list of clusters is given to.
pub(super) struct Parts {
    pub(super) registry: Arc<Registry>,
    pub(super) client_cas: Arc<ClientCas>,
    pub(super) requests: Arc<RequestMetrics>,
}

/// The channel to Karmada's reconciler, and the clusters that have left it.
type Orders = (watch::Sender<Wanted>, mpsc::Receiver<ClusterName>);

// === impl Reload ===

impl Reload {
    /// Starts to follow the file. `config` is the configuration in force.
    pub(super) fn new(
        config: &ProxyServerConfiguration,
        path: &Path,
        reloader: Reloader,
        parts: Parts,
        karmada: Orders,
    ) -> anyhow::Result<Self> {
        if let Some(wanted) = &config.karmada {
            karmada::check(wanted.kubeconfig.to_path_buf(), &reloader).context("karmada.kubeconfig")?;
        }
        let origin = path.to_owned();
        let parse = move |[text]: [&[u8]; 1]| ops::config::parse(&String::from_utf8_lossy(text), &origin);
        let file = reloader.watch([path.to_owned()], parse).context("the configuration")?;
        let (seen, running) = (Arc::new(config.clone()), config.clone());
        let path = path.to_owned();
        parts.requests.exchange(config.clusters.iter().map(|cluster| &cluster.name));
        Ok(Self { file, path, seen, running, reloader, parts, leaving: Vec::new(), karmada })
    }

    /// Reloads files, for ever.
    pub(super) async fn run(self) {
        let reloader = self.reloader.clone();
        tokio::join!(reloader.run(), self.follow());
    }

    async fn follow(mut self) {
        let mut changes = self.file.changes();
        loop {
            self.take(&mut changes).await;
            tokio::select! {
                is_changed = changes.changed() => if !is_changed {
                    return;
                },
                Some(name) = self.karmada.1.recv() => self.has_left(&name),
            }
        }
    }

    /// Puts the content of the file into force as soon as all files that it names exist.
    async fn take(&mut self, changes: &mut Changes) {
        let mut told = String::new();
        loop {
            let config = self.file.borrow();
            // Only comments or the order of keys may have changed.
            if *config == *self.seen {
                return;
            }
            let leaving = self.leaving(&config);
            match self.read(&config, &leaving) {
                Ok(client_cas) => {
                    self.leaving = leaving;
                    self.put_in_force(&config, client_cas);
                    self.seen = config;
                    return;
                }
                Err(error) => {
                    let error = format!("{error:#}");
                    if error != told {
                        error!(file = %self.path.display(), error, "the new list of clusters is not in force");
                        told = error;
                    }
                }
            }
            tokio::select! {
                () = sleep(RETRY) => {}
                _ = changes.changed() => {}
            }
        }
    }

    /// The files that a configuration names and that are not read yet.
    fn read(&self, config: &ProxyServerConfiguration, leaving: &[Located<Cluster>]) -> anyhow::Result<ByCluster> {
        if let Some(wanted) = config.karmada.as_ref().filter(|_| config.karmada != self.running.karmada) {
            karmada::check(wanted.kubeconfig.to_path_buf(), &self.reloader).context("karmada.kubeconfig")?;
        }
        self.parts.client_cas.read(&served(config, leaving), &self.reloader)
    }

    /// The members of Karmada that are not in this configuration any more. Without a section `karmada`, nothing would
    /// handle them.
    fn leaving(&self, config: &ProxyServerConfiguration) -> Vec<Located<Cluster>> {
        if config.karmada.is_none() {
            return Vec::new();
        }
        let joined = Wanted::of(&self.running);
        let members = self.running.clusters.iter().filter(|cluster| joined.has(&cluster.name));
        let is_named = |cluster: &Located<Cluster>| config.clusters.iter().any(|named| named.name == cluster.name);
        members.chain(&self.leaving).filter(|cluster| !is_named(cluster)).cloned().collect()
    }

    fn put_in_force(&mut self, config: &ProxyServerConfiguration, client_cas: ByCluster) {
        let (before, now) = (names(&self.running.clusters), names(&config.clusters));
        if config.clusters != self.running.clusters {
            info!(?before, ?now, leaving = ?names(&self.leaving), "a new list of clusters is in force");
        }
        if config.karmada != self.running.karmada {
            info!("the new `karmada` settings are in force");
        }
        self.running.clusters.clone_from(&config.clusters);
        self.running.karmada.clone_from(&config.karmada);
        self.serve(client_cas);
        let (clusters, karmada) = (self.running.clusters.clone(), self.running.karmada.clone());
        if (ProxyServerConfiguration { clusters, karmada, ..config.clone() }) != self.running {
            warn!(file = %self.path.display(), "only changes of `clusters` and `karmada` are in force; restart the proxy-server to apply the others");
        }
    }

    /// Closes its endpoint, unless the cluster is in the file again.
    fn has_left(&mut self, name: &ClusterName) {
        let before = self.leaving.len();
        self.leaving.retain(|cluster| cluster.name != *name);
        if self.leaving.len() == before {
            return;
        }
        info!(cluster = %name, "no longer served");
        // This cannot fail: it only removes clusters, so all files are read already.
        match self.read(&self.running, &self.leaving) {
            Ok(client_cas) => self.serve(client_cas),
            Err(error) => error!(error = format!("{error:#}"), "the previous list of clusters stays in force"),
        }
    }

    /// The clusters of the file, and those that are leaving.
    fn serve(&mut self, client_cas: ByCluster) {
        // First, so that every cluster that requests can find has its authority.
        self.parts.client_cas.exchange(client_cas);
        let config = served(&self.running, &self.leaving);
        self.parts.requests.exchange(config.clusters.iter().map(|cluster| &cluster.name));
        for tunnel in self.parts.registry.reload(Clusters::of(&config)) {
            warn!(agent = %tunnel.agent, "closing the tunnel: the agent may not serve any cluster");
            tunnel.end.cancel();
        }
        let leaving = self.leaving.iter().map(|cluster| cluster.name.clone());
        self.karmada.0.send_replace(Wanted::of(&self.running).without(leaving));
    }
}

/// The configuration with the clusters that have left it but are still served.
fn served(config: &ProxyServerConfiguration, leaving: &[Located<Cluster>]) -> ProxyServerConfiguration {
    let mut config = config.clone();
    config.clusters.extend_from_slice(leaving);
    config
}

fn names(clusters: &[Located<Cluster>]) -> Vec<&str> {
    clusters.iter().map(|cluster| cluster.name.as_str()).collect()
}

//! Reloads the configuration while the process runs: the list of clusters, `grants.agents`, and the sections `karmada` and `audit`.
//! Other changes need a restart. Clusters that agents have added are served as if the file had them.
//!
//! A file that cannot be read or is invalid changes nothing; the reloader logs the reason with the lines. If the
//! configuration names a client CA file that does not exist yet, it takes effect once the file exists.
//!
//! If a member of Karmada is removed from the file, it is served until it has left Karmada, because Karmada removes its
//! objects from a member through the endpoint.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use audit::{Auditors, Opened};
use ops::config::Located;
use ops::files::{Changes, Reloader, Watched};
use protocol::{AgentId, ClusterName};
use request_metrics::RequestMetrics;
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;
use tracing::{error, info, warn};

use super::files::open_audit_logs;
use super::peers::Peers;
use crate::client_cas::{self, ClientCas};
use crate::config::{Cluster, ProxyServerConfiguration};
use crate::grants::{self, Added, Grants};
use crate::issuers::{self, Issuers};
use crate::karmada::{self, Desired};
use crate::registry::{Clusters, Registry};

/// The pause between two attempts to read a missing file.
const RETRY_INTERVAL: Duration = Duration::from_secs(2);

/// Follows the configuration file.
pub(super) struct Reload {
    file: Watched<ProxyServerConfiguration>,
    path: PathBuf,
    /// The clusters that agents have added.
    added: watch::Receiver<Arc<Added>>,
    /// The content of the file at the last read, with the added clusters.
    seen: Arc<ProxyServerConfiguration>,
    /// The configuration in force.
    running: ProxyServerConfiguration,
    reloader: Reloader,
    followers: Followers,
    /// Clusters that are no longer in the file, and are served until they have left Karmada.
    leaving: Vec<Located<Cluster>>,
    /// The clusters that have left Karmada.
    left: mpsc::Receiver<ClusterName>,
}

/// The files of a configuration that have been read.
struct Files {
    client_cas: client_cas::ByCluster,
    issuers: issuers::ByCluster,
    audit_logs: Opened,
}

/// The parts of the process that get each new list of clusters.
pub(super) struct Followers {
    pub(super) registry: Arc<Registry>,
    pub(super) client_cas: Arc<ClientCas>,
    pub(super) auditors: Arc<Auditors>,
    pub(super) issuers: Arc<Issuers>,
    pub(super) requests: Arc<RequestMetrics>,
    /// The common name of all proxy-servers.
    pub(super) peer: Option<AgentId>,
    /// To the reconciler.
    pub(super) karmada: watch::Sender<Desired>,
    /// What agents may add.
    pub(super) grants: Option<Arc<Grants>>,
}

// === impl Reload ===

impl Reload {
    /// Starts to follow the file. `config` is the configuration in force.
    pub(super) fn new(
        config: &ProxyServerConfiguration,
        path: &Path,
        reloader: Reloader,
        followers: Followers,
        left: mpsc::Receiver<ClusterName>,
    ) -> anyhow::Result<Self> {
        if let Some(karmada) = &config.karmada {
            karmada::check(karmada.kubeconfig.to_path_buf(), &reloader).context("karmada.kubeconfig")?;
        }
        let origin = path.to_owned();
        let parse = move |[text]: [&[u8]; 1]| ops::config::parse(&String::from_utf8_lossy(text), &origin);
        let file = reloader.watch([path.to_owned()], parse).context("the configuration")?;
        let (seen, running) = (Arc::new(config.clone()), config.clone());
        let path = path.to_owned();
        followers.requests.exchange(config.clusters.iter().map(|cluster| &cluster.name));
        let added = match &followers.grants {
            Some(grants) => grants.added(),
            None => watch::channel(Arc::default()).1,
        };
        Ok(Self { file, path, added, seen, running, reloader, followers, leaving: Vec::new(), left })
    }

    /// Reloads files, for ever.
    pub(super) async fn run(self) {
        let reloader = self.reloader.clone();
        tokio::join!(reloader.run(), self.follow());
    }

    async fn follow(mut self) {
        let mut changes = self.file.changes();
        loop {
            self.apply(&mut changes).await;
            tokio::select! {
                is_changed = changes.changed() => if !is_changed {
                    return;
                },
                Ok(()) = self.added.changed() => {}
                Some(name) = self.left.recv() => self.has_left(&name),
            }
        }
    }

    /// Puts the content of the file into force as soon as all files that it names exist.
    async fn apply(&mut self, changes: &mut Changes) {
        let mut logged = String::new();
        loop {
            let file = self.file.borrow();
            if let Some(grants) = &self.followers.grants {
                grants.exchange(Arc::clone(&file));
            }
            let config = Arc::new(grants::merge(&file, &self.added.borrow_and_update()));
            // Only comments or the order of keys may have changed.
            if *config == *self.seen {
                return;
            }
            let leaving = self.leaving(&config);
            match self.read(&config, &leaving) {
                Ok(files) => {
                    self.leaving = leaving;
                    self.put_in_force(&config, files);
                    self.seen = config;
                    return;
                }
                Err(error) => {
                    let error = format!("{error:#}");
                    if error != logged {
                        error!(file = %self.path.display(), error, "the new list of clusters is not in force");
                        logged = error;
                    }
                }
            }
            tokio::select! {
                () = sleep(RETRY_INTERVAL) => {}
                _ = changes.changed() => {}
                Ok(()) = self.added.changed() => {}
            }
        }
    }

    /// Reads the files of a configuration that are not read yet.
    fn read(&self, config: &ProxyServerConfiguration, leaving: &[Located<Cluster>]) -> anyhow::Result<Files> {
        if let Some(karmada) = config.karmada.as_ref().filter(|_| config.karmada != self.running.karmada) {
            karmada::check(karmada.kubeconfig.to_path_buf(), &self.reloader).context("karmada.kubeconfig")?;
        }
        if let Some(id) = &self.followers.peer {
            Peers::check(id, &config.clusters)?;
        }
        let config = served(config, leaving);
        let client_cas = self.followers.client_cas.read(&config, &self.reloader)?;
        let issuers = self.followers.issuers.read(&config, &self.reloader)?;
        let audit_logs = open_audit_logs(&self.followers.auditors, &config, &self.reloader)?;
        Ok(Files { client_cas, issuers, audit_logs })
    }

    /// The members of Karmada that are no longer in this configuration. None if it has no section `karmada`, because then
    /// nothing makes them leave.
    fn leaving(&self, config: &ProxyServerConfiguration) -> Vec<Located<Cluster>> {
        if config.karmada.is_none() {
            return Vec::new();
        }
        let desired = Desired::of(&self.running);
        let members = self.running.clusters.iter().filter(|cluster| desired.has(&cluster.name));
        let is_named = |cluster: &Located<Cluster>| config.clusters.iter().any(|named| named.name == cluster.name);
        members.chain(&self.leaving).filter(|cluster| !is_named(cluster)).cloned().collect()
    }

    fn put_in_force(&mut self, config: &ProxyServerConfiguration, files: Files) {
        let (before, now) = (names(&self.running.clusters), names(&config.clusters));
        if config.clusters != self.running.clusters {
            info!(?before, ?now, leaving = ?names(&self.leaving), "a new list of clusters is in force");
        }
        if config.audit != self.running.audit {
            info!("the new `audit` settings are in force");
        }
        if config.karmada != self.running.karmada {
            info!("the new `karmada` settings are in force");
        }
        self.running.clusters.clone_from(&config.clusters);
        self.running.karmada.clone_from(&config.karmada);
        self.running.audit.clone_from(&config.audit);
        if let (Some(running), Some(new)) = (&mut self.running.grants, &config.grants) {
            running.agents.clone_from(&new.agents);
            running.kubeconfigs.clone_from(&new.kubeconfigs);
        }
        self.serve(files);
        let ProxyServerConfiguration { clusters, audit, karmada, .. } = self.running.clone();
        if (ProxyServerConfiguration { clusters, audit, karmada, ..config.clone() }) != self.running {
            warn!(file = %self.path.display(), "only changes of `clusters`, `grants.agents`, `grants.kubeconfigs`, `karmada` and `audit` are in force; restart the proxy-server to apply the others");
        }
    }

    /// Stops serving a cluster that has left Karmada, unless it is in the file again.
    fn has_left(&mut self, name: &ClusterName) {
        let before = self.leaving.len();
        self.leaving.retain(|cluster| cluster.name != *name);
        if self.leaving.len() == before {
            return;
        }
        info!(cluster = %name, "no longer served");
        // This cannot fail: it only removes clusters, so all files are read already.
        match self.read(&self.running, &self.leaving) {
            Ok(files) => self.serve(files),
            Err(error) => error!(error = format!("{error:#}"), "the previous list of clusters stays in force"),
        }
    }

    /// Serves the clusters of the file, and those that are leaving.
    fn serve(&mut self, files: Files) {
        // First, so that every cluster in the registry has its client CA, its issuer and its audit log.
        self.followers.client_cas.exchange(files.client_cas);
        self.followers.issuers.exchange(files.issuers);
        self.followers.auditors.exchange(files.audit_logs);
        let config = served(&self.running, &self.leaving);
        self.followers.requests.exchange(config.clusters.iter().map(|cluster| &cluster.name));
        for tunnel in self.followers.registry.reload(Clusters::of(&config)) {
            warn!(agent = %tunnel.agent, "closing the tunnel: the agent may not serve any cluster");
            tunnel.end.cancel();
        }
        let leaving = self.leaving.iter().map(|cluster| cluster.name.clone());
        self.followers.karmada.send_replace(Desired::of(&self.running).without(leaving));
    }
}

/// The configuration with the clusters that have left it but are still served.
fn served(config: &ProxyServerConfiguration, leaving: &[Located<Cluster>]) -> ProxyServerConfiguration {
    let mut config = config.clone();
    // Karmada still cleans up in them. Nobody else has business at their sites.
    let without = |cluster: Cluster| Cluster { destinations: Vec::new(), ..cluster };
    config.clusters.extend(leaving.iter().map(|cluster| cluster.clone().map(without)));
    config
}

fn names(clusters: &[Located<Cluster>]) -> Vec<&str> {
    clusters.iter().map(|cluster| cluster.name.as_str()).collect()
}

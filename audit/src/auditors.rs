//! The audit logs of all clusters.

use std::collections::HashMap;
use std::future::pending;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use ops::drain::{Drained, Tasks};
use ops::files::{LoadError, Reloader, Watched};
use ops::metrics::Registry;
use protocol::ClusterName;
use tracing::error;

use crate::auditor::Auditor;
use crate::budget::Budget;
use crate::config::{Audit, Log, Webhook};
use crate::lost::Lost;
use crate::metrics::{LOG, Metrics, OfCluster, WEBHOOK};
use crate::policy::Policy;
use crate::queue::Queue;
use crate::{log, webhook};

/// The audit logs of all clusters.
#[derive(Debug)]
pub struct Auditors {
    by_cluster: ArcSwap<Opened>,
    metrics: Metrics,
    budget: Budget,
    locks: log::Locks,
    tasks: Tasks,
}

/// The audit logs of one configuration. They take effect with [`Auditors::exchange`].
pub type Opened = HashMap<ClusterName, Arc<Auditor>>;

/// The policies that have been read, by file.
type Policies = HashMap<Option<PathBuf>, Watched<Policy>>;

/// An audit log cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The policy cannot be read.
    #[error("audit.policyFile")]
    Policy(#[source] LoadError),
    /// The log cannot be written.
    #[error("audit.log.path: cannot open {}", path.display())]
    Log {
        /// The file.
        path: PathBuf,
        /// What failed.
        source: io::Error,
    },
    /// The kubeconfig of the webhook cannot be used.
    #[error("audit.webhook.kubeconfig")]
    Webhook(#[source] kubeconfig::OpenError),
}

// === impl Auditors ===

impl Auditors {
    /// No logs yet.
    pub fn new(metrics: &Registry) -> Self {
        let (metrics, budget) = (Metrics::new(metrics), Budget::of_memory(ops::machine::memory()));
        Self { by_cluster: ArcSwap::default(), metrics, budget, locks: log::Locks::default(), tasks: Tasks::new() }
    }

    /// Writes what waits, for at most this time. No request may follow.
    pub async fn drain(&self, limit: Duration) {
        if let Drained::Deadline(tasks) = self.tasks.drain(limit, pending::<()>()).await {
            error!(?tasks, "audit events are lost, because they could not be written in time");
        }
    }

    /// The log of a cluster.
    pub fn get(&self, cluster: &ClusterName) -> Option<Arc<Auditor>> {
        let by_cluster = self.by_cluster.load();
        if by_cluster.is_empty() { None } else { by_cluster.get(cluster).cloned() }
    }

    /// Opens the logs of a configuration. Those that have not changed stay open. Blocks on the file system.
    pub fn open<'a>(
        &self,
        wanted: impl IntoIterator<Item = (&'a ClusterName, Audit)>,
        reloader: &Reloader,
    ) -> Result<Opened, OpenError> {
        let current = self.by_cluster.load();
        // Clusters often have the same policy, which is then read once.
        let mut policies = Policies::new();
        for auditor in current.values() {
            let file = auditor.settings.policy_file.as_ref();
            policies.insert(file.map(|file| file.to_path_buf()), auditor.policy.clone());
        }
        let mut opened = HashMap::new();
        for (cluster, settings) in wanted {
            if settings.is_on() {
                let auditor = self.open_one(cluster, settings, (current.get(cluster), &mut policies), reloader)?;
                opened.insert(cluster.clone(), auditor);
            }
        }
        Ok(opened)
    }

    /// Puts logs into force. The others write what they have, and end.
    pub fn exchange(&self, opened: Opened) {
        let before = self.by_cluster.swap(Arc::new(opened));
        let now = self.by_cluster.load();
        for (cluster, auditor) in before.iter().filter(|(cluster, _)| !now.contains_key(*cluster)) {
            debug_assert_eq!(cluster.as_str(), auditor.cluster());
            self.metrics.remove(&auditor.cluster);
        }
    }

    fn open_one(
        &self,
        cluster: &ClusterName,
        settings: Audit,
        (current, policies): (Option<&Arc<Auditor>>, &mut Policies),
        reloader: &Reloader,
    ) -> Result<Arc<Auditor>, OpenError> {
        if let Some(current) = current.filter(|current| current.settings == settings) {
            return Ok(Arc::clone(current));
        }
        let name: Arc<str> = cluster.as_str().into();
        let file = settings.policy_file.as_ref().map(|file| file.to_path_buf());
        let policy = match policies.get(&file) {
            Some(policy) => policy.clone(),
            None => policies.entry(file).insert_entry(open_policy(&settings, reloader)?).get().clone(),
        };
        let kept = current.and_then(|current| current.log.clone().filter(|_| current.settings.log == settings.log));
        let log = match (&settings.log, kept) {
            (Some(_), Some(kept)) => Some(kept),
            (Some(log), None) => Some(self.open_log(&name, log)?),
            (None, _) => None,
        };
        let kept = current.and_then(|it| it.webhook.clone().filter(|_| it.settings.webhook == settings.webhook));
        let webhook = match (&settings.webhook, kept) {
            (Some(_), Some(kept)) => Some(kept),
            (Some(webhook), None) => Some(self.open_webhook(&name, webhook, reloader)?),
            (None, _) => None,
        };
        let events = self.metrics.events.with(&OfCluster { cluster: Arc::clone(&name) });
        Ok(Arc::new(Auditor { cluster: name, settings, policy, log, webhook, events }))
    }

    fn open_log(&self, cluster: &Arc<str>, settings: &Log) -> Result<Queue, OpenError> {
        let lost = Lost::new(&self.metrics, cluster, LOG);
        let opened = log::open(settings, (self.budget.account(), lost), &self.locks, &self.tasks);
        opened.map_err(|source| OpenError::Log { path: settings.path.to_path_buf(), source })
    }

    fn open_webhook(&self, cluster: &Arc<str>, settings: &Webhook, reloader: &Reloader) -> Result<Queue, OpenError> {
        let lost = Lost::new(&self.metrics, cluster, WEBHOOK);
        webhook::open(settings, (self.budget.account(), lost), reloader, &self.tasks).map_err(OpenError::Webhook)
    }
}

/// Checks the files that the settings name, without opening a log.
pub fn check(settings: &Audit, reloader: &Reloader) -> Result<(), OpenError> {
    open_policy(settings, reloader)?;
    let Some(webhook) = &settings.webhook else { return Ok(()) };
    let opened = kubeconfig::watch(webhook.kubeconfig.to_path_buf(), reloader);
    opened.and_then(|client_config| client_config.borrow().open(reloader)).map_err(OpenError::Webhook)?;
    Ok(())
}

fn open_policy(settings: &Audit, reloader: &Reloader) -> Result<Watched<Policy>, OpenError> {
    let Some(path) = &settings.policy_file else { return Ok(Watched::fixed(Policy::metadata())) };
    let origin = path.to_path_buf();
    let parse = move |[text]: [&[u8]; 1]| Policy::parse(text, &origin);
    reloader.watch([path.to_path_buf()], parse).map_err(OpenError::Policy)
}

#[cfg(test)]
mod tests;

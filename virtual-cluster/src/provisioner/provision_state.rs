//! How far each virtual cluster is provisioned.

use std::collections::BTreeMap;
use std::sync::Arc;

use ops::log::chain;
use rewrite::ClusterName;
use tokio::sync::watch;
use tracing::{info, warn};

use super::reconcile_error::ReconcileError;

/// How far a virtual cluster is provisioned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProvisionState {
    /// It has not been checked yet.
    Pending,
    /// Its administrators can act: its namespaces exist, and the administrators' rights are in force in them.
    Provisioned,
    /// Provisioning failed, for this reason. The agent tries again.
    Failed(Arc<str>),
}

/// The states of all virtual clusters that the agent serves.
#[derive(Debug)]
pub(super) struct ProvisionStates(watch::Sender<BTreeMap<ClusterName, ProvisionState>>);

// === impl ProvisionStates ===

impl ProvisionStates {
    /// None of these clusters has been checked yet.
    pub(super) fn new(clusters: &[ClusterName]) -> Self {
        let states = clusters.iter().map(|cluster| (cluster.clone(), ProvisionState::Pending)).collect();
        Self(watch::Sender::new(states))
    }

    /// From now on, has the states of exactly these clusters. Those that it has already stay as they are.
    pub(super) fn serve(&self, clusters: &[ClusterName]) {
        self.0.send_modify(|states| {
            states.retain(|cluster, _| clusters.contains(cluster));
            for cluster in clusters {
                states.entry(cluster.clone()).or_insert(ProvisionState::Pending);
            }
        });
    }

    pub(super) fn get(&self, cluster: &ClusterName) -> Option<ProvisionState> {
        self.0.borrow().get(cluster).cloned()
    }

    /// Records that a cluster is provisioned, or why it is not, unless the agent no longer serves it.
    pub(super) fn record(&self, cluster: &ClusterName, error: Option<&ReconcileError>) {
        let now = match error {
            None => ProvisionState::Provisioned,
            Some(error) => ProvisionState::Failed(chain(error).to_string().into()),
        };
        self.0.send_if_modified(|states| {
            let Some(before) = states.get_mut(cluster).filter(|before| **before != now) else { return false };
            match &now {
                ProvisionState::Failed(reason) => {
                    warn!(%cluster, %reason, "the virtual cluster is not provisioned yet");
                }
                ProvisionState::Provisioned | ProvisionState::Pending => {
                    info!(%cluster, "the virtual cluster is provisioned");
                }
            }
            *before = now;
            true
        });
    }

    /// Waits until all states satisfy a condition.
    pub(super) async fn wait_for(&self, is_so: impl FnMut(&BTreeMap<ClusterName, ProvisionState>) -> bool) {
        let mut states = self.0.subscribe();
        states.wait_for(is_so).await.expect("the sender is borrowed from self");
    }
}

//! Processes one entry of the work queue.

use std::sync::Arc;

use host_client::api::HostApi;
use rewrite::{ClusterName, HostNamespace};
use tracing::warn;

use super::bindings::Bindings;
use super::departures::Departures;
use super::first_lists::FirstLists;
use super::flow_schema::FlowSchemas;
use super::leave::leave;
use super::mirrors::{Mirrors, Progress};
use super::pod_security::PodSecurity;
use super::provision::Provision;
use super::provision_state::ProvisionStates;
use super::reconcile_error::ReconcileError;
use super::roots::Roots;
use super::served::ServedClusters;
use super::work_queue::Work;
use crate::namespaces::Namespaces;

/// Reconciles what the entries of the queue name, and logs what fails.
pub(super) struct Reconciler<A> {
    pub(super) served: Arc<ServedClusters>,
    pub(super) departures: Arc<Departures>,
    pub(super) states: Arc<ProvisionStates>,
    pub(super) namespaces: Arc<Namespaces>,
    pub(super) provision: Provision<A>,
    pub(super) flow_schemas: FlowSchemas,
    pub(super) first_lists: Arc<FirstLists>,
    pub(super) pod_security: Arc<PodSecurity<A>>,
    pub(super) roots: Roots<A>,
    pub(super) mirrors: Arc<Mirrors<A>>,
    pub(super) bindings: Bindings<A>,
}

// === impl Reconciler ===

impl<A: HostApi> Reconciler<A> {
    /// Lists what no watch delivers.
    pub(super) async fn list(&self) {
        self.first_lists.read(self.bindings.api(), &self.served.all()).await;
        self.flow_schemas.list(self.bindings.api()).await;
    }

    pub(super) async fn work(&self, work: Work) -> Result<Progress, ReconcileError> {
        match &work {
            Work::Provision(cluster) => self.provision(cluster).await,
            Work::Flow(cluster) => self.flow(cluster).await,
            Work::Root(cluster) => self.root(cluster).await,
            Work::Namespace(host) => self.namespace(host).await,
            Work::Leave(cluster) => self.leave(cluster).await,
        }
    }

    async fn provision(&self, cluster: &ClusterName) -> Result<Progress, ReconcileError> {
        if !self.served.contains(cluster) {
            return Ok(Progress::Done);
        }
        let provisioned = self.provision.reconcile(cluster).await;
        self.states.record(cluster, provisioned.as_ref().err());
        provisioned.map(|()| Progress::Done)
    }

    async fn flow(&self, cluster: &ClusterName) -> Result<Progress, ReconcileError> {
        // A new root namespace is an event.
        let Some(root) = self.namespaces.root(cluster).filter(|_| self.served.contains(cluster)) else {
            return Ok(Progress::Done);
        };
        let ensured = self.flow_schemas.ensure(self.bindings.api(), cluster, &root).await;
        if let Err(error) = &ensured {
            let error: &dyn std::error::Error = error;
            warn!(error, %cluster, "cannot create the FlowSchema of a virtual cluster; trying again");
        }
        ensured
    }

    async fn root(&self, cluster: &ClusterName) -> Result<Progress, ReconcileError> {
        if !self.served.contains(cluster) {
            return Ok(Progress::Done);
        }
        let listed = self.roots.reconcile(cluster).await;
        if let Err(error) = &listed {
            let error: &dyn std::error::Error = error;
            warn!(error, %cluster, "cannot list the bindings of a root namespace yet");
        }
        listed.map(|()| Progress::Done)
    }

    async fn namespace(&self, host: &HostNamespace) -> Result<Progress, ReconcileError> {
        if let Err(failure) = self.pod_security.reconcile(host).await {
            let error: &dyn std::error::Error = &failure;
            warn!(error, namespace = %host, "cannot set the Pod Security labels of a namespace yet");
            return Err(failure);
        }
        let mirrored = self.mirrors.reconcile(host).await;
        if let Err(error) = &mirrored {
            let error: &dyn std::error::Error = error;
            warn!(error, namespace = %host, "cannot reconcile the bindings of a namespace yet");
        }
        mirrored
    }

    async fn leave(&self, cluster: &ClusterName) -> Result<Progress, ReconcileError> {
        let left = leave(&self.bindings, &self.served, cluster).await;
        if let Err(error) = &left {
            let error: &dyn std::error::Error = error;
            warn!(error, %cluster, "cannot remove the finalizers of a removed virtual cluster yet");
        }
        left.map(|()| {
            self.departures.end(cluster);
            Progress::Done
        })
    }
}

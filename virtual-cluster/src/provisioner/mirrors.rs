//! Reconciles the mirrors of one namespace with the catalog.

mod active;
mod confirmed;
mod ending;
mod remaining;
mod turn;

use std::sync::Arc;

use host_client::api::HostApi;
use rewrite::HostNamespace;

use super::bindings::Bindings;
use super::catalog::SharedCatalog;
use super::namespace_annotations::NamespaceAnnotations;
use super::reconcile_error::ReconcileError;
use crate::namespaces::{Member, Namespaces, Phase};
use active::ActiveNamespace;
use ending::EndingNamespace;
pub(super) use turn::Progress;

/// The mirrors in all namespaces.
pub(super) struct Mirrors<A> {
    namespaces: Arc<Namespaces>,
    annotations: Arc<NamespaceAnnotations<A>>,
    catalog: SharedCatalog,
    bindings: Bindings<A>,
}

// === impl Mirrors ===

impl<A: HostApi> Mirrors<A> {
    pub(super) fn new(
        namespaces: Arc<Namespaces>,
        annotations: Arc<NamespaceAnnotations<A>>,
        catalog: SharedCatalog,
        bindings: Bindings<A>,
    ) -> Self {
        Self { namespaces, annotations, catalog, bindings }
    }

    /// Reconciles one namespace. The annotations come first, because the admission policies need them for every write.
    pub(super) async fn reconcile(&self, host: &HostNamespace) -> Result<Progress, ReconcileError> {
        let Some(member) = self.namespaces.member(host) else { return Ok(Progress::Done) };
        self.annotations.reconcile(&member).await?;
        let (wanted, is_complete) = {
            let catalog = self.catalog.lock();
            (catalog.mirrors(&member.cluster), catalog.is_complete(&member.cluster))
        };
        // Once the catalog is complete, all namespaces are reconciled again.
        if !is_complete {
            return Ok(Progress::Done);
        }
        let (bindings, cluster) = (&self.bindings, &member.cluster);
        match member.phase {
            Phase::Active => ActiveNamespace { bindings, cluster, host }.reconcile(&wanted).await,
            Phase::Terminating => EndingNamespace { bindings, cluster, host }.reconcile(&wanted).await,
        }
    }

    /// Reconciles the mirror of one binding in one namespace with the catalog, as it is when this future is first
    /// polled. `is_gone`: the binding was just read as not found, even if the catalog has it again: the watch may
    /// deliver an older version of it later.
    pub(super) async fn reconcile_one(
        &self,
        member: &Member,
        binding: &str,
        is_gone: bool,
    ) -> Result<(), ReconcileError> {
        let Member { cluster, host, phase, .. } = member;
        let wanted = if is_gone { None } else { self.catalog.lock().mirror(cluster, binding) };
        let name = format!("{}{binding}", super::names::MIRROR_PREFIX);
        let bindings = &self.bindings;
        match (phase, wanted) {
            (Phase::Active, Some(wanted)) => bindings.ensure(host, &wanted).await,
            (Phase::Active, None) => ActiveNamespace { bindings, cluster, host }.remove(&name).await,
            (Phase::Terminating, wanted) => {
                EndingNamespace { bindings, cluster, host }.revise(&name, wanted.as_deref()).await
            }
        }
    }
}

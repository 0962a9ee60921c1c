//! The mirrors of a namespace that is not being deleted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use host_client::api::{HostApi, Selection};
use rewrite::{ClusterName, HostNamespace};
use tracing::{debug, info};

use super::confirmed::confirmed;
use super::turn::{Progress, Turn};
use crate::provisioner::binding::{Repair, Wanted, released, undisguised};
use crate::provisioner::bindings::Bindings;
use crate::provisioner::found::Found;
use crate::provisioner::names::MIRROR_LABEL;
use crate::provisioner::paths;
use crate::provisioner::reconcile_error::ReconcileError;

/// A namespace in which mirrors can be created.
pub(super) struct ActiveNamespace<'a, A> {
    pub(super) bindings: &'a Bindings<A>,
    pub(super) cluster: &'a ClusterName,
    pub(super) host: &'a HostNamespace,
}

// === impl ActiveNamespace ===

impl<A: HostApi> ActiveNamespace<'_, A> {
    pub(super) async fn reconcile(&self, wanted: &[Arc<Wanted>]) -> Result<Progress, ReconcileError> {
        let mut turn = Turn::default();
        let (path, selection) = (paths::bindings(self.host), Selection::labelled(MIRROR_LABEL));
        let mut missing: BTreeMap<&str, &Wanted> =
            wanted.iter().map(|wanted| (wanted.name.as_str(), wanted.as_ref())).collect();
        let is_wanted: BTreeSet<&str> = missing.keys().copied().collect();
        let mut pages = self.bindings.api().pages(&path, &selection);
        while let Some(page) = pages.next::<Found>().await? {
            for found in page {
                let name = found.metadata.name.as_str();
                if missing.get(name).is_some_and(|wanted| wanted.repair(&found) == Repair::Nothing) {
                    missing.remove(name);
                } else if !is_wanted.contains(name) {
                    self.unwanted(&found).await?;
                    if turn.is_over() {
                        return Ok(Progress::More);
                    }
                }
            }
        }
        // The administrators' binding comes last. If one cannot be written, the others still are.
        let mut result = Ok(Progress::Done);
        for wanted in wanted.iter().filter(|wanted| missing.contains_key(wanted.name.as_str())) {
            let done = match self.confirmed(&wanted.name).await {
                Ok(Some(wanted)) => self.bindings.ensure(self.host, &wanted).await,
                Ok(None) => Ok(()),
                Err(error) => Err(error),
            };
            result = result.and_then(|progress| done.map(|()| progress));
            if result.is_ok() && turn.is_over() {
                return Ok(Progress::More);
            }
        }
        result
    }

    /// Handles a binding with the label of mirrors that the catalog does not have.
    async fn unwanted(&self, found: &Found) -> Result<(), ReconcileError> {
        let (host, name) = (self.host, &found.metadata.name);
        if let Some(shown) = undisguised(found) {
            info!(namespace = %host, binding = name, "removing the label of mirrors from a binding that is not a mirror");
            return self.bindings.patch(host, name, shown).await.map(drop);
        }
        if let Some(wanted) = self.confirmed(name).await? {
            return self.bindings.ensure(host, &wanted).await;
        }
        if found.is_deleted() && found.subjects.count() == 0 && released(found).is_none() {
            // It grants nothing, and something else keeps it.
            return Ok(());
        }
        debug!(namespace = %host, binding = name, "deleting the mirror of a binding that does not exist");
        self.bindings.remove(host, found).await
    }

    /// Deletes the mirror of a deleted binding, unless the binding exists again.
    pub(super) async fn remove(&self, mirror: &str) -> Result<(), ReconcileError> {
        match self.confirmed(mirror).await? {
            Some(wanted) => self.bindings.ensure(self.host, &wanted).await,
            None => self.bindings.remove_unread(self.host, mirror).await,
        }
    }

    async fn confirmed(&self, mirror: &str) -> Result<Option<Wanted>, ReconcileError> {
        confirmed(self.bindings.api(), self.cluster, mirror).await
    }
}

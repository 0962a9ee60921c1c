//! The mirrors of a namespace that is being deleted.

use std::collections::BTreeMap;
use std::sync::Arc;

use host_client::api::{HostApi, Selection};
use rewrite::{ClusterName, HostNamespace};

use super::confirmed::confirmed;
use super::remaining::only_bindings_remain;
use super::turn::{Progress, Turn};
use crate::provisioner::binding::{Wanted, is_deleted, is_mirror, revoked};
use crate::provisioner::bindings::Bindings;
use crate::provisioner::found::Found;
use crate::provisioner::names::MIRROR_LABEL;
use crate::provisioner::paths;
use crate::provisioner::reconcile_error::ReconcileError;

/// A namespace in which nothing can be created.
pub(super) struct EndingNamespace<'a, A> {
    pub(super) bindings: &'a Bindings<A>,
    pub(super) cluster: &'a ClusterName,
    pub(super) host: &'a HostNamespace,
}

// === impl EndingNamespace ===

impl<A: HostApi> EndingNamespace<'_, A> {
    /// Repairs changed mirrors, removes the rights of mirrors whose binding is deleted, and releases all mirrors once
    /// nothing else is left.
    pub(super) async fn reconcile(&self, wanted: &[Arc<Wanted>]) -> Result<Progress, ReconcileError> {
        let mut turn = Turn::default();
        let api = self.bindings.api();
        let namespace = match api.get(&paths::namespace(self.host)).await {
            Ok(namespace) => namespace,
            Err(error) if error.is_not_found() => return Ok(Progress::Done),
            Err(error) => return Err(error.into()),
        };
        if !is_deleted(&namespace) {
            return Ok(Progress::Done);
        }
        let bindings = paths::bindings(self.host);
        if only_bindings_remain(&namespace) && !api.any(&bindings, "", |found: Found| !is_mirror(&found)).await? {
            return self.bindings.release_mirrors(self.host).await.map(|_| Progress::Done);
        }
        let mut unseen: BTreeMap<&str, &Wanted> =
            wanted.iter().map(|wanted| (wanted.name.as_str(), wanted.as_ref())).collect();
        let selection = Selection::labelled(MIRROR_LABEL);
        let mut pages = api.pages(&bindings, &selection);
        while let Some(page) = pages.next::<Found>().await? {
            for found in page.iter().filter(|found| is_mirror(found)) {
                let heard = unseen.remove(found.metadata.name.as_str());
                if self.repair(heard, found).await? && turn.is_over() {
                    return Ok(Progress::More);
                }
            }
        }
        // These do not exist, or their label was removed.
        for heard in unseen.into_values() {
            self.revise(&heard.name, Some(heard)).await?;
        }
        Ok(Progress::Done)
    }

    /// Reads and repairs one mirror. `heard` is what the catalog wants.
    pub(super) async fn revise(&self, name: &str, heard: Option<&Wanted>) -> Result<(), ReconcileError> {
        let Some(path) = paths::binding(self.host, name) else { return Ok(()) };
        match self.bindings.api().read(&path).await {
            Ok(found) => self.repair(heard, &found).await.map(drop),
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Repairs a mirror that cannot be created again. If its binding now has another role, or is deleted, the mirror
    /// must not grant anything. Returns whether it needed a repair.
    async fn repair(&self, heard: Option<&Wanted>, found: &Found) -> Result<bool, ReconcileError> {
        if heard.is_some_and(|heard| heard.is_of_same_role(found) && heard.patch(found).is_none()) {
            return Ok(false);
        }
        let name = &found.metadata.name;
        let patch = match confirmed(self.bindings.api(), self.cluster, name).await? {
            Some(wanted) if wanted.is_of_same_role(found) => wanted.patch(found),
            _ if found.subjects.count() == 0 => None,
            _ => Some(revoked(found)),
        };
        match patch {
            Some(patch) => self.bindings.patch(self.host, name, patch).await.map(|_| true),
            None => Ok(false),
        }
    }
}

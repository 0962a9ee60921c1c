//! The bindings in root namespaces, and their label.
//!
//! One watch of the host serves all virtual clusters. It selects bindings by the label [`CLUSTER_LABEL`], so that the
//! bindings of other namespaces cost nothing. Bindings that clients write through the endpoint have it from the
//! beginning (`rewrite`). The agent adds it to all others that it reads: to those of an earlier version, and to those that
//! something else has written into the root namespace.
//!
//! A mirror is only written if its binding has the label, so that the watch shows the end of the binding. The watch
//! also shows a deletion if only the label is removed. So after each deletion, the root namespace is listed.

use std::sync::Arc;

use host_client::api::{HostApi, Selection};
use rewrite::{ClusterName, HostNamespace};
use tracing::info;

use super::binding::{Binding, labelled};
use super::catalog::SharedCatalog;
use super::dirty::DirtyClusters;
use super::first_lists::FirstLists;
use super::found::Found;
use super::names::CLUSTER_ADMIN;
use super::paths;
use super::reconcile_error::ReconcileError;

#[cfg(doc)]
use rewrite::name::CLUSTER_LABEL;

/// The maximum number of attempts if others change a binding at the same time.
const MAX_ATTEMPTS: u32 = 5;

/// The root namespaces of all virtual clusters.
pub(super) struct Roots<A> {
    pub(super) api: A,
    pub(super) catalog: SharedCatalog,
    pub(super) dirty: Arc<DirtyClusters>,
    pub(super) first_lists: Arc<FirstLists>,
}

// === impl Roots ===

impl<A: HostApi> Roots<A> {
    /// Lists the bindings of a root namespace, and adds missing labels. After the first list, the catalog is complete.
    pub(super) async fn reconcile(&self, cluster: &ClusterName) -> Result<(), ReconcileError> {
        let known = self.catalog.lock().begin_list(cluster);
        let is_first = !self.catalog.lock().is_complete(cluster);
        let see = |found: &Found| {
            if is_first {
                self.first_lists.see(cluster, found);
            }
        };
        let (bindings, error) = match listed(&self.api, cluster, see).await {
            Ok(bindings) => (Some(bindings), None),
            Err(error) => (None, Some(error)),
        };
        if self.catalog.lock().end_list(cluster, bindings, &known) {
            self.dirty.mark_mirrors(cluster);
        }
        error.map_or(Ok(()), Err)
    }
}

/// All ClusterRoleBindings of a virtual cluster. They have the label.
pub(super) async fn bindings(api: &impl HostApi, cluster: &ClusterName) -> Result<Vec<Binding>, ReconcileError> {
    listed(api, cluster, |_| {}).await
}

async fn listed(
    api: &impl HostApi,
    cluster: &ClusterName,
    see: impl Fn(&Found),
) -> Result<Vec<Binding>, ReconcileError> {
    let (path, everything) = (paths::bindings(&HostNamespace::root(cluster)), Selection::default());
    let mut pages = api.pages(&path, &everything);
    let mut bindings = Vec::new();
    while let Some(page) = pages.next::<Found>().await? {
        for found in page {
            see(&found);
            bindings.extend(labelled_binding(api, cluster, found).await?);
        }
    }
    Ok(bindings)
}

/// The ClusterRoleBinding that was read from a root namespace, with the label; `None` if it is none of the cluster's, or
/// does not exist any more.
pub(super) async fn labelled_binding(
    api: &impl HostApi,
    cluster: &ClusterName,
    mut found: Found,
) -> Result<Option<Binding>, ReconcileError> {
    let root = HostNamespace::root(cluster);
    let Some(path) = paths::binding(&root, &found.metadata.name) else { return Ok(None) };
    for _ in 0..MAX_ATTEMPTS {
        let Some(binding) = Binding::of(&found) else { return Ok(None) };
        // That of the administrators is maintained elsewhere.
        let Some(patch) = labelled(&found, cluster).filter(|_| binding.name != CLUSTER_ADMIN) else {
            return Ok(Some(binding));
        };
        match api.patch_text(&path, patch).await {
            Ok(()) => {
                info!(%cluster, namespace = %root, binding = binding.name, "labelled a binding");
                return Ok(Some(binding));
            }
            Err(error) if error.is_conflict() || error.is_not_found() => {}
            Err(error) => return Err(error.into()),
        }
        found = match api.read(&path).await {
            Ok(found) => found,
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(error.into()),
        };
    }
    Err(ReconcileError::Contended(path))
}

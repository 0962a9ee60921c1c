//! Reconciles the bindings of one namespace.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use rewrite::{ClusterName, HostNamespace};
use serde_json::{Value, json};
use tokio::time::Instant;
use tracing::{debug, info};

use super::binding::{Binding, CLUSTER_ADMIN, Repair, Wanted, is_deleted, is_mirror, released, revoked, undisguised};
use super::ending::only_bindings_remain;
use super::found::Found;
use super::reconcile_error::{is_already_there, is_namespace_ending};
use super::{MIRROR_LABEL, MIRROR_PREFIX, Provisioner, ReconcileError, paths};
use crate::namespaces::Phase;
use host_client::api::HostApi;
use host_client::api::{ApiError, Selection};

/// After this time, the work on a namespace pauses for others.
const AT_A_TIME: Duration = Duration::from_secs(2);

/// An explicit policy makes the host remove the finalizer of foreground deletion, with which a client could keep the
/// object for ever (`deletionFinalizersForGarbageCollection` in apiserver's `registry/generic/registry/store.go`).
const BACKGROUND: &str = "Background";

/// How far the work on a namespace has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// All its bindings are as wanted.
    Done,
    /// Its time is over, and there is more to do.
    More,
}

/// The maximum number of attempts if others change the object at the same time.
const ATTEMPTS: u32 = 5;

// === impl Provisioner ===

impl<A: HostApi> Provisioner<A> {
    /// Reconciles one namespace.
    pub(super) async fn mirror(&self, host: &HostNamespace) -> Result<Progress, ReconcileError> {
        let Some(member) = self.shared.namespaces.member(host) else { return Ok(Progress::Done) };
        self.annotate_member(&member).await?;
        let (wanted, is_complete) = {
            let catalog = self.catalog();
            (catalog.mirrors(&member.cluster), catalog.is_complete(&member.cluster))
        };
        // Once the catalog is complete, all namespaces are reconciled again.
        if !is_complete {
            return Ok(Progress::Done);
        }
        match member.phase {
            Phase::Active => self.mirror_active(&member.cluster, host, &wanted).await,
            Phase::Terminating => self.mirror_ending(&member.cluster, host, &wanted).await,
        }
    }

    async fn mirror_active(
        &self,
        cluster: &ClusterName,
        host: &HostNamespace,
        wanted: &[Arc<Wanted>],
    ) -> Result<Progress, ReconcileError> {
        let mut begun = None;
        let (path, selection) = (paths::bindings(host), Selection::labelled(MIRROR_LABEL));
        let mut missing: BTreeMap<&str, &Wanted> =
            wanted.iter().map(|wanted| (wanted.name.as_str(), wanted.as_ref())).collect();
        let is_wanted: BTreeSet<&str> = missing.keys().copied().collect();
        let mut pages = self.shared.api.pages(&path, &selection);
        while let Some(page) = pages.next::<Found>().await? {
            for found in page {
                let name = found.metadata.name.as_str();
                if missing.get(name).is_some_and(|wanted| wanted.repair(&found) == Repair::Nothing) {
                    missing.remove(name);
                } else if !is_wanted.contains(name) {
                    self.unwanted(cluster, host, &found).await?;
                    if is_time_up(&mut begun) {
                        return Ok(Progress::More);
                    }
                }
            }
        }
        // The administrators' binding comes last. If one cannot be written, the others still are.
        let mut result = Ok(Progress::Done);
        for wanted in wanted.iter().filter(|wanted| missing.contains_key(wanted.name.as_str())) {
            let done = match self.confirmed(cluster, &wanted.name).await {
                Ok(Some(wanted)) => self.ensure_binding(host, &wanted).await,
                Ok(None) => Ok(()),
                Err(error) => Err(error),
            };
            result = result.and_then(|progress| done.map(|()| progress));
            if result.is_ok() && is_time_up(&mut begun) {
                return Ok(Progress::More);
            }
        }
        result
    }

    /// Handles a binding with the label of mirrors that the catalog does not have.
    async fn unwanted(&self, cluster: &ClusterName, host: &HostNamespace, found: &Found) -> Result<(), ReconcileError> {
        let name = &found.metadata.name;
        if let Some(shown) = undisguised(found) {
            info!(namespace = %host, binding = name, "removing the label of mirrors from a binding that is no mirror");
            return self.patch(host, name, shown).await.map(drop);
        }
        if let Some(wanted) = self.confirmed(cluster, name).await? {
            return self.ensure_binding(host, &wanted).await;
        }
        if found.is_deleted() && found.subjects.count() == 0 && released(found).is_none() {
            // It grants nothing, and something else keeps it.
            return Ok(());
        }
        debug!(namespace = %host, binding = name, "deleting the mirror of a binding that does not exist");
        self.remove(host, found).await
    }

    /// The wanted mirror of this name, by a new read of the root namespace; `None` if there is to be none. The catalog
    /// may be out of date, and another agent may already have applied a later change. Undoing that could restore a
    /// revoked right.
    async fn confirmed(&self, cluster: &ClusterName, mirror: &str) -> Result<Option<Wanted>, ReconcileError> {
        let Some(name) = mirror.strip_prefix(MIRROR_PREFIX) else { return Ok(None) };
        if name == CLUSTER_ADMIN {
            return Ok(Some(Binding::cluster_admin(cluster).mirror()));
        }
        let Some(path) = paths::binding(&HostNamespace::root(cluster), name) else { return Ok(None) };
        match self.shared.api.read(&path).await {
            Ok(binding) => Ok(Binding::of(&binding).map(|binding| binding.mirror())),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Reconciles a namespace that is being deleted, in which nothing can be created. Repairs changed mirrors, removes
    /// the rights of mirrors whose binding is deleted, and releases all mirrors once nothing else is left.
    async fn mirror_ending(
        &self,
        cluster: &ClusterName,
        host: &HostNamespace,
        wanted: &[Arc<Wanted>],
    ) -> Result<Progress, ReconcileError> {
        let mut begun = None;
        let api = &self.shared.api;
        let namespace = match api.get(&paths::namespace(host)).await {
            Ok(namespace) => namespace,
            Err(error) if error.is_not_found() => return Ok(Progress::Done),
            Err(error) => return Err(error.into()),
        };
        if !is_deleted(&namespace) {
            return Ok(Progress::Done);
        }
        let bindings = paths::bindings(host);
        if only_bindings_remain(&namespace) && !api.any(&bindings, "", |found: Found| !is_mirror(&found)).await? {
            return self.let_go(host).await.map(|_| Progress::Done);
        }
        let mut unseen: BTreeMap<&str, &Wanted> =
            wanted.iter().map(|wanted| (wanted.name.as_str(), wanted.as_ref())).collect();
        let selection = Selection::labelled(MIRROR_LABEL);
        let mut pages = api.pages(&bindings, &selection);
        while let Some(page) = pages.next::<Found>().await? {
            for found in page.iter().filter(|found| is_mirror(found)) {
                let heard = unseen.remove(found.metadata.name.as_str());
                if self.repair_ending(cluster, host, heard, found).await? && is_time_up(&mut begun) {
                    return Ok(Progress::More);
                }
            }
        }
        // These do not exist, or their label was removed.
        for heard in unseen.into_values() {
            self.revise_ending(cluster, host, &heard.name, Some(heard)).await?;
        }
        Ok(Progress::Done)
    }

    /// Reads and repairs one mirror in a namespace that is being deleted. `heard` is what the catalog wants.
    pub(super) async fn revise_ending(
        &self,
        cluster: &ClusterName,
        host: &HostNamespace,
        name: &str,
        heard: Option<&Wanted>,
    ) -> Result<(), ReconcileError> {
        let Some(path) = paths::binding(host, name) else { return Ok(()) };
        match self.shared.api.read(&path).await {
            Ok(found) => self.repair_ending(cluster, host, heard, &found).await.map(drop),
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Repairs a mirror that cannot be created again. If its binding now has another role, or is deleted, the mirror
    /// must not grant anything. Returns whether it needed a repair.
    async fn repair_ending(
        &self,
        cluster: &ClusterName,
        host: &HostNamespace,
        heard: Option<&Wanted>,
        found: &Found,
    ) -> Result<bool, ReconcileError> {
        if heard.is_some_and(|heard| heard.is_of_same_role(found) && heard.patch(found).is_none()) {
            return Ok(false);
        }
        let name = &found.metadata.name;
        let patch = match self.confirmed(cluster, name).await? {
            Some(wanted) if wanted.is_of_same_role(found) => wanted.patch(found),
            _ if found.subjects.count() == 0 => None,
            _ => Some(revoked(found)),
        };
        match patch {
            Some(patch) => self.patch(host, name, patch).await.map(|_| true),
            None => Ok(false),
        }
    }

    /// Ensures that a binding exists exactly as wanted in a new namespace, where it probably does not exist yet.
    pub(super) async fn create_binding(&self, host: &HostNamespace, wanted: &Wanted) -> Result<(), ReconcileError> {
        if self.created(host, wanted).await? { Ok(()) } else { self.ensure_binding(host, wanted).await }
    }

    /// Creates a binding, unless the namespace is being deleted. Returns `false` if one of this name exists.
    async fn created(&self, host: &HostNamespace, wanted: &Wanted) -> Result<bool, ReconcileError> {
        match self.shared.api.create_text(&paths::bindings(host), wanted.object(host)).await {
            Ok(()) => {
                debug!(namespace = %host, binding = wanted.name, "binding created");
                Ok(true)
            }
            Err(error) if is_already_there(&error) => Ok(false),
            Err(error) if is_namespace_ending(&error) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    /// Ensures that a binding exists exactly as wanted, except in a namespace that is being deleted. Creates it only if
    /// a read finds none: a client's ResourceQuota for RoleBindings refuses every creation, before the host checks
    /// whether the object exists, and must not keep a revoked right in force.
    pub(super) async fn ensure_binding(&self, host: &HostNamespace, wanted: &Wanted) -> Result<(), ReconcileError> {
        let api = &self.shared.api;
        let Some(path) = paths::binding(host, &wanted.name) else { return Ok(()) };
        for _ in 0..ATTEMPTS {
            let found: Found = match api.read(&path).await {
                Ok(found) => found,
                Err(error) if error.is_not_found() => {
                    if self.created(host, wanted).await? {
                        return Ok(());
                    }
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            match wanted.repair(&found) {
                Repair::Nothing => return Ok(()),
                Repair::Patch(patch) => {
                    if self.patch(host, &wanted.name, patch).await? {
                        info!(namespace = %host, binding = wanted.name, "binding restored");
                        return Ok(());
                    }
                }
                Repair::Anew => {
                    // The index may not know yet that the namespace is being deleted. There, mirrors must stay.
                    match api.get(&paths::namespace(host)).await {
                        Ok(namespace) if is_deleted(&namespace) => return Ok(()),
                        Ok(_) => {}
                        Err(error) if error.is_not_found() => return Ok(()),
                        Err(error) => return Err(error.into()),
                    }
                    info!(namespace = %host, binding = wanted.name, "deleting the binding to create it again");
                    self.remove(host, &found).await?;
                }
            }
        }
        Err(ReconcileError::Contended(path))
    }

    /// Deletes one of our bindings, and then removes its subjects and its finalizer.
    async fn remove(&self, host: &HostNamespace, found: &Found) -> Result<(), ReconcileError> {
        let Some(path) = paths::binding(host, &found.metadata.name) else { return Ok(()) };
        if found.is_deleted() {
            return self.patch(host, &found.metadata.name, revoked(found)).await.map(drop);
        }
        let options = json!({"preconditions": {"uid": found.metadata.uid}, "propagationPolicy": BACKGROUND});
        self.end(host, &path, &options).await
    }

    /// Deletes one of our bindings, and then removes its subjects and its finalizer.
    async fn end(&self, host: &HostNamespace, path: &str, options: &Value) -> Result<(), ReconcileError> {
        match self.shared.api.delete::<Found>(path, options).await {
            Ok(deleted) if deleted.is_deleted() => {
                self.patch(host, &deleted.metadata.name, revoked(&deleted)).await.map(drop)
            }
            Ok(_) => Ok(()),
            Err(error) if is_lost(&error) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Deletes the mirror of a deleted binding, unless the binding exists again.
    pub(super) async fn remove_mirror(
        &self,
        cluster: &ClusterName,
        host: &HostNamespace,
        mirror: &str,
    ) -> Result<(), ReconcileError> {
        match (self.confirmed(cluster, mirror).await?, paths::binding(host, mirror)) {
            (Some(wanted), _) => self.ensure_binding(host, &wanted).await,
            // The request has no uid, which would need another read in each namespace. If another client creates the
            // mirror at the same time, the event of its deletion triggers a repair.
            (None, Some(path)) => self.end(host, &path, &json!({"propagationPolicy": BACKGROUND})).await,
            (None, None) => Ok(()),
        }
    }

    /// Releases all mirrors of a namespace. Returns `true` if there was nothing to do.
    pub(super) async fn let_go(&self, host: &HostNamespace) -> Result<bool, ReconcileError> {
        let (path, selection) = (paths::bindings(host), Selection::labelled(MIRROR_LABEL).metadata());
        let mut pages = self.shared.api.pages(&path, &selection);
        let mut is_done = true;
        while let Some(page) = pages.next::<Found>().await? {
            for mirror in page.iter().filter(|found| is_mirror(found)) {
                is_done &= !self.release(host, mirror).await?;
            }
        }
        Ok(is_done)
    }

    /// Removes our finalizer from a mirror. Returns whether it had one. If the patch fails because of a concurrent
    /// change, the event of that change leads back here.
    async fn release(&self, host: &HostNamespace, found: &Found) -> Result<bool, ReconcileError> {
        let Some(released) = released(found) else { return Ok(false) };
        if self.patch(host, &found.metadata.name, released).await? {
            debug!(namespace = %host, binding = found.metadata.name, "mirror released");
        }
        Ok(true)
    }

    /// Patches a binding. Returns `false` after a concurrent change or deletion.
    async fn patch(&self, host: &HostNamespace, name: &str, patch: String) -> Result<bool, ReconcileError> {
        let Some(path) = paths::binding(host, name) else { return Ok(false) };
        match self.shared.api.patch_text(&path, patch).await {
            Ok(()) => Ok(true),
            Err(error) if is_lost(&error) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// Whether the object was changed, deleted or replaced at the same time.
fn is_lost(error: &ApiError) -> bool {
    error.is_conflict() || error.is_not_found()
}

/// Whether the work that began with the first call has taken its time.
fn is_time_up(begun: &mut Option<Instant>) -> bool {
    begun.get_or_insert_with(Instant::now).elapsed() > AT_A_TIME
}

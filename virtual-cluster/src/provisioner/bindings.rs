//! Writes RoleBindings to the host, so that they exist exactly as wanted.

use host_client::api::{ApiError, HostApi, Selection};
use rewrite::HostNamespace;
use serde_json::{Value, json};
use tracing::{debug, info};

use super::binding::{Repair, Wanted, is_deleted, is_mirror, released, revoked};
use super::found::Found;
use super::names::MIRROR_LABEL;
use super::paths;
use super::reconcile_error::{ReconcileError, is_already_there, is_namespace_ending};

/// An explicit policy makes the host remove the finalizer of foreground deletion, with which a client could keep the
/// object forever (`deletionFinalizersForGarbageCollection` in apiserver's `registry/generic/registry/store.go`).
const BACKGROUND: &str = "Background";

/// The maximum number of attempts if others change the object at the same time.
const MAX_ATTEMPTS: u32 = 5;

/// The RoleBindings of the host.
#[derive(Clone)]
pub(super) struct Bindings<A> {
    api: A,
}

// === impl Bindings ===

impl<A: HostApi> Bindings<A> {
    pub(super) fn new(api: A) -> Self {
        Self { api }
    }

    /// The host that they are on.
    pub(super) fn api(&self) -> &A {
        &self.api
    }

    /// Ensures that a binding exists exactly as wanted in a new namespace, where it probably does not exist yet.
    pub(super) async fn create(&self, host: &HostNamespace, wanted: &Wanted) -> Result<(), ReconcileError> {
        if self.created(host, wanted).await? { Ok(()) } else { self.ensure(host, wanted).await }
    }

    /// [`create`](Self::create) in a namespace that is new, and [`ensure`](Self::ensure) in another one.
    pub(super) async fn write(
        &self,
        host: &HostNamespace,
        wanted: &Wanted,
        is_new: bool,
    ) -> Result<(), ReconcileError> {
        if is_new { self.create(host, wanted).await } else { self.ensure(host, wanted).await }
    }

    /// Creates a binding, unless the namespace is being deleted. Returns `false` if one of this name exists.
    async fn created(&self, host: &HostNamespace, wanted: &Wanted) -> Result<bool, ReconcileError> {
        match self.api.create_text(&paths::bindings(host), wanted.object(host)).await {
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
    pub(super) async fn ensure(&self, host: &HostNamespace, wanted: &Wanted) -> Result<(), ReconcileError> {
        let Some(path) = paths::binding(host, &wanted.name) else { return Ok(()) };
        for _ in 0..MAX_ATTEMPTS {
            let found: Found = match self.api.read(&path).await {
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
                    match self.api.get(&paths::namespace(host)).await {
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
    pub(super) async fn remove(&self, host: &HostNamespace, found: &Found) -> Result<(), ReconcileError> {
        let Some(path) = paths::binding(host, &found.metadata.name) else { return Ok(()) };
        if found.is_deleted() {
            return self.patch(host, &found.metadata.name, revoked(found)).await.map(drop);
        }
        let options = json!({"preconditions": {"uid": found.metadata.uid}, "propagationPolicy": BACKGROUND});
        self.delete(host, &path, &options).await
    }

    /// Like [`remove`](Self::remove), whatever object has this name. The request has no uid, which would need another
    /// read. If another client creates the binding at the same time, the event of its deletion triggers a repair.
    pub(super) async fn remove_unread(&self, host: &HostNamespace, name: &str) -> Result<(), ReconcileError> {
        let Some(path) = paths::binding(host, name) else { return Ok(()) };
        self.delete(host, &path, &json!({"propagationPolicy": BACKGROUND})).await
    }

    async fn delete(&self, host: &HostNamespace, path: &str, options: &Value) -> Result<(), ReconcileError> {
        match self.api.delete::<Found>(path, options).await {
            Ok(deleted) if deleted.is_deleted() => {
                self.patch(host, &deleted.metadata.name, revoked(&deleted)).await.map(drop)
            }
            Ok(_) => Ok(()),
            Err(error) if is_lost(&error) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Releases all mirrors of a namespace. Returns `true` if there was nothing to do.
    pub(super) async fn release_mirrors(&self, host: &HostNamespace) -> Result<bool, ReconcileError> {
        let (path, selection) = (paths::bindings(host), Selection::labelled(MIRROR_LABEL).metadata());
        let mut pages = self.api.pages(&path, &selection);
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
    pub(super) async fn patch(&self, host: &HostNamespace, name: &str, patch: String) -> Result<bool, ReconcileError> {
        let Some(path) = paths::binding(host, name) else { return Ok(false) };
        match self.api.patch_text(&path, patch).await {
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

//! Makes the bindings of one namespace what they should be.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rewrite::{ClusterName, HostNamespace};
use serde_json::{Value, json};
use tracing::{debug, info};

use super::binding::{Binding, CLUSTER_ADMIN, Repair, Wanted, is_deleted, is_mirror, released, undisguised};
use super::ending::only_bindings_remain;
use super::found::Found;
use super::trouble::{is_already_there, is_namespace_ending};
use super::{MIRROR_LABEL, MIRROR_PREFIX, Root, Trouble, paths};
use crate::clusters::host_api::HostApi;
use crate::host::api::{ApiError, Selection};
use crate::namespaces::Phase;

/// The maximum number of attempts if somebody else changes the object meanwhile.
const ATTEMPTS: u32 = 5;

// === impl Root ===

impl<A: HostApi> Root<A> {
    /// Reconciles one namespace.
    pub(super) async fn mirror(&self, host: &HostNamespace) -> Result<(), Trouble> {
        let Some(member) = self.shared.namespaces.member(host) else { return Ok(()) };
        self.annotate_member(&member).await?;
        let (wanted, is_complete) = {
            let catalog = self.catalog();
            (catalog.mirrors(&member.cluster), catalog.is_complete(&member.cluster))
        };
        // When it is complete, all namespaces are looked at once more.
        if !is_complete {
            return Ok(());
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
    ) -> Result<(), Trouble> {
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
                }
            }
        }
        // The administrators' comes last.
        for wanted in wanted.iter().filter(|wanted| missing.contains_key(wanted.name.as_str())) {
            if let Some(wanted) = self.confirmed(cluster, &wanted.name).await? {
                self.ensure_binding(host, &wanted).await?;
            }
        }
        Ok(())
    }

    /// One that has the label of mirrors, and is none of those that we have heard of.
    async fn unwanted(&self, cluster: &ClusterName, host: &HostNamespace, found: &Found) -> Result<(), Trouble> {
        let name = &found.metadata.name;
        if let Some(shown) = undisguised(found) {
            info!(namespace = %host, binding = name, "a binding is no mirror, and is shown");
            return self.patch(host, name, shown).await.map(drop);
        }
        if let Some(wanted) = self.confirmed(cluster, name).await? {
            return self.ensure_binding(host, &wanted).await;
        }
        debug!(namespace = %host, binding = name, "mirror of a binding that is gone");
        self.remove(host, found).await
    }

    /// The mirror of this name as the root namespace says by now that it must be; nothing if there is to be none. What we
    /// have heard may be old, and another agent may have done already what it has heard since: to undo that would give back
    /// a right that was taken away.
    async fn confirmed(&self, cluster: &ClusterName, mirror: &str) -> Result<Option<Wanted>, Trouble> {
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

    /// Nothing can be created any more. What was changed is repaired, and all goes when it is the last to go.
    async fn mirror_ending(
        &self,
        cluster: &ClusterName,
        host: &HostNamespace,
        wanted: &[Arc<Wanted>],
    ) -> Result<(), Trouble> {
        let api = &self.shared.api;
        let namespace = match api.get(&paths::namespace(host)).await {
            Ok(namespace) => namespace,
            Err(error) if error.is_not_found() => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        if !is_deleted(&namespace) {
            return Ok(());
        }
        let bindings = paths::bindings(host);
        if only_bindings_remain(&namespace) && !api.any(&bindings, "", |found: Found| !is_mirror(&found)).await? {
            return self.let_go(host).await.map(drop);
        }
        for heard in wanted {
            let Some(path) = paths::binding(host, &heard.name) else { continue };
            let found: Found = match api.read(&path).await {
                Ok(found) => found,
                Err(error) if error.is_not_found() => continue,
                Err(error) => return Err(error.into()),
            };
            if heard.patch(&found).is_some()
                && let Some(wanted) = self.confirmed(cluster, &heard.name).await?
                && let Some(patch) = wanted.patch(&found)
            {
                self.patch(host, &heard.name, patch).await?;
            }
        }
        Ok(())
    }

    /// Makes one binding be there, exactly as wanted; does nothing in a namespace that is being deleted.
    pub(super) async fn ensure_binding(&self, host: &HostNamespace, wanted: &Wanted) -> Result<(), Trouble> {
        let api = &self.shared.api;
        let Some(path) = paths::binding(host, &wanted.name) else { return Ok(()) };
        for _ in 0..ATTEMPTS {
            match api.create_text(&paths::bindings(host), wanted.object(host)).await {
                Ok(()) => {
                    debug!(namespace = %host, binding = wanted.name, "binding created");
                    return Ok(());
                }
                Err(error) if is_already_there(&error) => {}
                Err(error) if is_namespace_ending(&error) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
            let found: Found = match api.read(&path).await {
                Ok(found) => found,
                Err(error) if error.is_not_found() => continue,
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
                    // We may not have heard yet that the namespace is being deleted, and there mirrors must stay.
                    match api.get(&paths::namespace(host)).await {
                        Ok(namespace) if is_deleted(&namespace) => return Ok(()),
                        Ok(_) => {}
                        Err(error) if error.is_not_found() => return Ok(()),
                        Err(error) => return Err(error.into()),
                    }
                    info!(namespace = %host, binding = wanted.name, "binding is made anew");
                    self.remove(host, &found).await?;
                }
            }
        }
        Err(Trouble::Contended(path))
    }

    /// Deletes a binding of ours, which means to let it go.
    async fn remove(&self, host: &HostNamespace, found: &Found) -> Result<(), Trouble> {
        let Some(path) = paths::binding(host, &found.metadata.name) else { return Ok(()) };
        if found.is_deleted() {
            return self.release(host, found).await.map(drop);
        }
        let options = json!({"preconditions": {"uid": found.metadata.uid}});
        self.end(host, &path, &options).await
    }

    /// Deletes the mirror of a binding that is gone, unless the binding is there again.
    pub(super) async fn remove_mirror(
        &self,
        cluster: &ClusterName,
        host: &HostNamespace,
        mirror: &str,
    ) -> Result<(), Trouble> {
        match (self.confirmed(cluster, mirror).await?, paths::binding(host, mirror)) {
            (Some(wanted), _) => self.ensure_binding(host, &wanted).await,
            (None, Some(path)) => self.end(host, &path, &json!({})).await,
            (None, None) => Ok(()),
        }
    }

    /// Deletes a binding of ours, and then takes its finalizer off.
    async fn end(&self, host: &HostNamespace, path: &str, options: &Value) -> Result<(), Trouble> {
        match self.shared.api.delete::<Found>(path, options).await {
            Ok(deleted) if deleted.is_deleted() => self.release(host, &deleted).await.map(drop),
            Ok(_) => Ok(()),
            Err(error) if is_lost(&error) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Releases all mirrors of a namespace. Returns whether there was nothing to be done.
    pub(super) async fn let_go(&self, host: &HostNamespace) -> Result<bool, Trouble> {
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

    /// Returns whether it was held by us. Whoever is faster has released it, or has changed it: its event brings us back
    /// here, unless it is gone.
    async fn release(&self, host: &HostNamespace, found: &Found) -> Result<bool, Trouble> {
        let Some(released) = released(found) else { return Ok(false) };
        if self.patch(host, &found.metadata.name, released).await? {
            debug!(namespace = %host, binding = found.metadata.name, "mirror released");
        }
        Ok(true)
    }

    /// Returns `false` if somebody else has changed or removed it meanwhile.
    async fn patch(&self, host: &HostNamespace, name: &str, patch: String) -> Result<bool, Trouble> {
        let Some(path) = paths::binding(host, name) else { return Ok(false) };
        match self.shared.api.patch_text(&path, patch).await {
            Ok(()) => Ok(true),
            Err(error) if is_lost(&error) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// Whether a race was lost: the object is another one by now, or none.
fn is_lost(error: &ApiError) -> bool {
    error.is_conflict() || error.is_not_found()
}

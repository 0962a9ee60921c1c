//! Makes the bindings of one namespace what they should be.

use std::sync::Arc;

use rewrite::{ClusterName, HostNamespace};
use serde_json::{Value, json};
use tracing::{debug, info};

use super::binding::{Binding, CLUSTER_ADMIN, Repair, Wanted, is_deleted, is_mirror, released, undisguised};
use super::ending::only_bindings_remain;
use super::trouble::{is_already_there, is_namespace_ending};
use super::{MIRROR_LABEL, MIRROR_PREFIX, Root, Trouble, paths};
use crate::clusters::host_api::HostApi;
use crate::host::api::ApiError;
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
        let found = self.shared.api.list(&paths::bindings(host), MIRROR_LABEL).await?;
        for wanted in wanted {
            let is_right =
                |found: &Value| found["metadata"]["name"] == *wanted.name && wanted.repair(found) == Repair::Nothing;
            if !found.iter().any(is_right)
                && let Some(wanted) = self.confirmed(cluster, &wanted.name).await?
            {
                self.ensure_binding(host, &wanted).await?;
            }
        }
        let is_wanted = |found: &Value| wanted.iter().any(|wanted| found["metadata"]["name"] == *wanted.name);
        for stale in found.iter().filter(|found| is_mirror(found) && !is_wanted(found)) {
            let Some(name) = stale["metadata"]["name"].as_str() else { continue };
            if let Some(wanted) = self.confirmed(cluster, name).await? {
                self.ensure_binding(host, &wanted).await?;
                continue;
            }
            debug!(namespace = %host, binding = name, "mirror of a binding that is gone");
            self.remove(host, stale).await?;
        }
        for disguised in found.iter().filter_map(undisguised) {
            info!(namespace = %host, binding = %disguised["metadata"]["name"], "a binding is no mirror, and is shown");
            self.update(host, &disguised).await?;
        }
        Ok(())
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
        match self.shared.api.get(&path).await {
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
        let found = api.list(&paths::bindings(host), "").await?;
        if only_bindings_remain(&namespace) && found.iter().all(is_mirror) {
            for mirror in &found {
                self.release(host, mirror).await?;
            }
            return Ok(());
        }
        for found in &found {
            let wanted = wanted.iter().find(|wanted| found["metadata"]["name"] == *wanted.name);
            if let Some(heard) = wanted.filter(|wanted| wanted.edit(found).is_some())
                && let Some(wanted) = self.confirmed(cluster, &heard.name).await?
                && let Some(edited) = wanted.edit(found)
            {
                self.update(host, &edited).await?;
            }
        }
        Ok(())
    }

    /// Makes one binding be there, exactly as wanted; does nothing in a namespace that is being deleted.
    pub(super) async fn ensure_binding(&self, host: &HostNamespace, wanted: &Wanted) -> Result<(), Trouble> {
        let api = &self.shared.api;
        let Some(path) = paths::binding(host, &wanted.name) else { return Ok(()) };
        for _ in 0..ATTEMPTS {
            match api.create(&paths::bindings(host), &wanted.object(host)).await {
                Ok(_) => {
                    debug!(namespace = %host, binding = wanted.name, "binding created");
                    return Ok(());
                }
                Err(error) if is_already_there(&error) => {}
                Err(error) if is_namespace_ending(&error) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
            let found = match api.get(&path).await {
                Ok(found) => found,
                Err(error) if error.is_not_found() => continue,
                Err(error) => return Err(error.into()),
            };
            match wanted.repair(&found) {
                Repair::Nothing => return Ok(()),
                Repair::Update(edited) => {
                    if self.update(host, &edited).await? {
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
    async fn remove(&self, host: &HostNamespace, found: &Value) -> Result<(), Trouble> {
        let metadata = &found["metadata"];
        let Some(path) = metadata["name"].as_str().and_then(|name| paths::binding(host, name)) else { return Ok(()) };
        if is_deleted(found) {
            return self.release(host, found).await;
        }
        let options = json!({"preconditions": {"uid": metadata["uid"]}});
        match self.shared.api.delete(&path, &options).await {
            Ok(_) => {}
            Err(error) if is_lost(&error) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        match self.shared.api.get(&path).await {
            Ok(deleted) if is_deleted(&deleted) => self.release(host, &deleted).await,
            Ok(_) => Ok(()),
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) async fn release(&self, host: &HostNamespace, found: &Value) -> Result<(), Trouble> {
        let Some(released) = released(found) else { return Ok(()) };
        if self.update(host, &released).await? {
            debug!(namespace = %host, binding = %found["metadata"]["name"], "mirror released");
            return Ok(());
        }
        // Whoever was faster has released it, or has changed it: its event brings us back here, unless it is gone.
        Ok(())
    }

    /// Returns `false` if somebody else has changed or removed it meanwhile.
    async fn update(&self, host: &HostNamespace, object: &Value) -> Result<bool, Trouble> {
        let name = object["metadata"]["name"].as_str();
        let Some(path) = name.and_then(|name| paths::binding(host, name)) else { return Ok(false) };
        match self.shared.api.update(&path, object).await {
            Ok(_) => Ok(true),
            Err(error) if is_lost(&error) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// Whether a race was lost: the object is another one by now, or none.
fn is_lost(error: &ApiError) -> bool {
    error.is_conflict() || error.is_not_found()
}

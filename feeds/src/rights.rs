//! When the rights to watches must be checked again: after a change of RBAC on the host.
//!
//! A feed reads the host in the agent's own name, so the agent asks the host whether the caller of a watch has the right to
//! it. To ask before each event would cost the host one review for each watch and event. So the agent watches the four RBAC
//! resources of the host, and asks again only if an object has changed that can decide about the watch. No state of these
//! objects is kept, so memory does not depend on how many there are.
//!
//! Rights in a namespace come from its Roles and RoleBindings, from ClusterRoles, and from ClusterRoleBindings. The rights to
//! a watch of all namespaces are those in the root namespace. So all watches in one namespace of a virtual cluster form a
//! [`Scope`], whose rights are checked in *rounds*: a check that began in the current round is still valid.
//!
//! - A change begins a round after a tenth of a second. Rounds of one scope begin a second apart at least, and each virtual
//!   cluster has only a few reviews at a time. So a flood of changes by one virtual cluster delays only its own events.
//! - The RBAC caches of API servers lag, so another round begins two seconds after the last change.
//! - A round also begins after five minutes, because the host may have other authorisers than RBAC.
//! - While a watch of RBAC objects is not current, changes can be missed. Then, the right is checked before each batch of
//!   events. After a gap, a round of all scopes begins.
//!
//! - A watch can begin after a change that no other watch of its scope has seen. Then, the cached reviews are forgotten, too.
//! - The last review of a right is valid for the rest of its round, even if the watch ends, while RBAC is watched, and if it did
//!   not begin within ten seconds after a change. Informers begin
//!   new watches all the time, and a review for each of them would cost the host more than the events do. A
//!   [`ReviewValidity`](crate::ReviewValidity) in the cache of reviews keeps the scope.
//!
//! Reading order: [`Rounds`](rounds::Rounds), [`Scope`], [`Leases`] (whether the watches are current), `concern` (whose rights
//! an object can change), `recent`, [`Scopes`], `rbac_watch` (one of the four watches), [`Rights`].

mod concern;
mod leases;
mod rbac_watch;
mod recent;
mod rounds;
mod scope;
mod scopes;

use std::fmt;
use std::sync::Arc;

use host_client::api::Api;
use rewrite::{ClusterName, HostNamespace};
use tokio::time::Instant;

use concern::Resource;
use leases::Leases;
use rbac_watch::RbacWatch;
pub(crate) use scope::{Member, Scope};
use scopes::Scopes;

/// The rights of the callers of open watches, and cached permissions for the next ones.
pub struct Rights {
    scopes: Scopes,
    leases: Arc<Leases>,
    /// Forgets the answers to earlier reviews.
    forget: Box<dyn Fn(&ClusterName) + Send + Sync>,
}

// === impl Rights ===

impl Rights {
    /// There is no watch yet. `forget` must forget the cached answers to reviews for a virtual cluster.
    pub fn new(forget: impl Fn(&ClusterName) + Send + Sync + 'static) -> Self {
        let leases = Arc::new(Leases::new(Instant::now()));
        Self { scopes: Scopes::new(&leases), leases, forget: Box::new(forget) }
    }

    /// Watches RBAC of this host forever. While the watches are not current, or if this is never called, rights are checked
    /// before each batch of events.
    pub async fn keep(&self, api: &Api) {
        let [mut roles, mut bindings, mut cluster_roles, mut cluster_bindings] =
            Resource::ALL.map(|resource| RbacWatch::new(api, resource, &self.scopes, &self.leases));
        let rounds = self.scopes.begin_rounds(&self.forget);
        tokio::join!(roles.run(), bindings.run(), cluster_roles.run(), cluster_bindings.run(), rounds);
    }

    /// The number of watches of RBAC objects that are current, of four.
    pub fn current_watches(&self) -> usize {
        self.leases.count(Instant::now())
    }

    /// The scope of the watches in a namespace. `namespace` is the root namespace if they are watches of all namespaces.
    /// If the rights have changed recently, the next review is a new one.
    pub(crate) fn scope(&self, cluster: &ClusterName, namespace: &HostNamespace) -> Arc<Scope> {
        self.scopes.scope(cluster, namespace, &self.forget)
    }
}

impl fmt::Debug for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rights").field("leases", &self.leases).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;

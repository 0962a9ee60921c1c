//! After a write: the client hears of it when it is in force, or after a moment.

use http::StatusCode;
use serde_json::Value;

use crate::exchange::Asked;

/// What was written.
pub(in crate::exchange) enum Written {
    /// A ClusterRole, or several.
    Role,
    /// A ClusterRoleBinding: the RoleBinding in the root namespace.
    Bound(Value),
    /// One of which only its watch will tell.
    SomeBound,
    /// The ClusterRoleBinding of this name is gone, or is as soon as it has no finalizer.
    Unbound(String),
    /// Several are.
    SomeUnbound,
}

impl Asked<'_> {
    /// Sees to it that what was written is in force; to be called before the client hears of it.
    pub(in crate::exchange) async fn put_in_force(&self, written: Option<Written>, status: StatusCode) {
        let Some(written) = written.filter(|_| status.is_success()) else { return };
        let (root, cluster) = (&self.parts.root, &self.cluster.name);
        match written {
            Written::Role => {}
            Written::Bound(binding) => root.bound(cluster, &binding).await,
            Written::Unbound(name) => root.unbound(cluster, &name).await,
            Written::SomeBound | Written::SomeUnbound => root.look_again(cluster).await,
        }
        root.in_force(cluster).await;
        // What was asked meanwhile may have been answered from before.
        self.parts.access.flush(cluster);
    }
}

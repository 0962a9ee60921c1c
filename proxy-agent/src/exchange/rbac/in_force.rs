//! After a write: the client hears of it when it is in force, or after a moment.

use http::StatusCode;

use crate::exchange::Asked;

/// What was written.
pub(in crate::exchange) enum Written {
    /// A ClusterRole, or several.
    Role,
    /// The ClusterRoleBinding of this name, which may be deleted by now.
    Binding(String),
    /// One or several ClusterRoleBindings; only the host knows which.
    Bindings,
}

impl Asked<'_> {
    /// Ensures that the written object is in force. Call it before the client gets the response.
    pub(in crate::exchange) async fn put_in_force(&self, written: Option<Written>, status: StatusCode) {
        let Some(written) = written.filter(|_| status.is_success()) else { return };
        let (root, cluster) = (&self.parts.root, &self.cluster.name);
        match written {
            Written::Role => {}
            Written::Binding(name) => root.written(cluster, &name).await,
            Written::Bindings => root.look_again(cluster).await,
        }
        root.in_force(cluster).await;
        // What was asked meanwhile may have been answered from before.
        self.parts.access.flush(cluster);
    }
}

//! After a write, the client gets the response when the write is in force, or after a moment.

use http::StatusCode;

use crate::exchange::ApiRequest;

/// The objects that were written.
pub(in crate::exchange) enum Written {
    /// One or several ClusterRoles.
    Role,
    /// The ClusterRoleBinding of this name, which may be deleted by now.
    Binding(String),
    /// One or several ClusterRoleBindings; only the host knows which.
    Bindings,
}

impl ApiRequest<'_> {
    /// Ensures that the written object is in force. Call it before the client gets the response.
    pub(in crate::exchange) async fn put_in_force(&self, written: Option<Written>, status: StatusCode) {
        let Some(written) = written.filter(|_| status.is_success()) else { return };
        let (provisioner, cluster) = (&self.services.provisioner, &self.cluster.name);
        match written {
            Written::Role => {}
            Written::Binding(name) => provisioner.written(cluster, &name).await,
            Written::Bindings => provisioner.look_again(cluster).await,
        }
        provisioner.in_force(cluster).await;
        // Reviews in the meantime may not have used the new rights.
        self.services.authz.flush(cluster);
    }
}

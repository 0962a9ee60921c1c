//! After a write, the client gets the response when the write is in force, or after a moment.

use http::StatusCode;

use crate::exchange::call::Call;
use crate::exchange::plan::WrittenRbac;

/// Ensures that the written object is in force. Call it before the client gets the response.
pub(crate) async fn put_in_force(call: &Call<'_>, written: WrittenRbac, status: StatusCode) {
    if !status.is_success() {
        return;
    }
    let (provisioner, cluster) = (&call.services.provisioner, &call.api.cluster.name);
    match written {
        WrittenRbac::Role => {}
        WrittenRbac::Binding(name) => provisioner.written(cluster, &name).await,
        WrittenRbac::Bindings => provisioner.reread(cluster).await,
    }
    provisioner.in_force(cluster).await;
    // Reviews in the meantime may not have used the new rights.
    call.services.authz.flush(cluster);
}

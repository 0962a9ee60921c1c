//! The mirror that a namespace must have, by a new read of the root namespace.

use host_client::api::HostApi;
use rewrite::{ClusterName, HostNamespace};

use crate::provisioner::binding::{Binding, Wanted};
use crate::provisioner::names::{CLUSTER_ADMIN, MIRROR_PREFIX};
use crate::provisioner::paths;
use crate::provisioner::reconcile_error::ReconcileError;
use crate::provisioner::roots::labelled_binding;

/// The wanted mirror of this name; `None` if there is to be none. The catalog may be out of date, and another agent may
/// already have applied a later change. Undoing that could restore a revoked right.
pub(super) async fn confirmed(
    api: &impl HostApi,
    cluster: &ClusterName,
    mirror: &str,
) -> Result<Option<Wanted>, ReconcileError> {
    let Some(name) = mirror.strip_prefix(MIRROR_PREFIX) else { return Ok(None) };
    if name == CLUSTER_ADMIN {
        return Ok(Some(Binding::cluster_admin(cluster).mirror()));
    }
    let Some(path) = paths::binding(&HostNamespace::root(cluster), name) else { return Ok(None) };
    match api.read(&path).await {
        Ok(found) => Ok(labelled_binding(api, cluster, found).await?.map(|binding| binding.mirror())),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

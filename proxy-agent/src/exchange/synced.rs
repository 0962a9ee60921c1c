//! Waits, shortly after the agent has started, until it knows what a request needs.

use std::time::Duration;

use kube_wire::Status;
use tokio::time::timeout;

use crate::exchange::call::Call;
use crate::refusal::Refusal;

/// The time that a request waits until the agent knows the host's nodes.
const NODES_SYNC_TIMEOUT: Duration = Duration::from_secs(5);

/// The time that a request waits until the agent knows the host's cluster roles.
const ROLES_SYNC_TIMEOUT: Duration = Duration::from_secs(5);

/// The time that a request waits until the agent knows the host's definitions.
const DEFINITIONS_SYNC_TIMEOUT: Duration = Duration::from_secs(5);

/// Waits until the cluster's nodes are known, shortly after the agent has started.
pub(crate) async fn known_nodes(call: &Call<'_>) -> Result<(), Refusal> {
    call.outside(timeout(NODES_SYNC_TIMEOUT, call.api.cluster.nodes.synced())).await.map_err(|_| {
        Status::service_unavailable("the nodes of this cluster are not known yet").with_retry_after(1).into()
    })
}

/// Waits until the agent knows the roles that every cluster has, which takes a moment after its start.
pub(crate) async fn known_roles(call: &Call<'_>) -> Result<(), Refusal> {
    call.outside(timeout(ROLES_SYNC_TIMEOUT, call.api.cluster.roles().synced())).await.map_err(|_| {
        Status::service_unavailable("the roles of this cluster are not known yet").with_retry_after(1).into()
    })
}

/// Waits until the agent knows which clusters have which definitions, which takes a moment after its start.
pub(crate) async fn known_definitions(call: &Call<'_>) -> Result<(), Refusal> {
    call.outside(timeout(DEFINITIONS_SYNC_TIMEOUT, call.services.definitions.synced())).await.map_err(|_| {
        Status::service_unavailable("the resources of this cluster are not known yet").with_retry_after(1).into()
    })
}

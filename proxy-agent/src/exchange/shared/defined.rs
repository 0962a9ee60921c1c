//! Custom resources whose definition only other virtual clusters have are not served in this one.

use std::time::Duration;

use kube_wire::name::SegmentName;
use kube_wire::{Status, Target};
use rewrite::schema;
use tokio::time::timeout;

use super::ApiRequest;
use crate::refusal::Refusal;
use virtual_cluster::shared::{DEFINITIONS, HostObject};

/// The time that a request waits until the agent knows the host's definitions.
const DEFINITIONS_SYNC_TIMEOUT: Duration = Duration::from_secs(5);

impl ApiRequest<'_> {
    /// Refuses a resource that is not served in this cluster, like an API server that does not serve it.
    pub(in crate::exchange) async fn defined(&self) -> Result<(), Refusal> {
        let Target::Resource(request) = self.info.target() else { return Ok(()) };
        let resource = request.group_resource();
        if resource.group.is_empty() || schema::kind_of(resource.group, resource.resource).is_some() {
            return Ok(());
        }
        self.known_definitions().await?;
        if !self.services.definitions.hide(resource, self.cluster.name.as_str()) {
            return Ok(());
        }
        // The cluster may have created the definition a moment ago, through another agent. The right to read in a
        // namespace has not been checked yet.
        self.allowed(request).await?;
        let definition = self.definition(&format!("{}.{}", resource.resource, resource.group)).await?;
        let is_seen = definition.is_some_and(|definition| definition.is_seen_by(self.cluster.name.as_str()));
        if is_seen { Ok(()) } else { Err(Status::path_not_found().into()) }
    }

    /// The definition of this name on the host.
    pub(in crate::exchange) async fn definition(&self, name: &str) -> Result<Option<HostObject>, Refusal> {
        let Some(request) = self.info.resource() else { return Ok(None) };
        let Ok(name) = SegmentName::new(name.to_owned()) else { return Ok(None) };
        self.live(request, &format!("{DEFINITIONS}/{name}")).await
    }

    /// Waits until the agent knows which clusters have which definitions, which takes a moment after its start.
    pub(in crate::exchange) async fn known_definitions(&self) -> Result<(), Refusal> {
        self.outside(timeout(DEFINITIONS_SYNC_TIMEOUT, self.services.definitions.synced())).await.map_err(|_| {
            Status::service_unavailable("the resources of this cluster are not known yet").with_retry_after(1).into()
        })
    }
}

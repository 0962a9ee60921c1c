//! Cluster-scoped custom resources: how the virtual cluster is served them.

use kube_wire::{ResourceRequest, Status};

use crate::exchange::call::Call;
use crate::exchange::classes::shared::defined::definition;
use crate::exchange::synced::known_definitions;
use crate::exchange::undecided::Undecided;
use crate::refusal::Refusal;
use virtual_cluster::policy::{self, Class, Custom};

/// Determines whether the request is for cluster-scoped custom objects, and how the cluster is served them.
pub(crate) async fn learn_custom(call: &mut Call<'_>) -> Result<(), Refusal> {
    learn_kinds(call);
    let Some(request) = call.api.info.resource() else { return Ok(()) };
    let is_listed = policy::class(request.group_resource()) != Class::Empty(policy::UNKNOWN);
    if request.namespace().is_some() || request.group().is_empty() || is_listed {
        return Ok(());
    }
    // Boxed, so that the state of all other requests is small.
    Box::pin(learn_unlisted(call)).await
}

/// The same for a resource that may be a cluster-scoped custom one.
async fn learn_unlisted(call: &mut Call<'_>) -> Result<(), Refusal> {
    let Some(request) = call.api.info.resource() else { return Ok(()) };
    let known = call.services.discovery.resource(request.group_version_resource()).await;
    let known = known.map_err(|error| Refusal::from(Status::service_unavailable(error.to_string())))?;
    if known.is_some_and(|known| known.custom && !known.namespaced) {
        call.api.custom = Some(custom_of(call, request).await?);
    }
    // The definition may be new, so read it from the host.
    learn_kinds(call);
    Ok(())
}

async fn custom_of(call: &Call<'_>, request: &ResourceRequest<'_>) -> Result<Custom, Refusal> {
    known_definitions(call).await?;
    let name = format!("{}.{}", request.resource(), request.group());
    if let Some(custom) = call.services.discovery.custom(&name) {
        return Ok(custom);
    }
    // Another agent may have just created it. A read finds nothing for the response.
    let definition = definition(&Undecided::new(call), &name).await?;
    let is_of_clusters = definition.is_some_and(|definition| definition.is_of_clusters());
    Ok(call.services.discovery.custom_of(&name, is_of_clusters))
}

fn learn_kinds(call: &mut Call<'_>) {
    call.api.mapping = call.api.mapping.clone().with_renamed_kinds(call.services.discovery.renamed());
}

//! The limit for recent versions, for what a virtual cluster writes outside of namespaces: the host's admission policies do not refuse
//! it. Watches of the agent count the versions, but they do not show who has written a shared object.

use http::Response;
use kube_wire::query::WriteOptions;
use kube_wire::{ResourceRequest, Verb};

use crate::exchange::call::Call;
use crate::exchange::refusals::forbidden;
use crate::refusal::Refusal;
use virtual_cluster::policy::{self, Class, Custom};

/// Refuses a write whose body has this length, if it would exceed the limit for recent versions.
pub(super) fn check_room(call: &Call<'_>, length: usize) -> Result<(), Refusal> {
    let Some(request) = cluster_scoped_write(call) else { return Ok(()) };
    let length = u64::try_from(length).unwrap_or(u64::MAX);
    let room = call.services.usage.room_for_version(&call.api.cluster.name, length);
    room.map_err(|full| forbidden(request, &full.to_string()))
}

/// Counts the version of a shared object that a write has stored. The agent always sends such an object as a whole.
pub(super) fn count<B>(call: &Call<'_>, sent: usize, response: &Response<B>) {
    let is_shared = |request: &ResourceRequest<'_>| {
        let is_built_in = policy::class(request.group_resource()) == Class::Shared;
        is_built_in || call.api.custom == Some(Custom::Shared)
    };
    if response.status().is_success() && cluster_scoped_write(call).is_some_and(is_shared) {
        count_bytes(call, sent);
    }
}

/// Counts a version of this length that the agent sends for a client.
pub(super) fn count_bytes(call: &Call<'_>, length: usize) {
    call.services.usage.wrote(&call.api.cluster.name, u64::try_from(length).unwrap_or(u64::MAX));
}

/// The request, if it stores a version of an object that is in no namespace. A deletion stores almost nothing, and reviews and dry
/// runs nothing at all.
fn cluster_scoped_write<'a>(call: &'a Call<'_>) -> Option<&'a ResourceRequest<'a>> {
    let request = call.api.info.resource()?;
    let is_written = matches!(request.verb(), Verb::Create | Verb::Update | Verb::Patch);
    let is_review = ["authentication.k8s.io", "authorization.k8s.io"].contains(&request.group());
    let is_in_namespace = request.namespace().is_some() && (request.group(), request.resource()) != ("", "namespaces");
    let is_stored = || WriteOptions::parse(call.api.info.query()).is_ok_and(|options| !options.dry_run);
    (is_written && !is_review && !is_in_namespace && is_stored()).then_some(request)
}

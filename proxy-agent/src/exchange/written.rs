//! The limit for recent versions, for what a virtual cluster writes outside of namespaces: the host's admission policies do not refuse
//! it. Watches of the agent count the versions, but they do not show who has written an object that several virtual clusters
//! share.

use http::Request;
use kube_wire::query::WriteOptions;
use kube_wire::{ResourceRequest, Verb};

use crate::exchange::call::Call;
use crate::exchange::refusals::forbidden;
use crate::refusal::Refusal;
use host_client::RequestBody;
use virtual_cluster::policy::{self, Class, Custom};
use virtual_cluster::shared::HostObject;

/// Refuses a write whose body has this length, if it would exceed the limit for recent versions.
pub(super) fn check_room(call: &Call<'_>, length: usize) -> Result<(), Refusal> {
    let Some(request) = cluster_scoped_write(call) else { return Ok(()) };
    let length = u64::try_from(length).unwrap_or(u64::MAX);
    let room = call.services.usage.room_for_version(&call.api.cluster.name, length);
    room.map_err(|full| forbidden(request, &full.to_string()))
}

/// The length of the object that a write sends, if watches do not show who has written it: if several virtual clusters share it. The
/// agent always sends such an object as a whole.
pub(super) fn shared_length(call: &Call<'_>, sent: &Request<RequestBody>) -> Option<usize> {
    let request = cluster_scoped_write(call)?;
    let is_shared = policy::class(request.group_resource()) == Class::Shared || call.api.custom == Some(Custom::Shared);
    let body = sent.body().bytes();
    (is_shared && has_several_owners(&body)).then_some(body.len())
}

fn has_several_owners(object: &[u8]) -> bool {
    serde_json::from_slice(object).is_ok_and(|object| HostObject::new(object).attached().owners().count() > 1)
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

//! What a virtual cluster writes outside of namespaces. The agent's watches count the versions of objects in namespaces, and
//! the host's admission policies refuse them, but neither covers the others.

use http::{Response, header};
use kube_wire::query::WriteOptions;
use kube_wire::{ResourceRequest, Verb};

use crate::exchange::call::Call;
use crate::exchange::refusals::forbidden;
use crate::refusal::Refusal;

/// Refuses a write whose body has this length, if it would exceed the limit for recent versions.
pub(super) fn check_room(call: &Call<'_>, length: usize) -> Result<(), Refusal> {
    let Some(request) = cluster_scoped_write(call) else { return Ok(()) };
    let length = u64::try_from(length).unwrap_or(u64::MAX);
    let room = call.services.usage.room_for_version(&call.api.cluster.name, length);
    room.map_err(|full| forbidden(request, &full.to_string()))
}

/// Counts the version that a write has stored. A patch is shorter than the object, and the response to a metadata client too,
/// so the longer one counts.
pub(super) fn count<B>(call: &Call<'_>, sent: usize, response: &Response<B>) {
    if !response.status().is_success() || cluster_scoped_write(call).is_none() {
        return;
    }
    let shown = response.headers().get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    let sent = u64::try_from(sent).unwrap_or(u64::MAX);
    call.services.usage.wrote(&call.api.cluster.name, sent.max(shown.unwrap_or_default()));
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

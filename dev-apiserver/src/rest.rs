//! What is done with resources, verb by verb.
//!
//! Reading order: [`serve`] decides which; `shape` (what the client sees), `read`, `watch`, then the writers: `create`,
//! `update`, `delete`. [`crate::write`] has the rules of writes.

mod create;
mod delete;
mod exec;
mod list;
mod log;
mod patch;
mod pod;
mod read;
mod review;
mod scale;
mod selection;
mod shape;
mod subresource;
mod token;
mod update;
mod watch;

use http::Response;
use kube_wire::{ResourceRequest, Status, Verb};

use crate::answer::Body;
use crate::kinds::{self, Handling, Kind};
use crate::serve::{Call, Sent};
use crate::write::Part;

/// Serves a request for a resource, which its caller may make.
pub(crate) async fn serve(
    call: &Call<'_>,
    request: &ResourceRequest<'_>,
    sent: Sent,
) -> Result<Response<Body>, Status> {
    let kind =
        kinds::find(request.group(), request.version(), request.resource()).ok_or_else(Status::path_not_found)?;
    let inside = scope(kind, request);
    let is_elsewhere = request.namespace().is_some() && inside.is_none() && !request.is_namespace();
    if is_elsewhere || kind.namespaced && inside.is_none() && request.path_name().is_some() {
        return Err(Status::path_not_found());
    }
    if let Some(subresource) = request.subresource() {
        let known = kind.subresource(subresource).ok_or_else(Status::path_not_found)?;
        if !known.verbs.contains(&request.verb().as_str()) {
            return Err(not_allowed());
        }
        return call.subresource(kind, request, subresource, sent).await;
    }
    // kubectl asks the reviews of a namespace there, and all others everywhere.
    let is_homeless = kind.namespaced && inside.is_none() && !matches!(request.verb(), Verb::List | Verb::Watch);
    let is_nameless = matches!(request.verb(), Verb::Update | Verb::Patch) && request.path_name().is_none();
    if is_homeless || is_nameless || !kind.allows(request.verb()) {
        return Err(not_allowed());
    }
    match request.verb() {
        Verb::Get => call.get(kind, request),
        Verb::List => call.list(kind, request),
        Verb::Watch => call.watch(kind, request),
        Verb::Create if kind.handling == Handling::Review => call.review(kind, request, sent).await,
        Verb::Create => call.create(kind, request, sent).await,
        Verb::Update => call.update(kind, request, Part::Main, sent).await,
        Verb::Patch => call.patch(kind, request, Part::Main, sent).await,
        Verb::Delete => call.delete(kind, request, sent).await,
        Verb::DeleteCollection => call.delete_collection(kind, request, sent).await,
        Verb::Options => Err(not_allowed()),
    }
}

/// The namespace that a request is about, for kinds that have one.
fn scope<'r>(kind: &Kind, request: &'r ResourceRequest<'_>) -> Option<&'r str> {
    request.namespace().filter(|_| kind.namespaced)
}

/// 405
pub(crate) fn not_allowed() -> Status {
    Status::method_not_allowed_here()
}

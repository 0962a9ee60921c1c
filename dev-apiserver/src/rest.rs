//! Requests for resources, one module for each verb or subresource.
//!
//! Reading order: [`serve`] (dispatch), `request`, `shape` (the form of the response), `read`, `list`, `watch`, then the
//! writes: `decode`, `create`, `update`, `patch`, `delete`. [`crate::write`] has the rules of writes.

mod create;
mod decode;
mod delete;
mod exec;
mod list;
mod log;
mod patch;
mod pod;
mod read;
mod request;
mod review;
mod scale;
mod selection;
mod shape;
mod subresource;
mod token;
mod update;
mod watch;

use http::Response;
use kube_wire::{Status, Verb};

use crate::body::RequestBody;
use crate::kinds::Handling;
use crate::response::Body;
use crate::write::Part;
pub(crate) use request::ApiRequest;

/// Executes an authorized request.
pub(crate) async fn serve(request: &ApiRequest<'_>, body: RequestBody) -> Result<Response<Body>, Status> {
    let (kind, resource) = (request.kind, request.resource);
    let inside = request.namespace();
    let is_elsewhere = resource.namespace().is_some() && inside.is_none() && !resource.is_namespace();
    if is_elsewhere || kind.namespaced && inside.is_none() && resource.path_name().is_some() {
        return Err(Status::path_not_found());
    }
    let verb = resource.verb();
    if let Some(subresource) = resource.subresource() {
        let known = kind.subresource(subresource).ok_or_else(Status::path_not_found)?;
        if !known.verbs.contains(&verb.as_str()) {
            return Err(Status::method_not_allowed_here());
        }
        return subresource::serve(request, subresource, body).await;
    }
    let lacks_namespace = kind.namespaced && inside.is_none() && !matches!(verb, Verb::List | Verb::Watch);
    let lacks_name = matches!(verb, Verb::Update | Verb::Patch) && resource.path_name().is_none();
    if lacks_namespace || lacks_name || !kind.allows(verb) {
        return Err(Status::method_not_allowed_here());
    }
    match verb {
        Verb::Get => read::get(request),
        Verb::List => list::list(request),
        Verb::Watch => watch::watch(request),
        Verb::Create if kind.handling == Handling::Review => review::review(request, body).await,
        Verb::Create => create::create(request, body).await,
        Verb::Update => update::update(request, Part::Main, body).await,
        Verb::Patch => patch::patch(request, Part::Main, body).await,
        Verb::Delete => delete::delete(request, body).await,
        Verb::DeleteCollection => delete::delete_collection(request, body).await,
        Verb::Options => Err(Status::method_not_allowed_here()),
    }
}

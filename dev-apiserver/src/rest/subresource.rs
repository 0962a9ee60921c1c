//! Requests for subresources.

use http::Response;
use kube_wire::{Status, Verb};

use super::request::ApiRequest;
use super::{exec, log, patch, pod, read, scale, token, update};
use crate::body::RequestBody;
use crate::response::Body;
use crate::write::Part;

pub(super) async fn serve(
    request: &ApiRequest<'_>,
    subresource: &str,
    body: RequestBody,
) -> Result<Response<Body>, Status> {
    match (subresource, request.resource.verb()) {
        ("status", Verb::Get) => read::get(request),
        ("status", Verb::Update) => update::update(request, Part::Status, body).await,
        ("status", Verb::Patch) => patch::patch(request, Part::Status, body).await,
        ("scale", _) => scale::serve(request, body).await,
        ("log", Verb::Get) => log::log(request),
        ("exec" | "attach", _) => exec::exec(request, body),
        ("binding", _) => pod::bind(request, body).await,
        ("eviction", _) => pod::evict(request, body).await,
        ("token", Verb::Create) => token::issue(request, body).await,
        // Removing the last finalizer of a terminating Namespace deletes it.
        ("finalize", Verb::Update) => update::update(request, Part::Main, body).await,
        _ => {
            request.api.store.read(|state| read::find(state, request).map(|_| ()))?;
            Err(Status::method_not_allowed_here())
        }
    }
}

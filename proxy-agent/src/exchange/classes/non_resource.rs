//! Paths that are not resources: discovery, OpenAPI, version, health.

use http::{HeaderMap, HeaderValue, header};
use kube_wire::Status;
use kube_wire::media::Accept;
use kube_wire::request_info::NonResourceRequest;

use crate::exchange::advertised::Advertised;
use crate::exchange::advertised::document::{Document, Redaction};
use crate::exchange::api_request::As;
use crate::exchange::plan::{After, NotFound, Plan};
use crate::exchange::synced::known_definitions;
use crate::exchange::undecided::Undecided;
use crate::exchange::upstream;
use crate::refusal::Refusal;
use crate::translate::ResponseTransform;
use host_client::empty;

/// These documents contain no names of namespaces. The agent requests them with its own identity, and forwards them
/// unchanged, except for resources that only other virtual clusters have.
pub(crate) async fn decide(call: &Undecided<'_>, request: &NonResourceRequest<'_>) -> Result<Box<Plan>, Refusal> {
    let target = upstream::target(request.path(), call.api.info.query());
    let mut upstream = upstream::request(&call.api, call.api.info.method().clone(), &target, As::Agent, empty())?;
    let advertised = advertised(call, request, upstream.headers_mut()).await?;
    let mut plan = Plan::with_not_found(&call.api, upstream, ResponseTransform::Verbatim, NotFound::Path);
    if let Some(advertised) = advertised {
        plan.after = After::Advertised(advertised);
    }
    Ok(plan)
}

/// What must be removed from the response; `None` if it can pass unchanged.
pub(crate) async fn advertised(
    call: &Undecided<'_>,
    request: &NonResourceRequest<'_>,
    headers: &mut HeaderMap,
) -> Result<Option<Advertised>, Refusal> {
    let Some(document) = Document::of(request.path()) else { return Ok(None) };
    known_definitions(call).await?;
    let unserved = call.services.discovery.hidden();
    let hidden = Redaction(call.services.definitions.hidden_from(call.api.cluster.name.as_str(), &unserved));
    if !hidden.concerns(&document) {
        return Ok(None);
    }
    if hidden.is_all_of(&document) {
        return Err(Status::path_not_found().into());
    }
    let accept = call.api.headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    match Accept::parse(accept).json_only() {
        Ok(only) => {
            let value = HeaderValue::from_str(only.header());
            let value = value.map_err(|_| Refusal::from(Status::bad_request("the Accept header cannot be read")))?;
            headers.insert(header::ACCEPT, value);
        }
        // This document has a protobuf form of its own.
        Err(_) if document == Document::Schemas(None) => {}
        Err(error) => return Err(Status::not_acceptable(error).into()),
    }
    // Other resources may have been removed from the document that the client has.
    headers.remove(header::IF_NONE_MATCH);
    headers.remove(header::IF_MODIFIED_SINCE);
    Ok(Some(Advertised { document, hidden }))
}

//! Reads: the host's response, in which the client sees its overlay.

use http::Method;
use kube_wire::query::ListOptions;
use kube_wire::selector::LabelSelector;
use kube_wire::{ResourceRequest, Verb};
use rewrite::view::Filter;

use crate::exchange::api_request::As;
use crate::exchange::plan::Plan;
use crate::exchange::query::{evaluated_selector, list_query, list_transform};
use crate::exchange::undecided::Undecided;
use crate::exchange::upstream;
use crate::refusal::Refusal;
use crate::translate::ResponseTransform;
use host_client::empty;

pub(crate) fn read_shared(call: &Undecided<'_>, request: &ResourceRequest<'_>) -> Result<Box<Plan>, Refusal> {
    if request.verb() != Verb::Get {
        return list_shared(call, request, call.api.info.method().clone());
    }
    let target = upstream::target(&request.path().build(), call.api.info.query());
    let mut upstream = upstream::request(&call.api, call.api.info.method().clone(), &target, As::Agent, empty())?;
    upstream::readable(&call.api, &mut upstream)?;
    Ok(Plan::new(&call.api, upstream, shared_transform(call, request)))
}

/// Lists the objects that the query selects, by the labels that the cluster sees.
pub(crate) fn list_shared(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    method: Method,
) -> Result<Box<Plan>, Refusal> {
    let mut query = list_query(call, request, None)?;
    query.remove("labelSelector");
    let selector = selected_labels(call)?;
    let target = upstream::target(&request.path().build(), &query);
    let mut upstream = upstream::request(&call.api, method, &target, As::Agent, empty())?;
    upstream::readable(&call.api, &mut upstream)?;
    let transform = list_transform(call, request, call.api.program(request), Filter::Shared)?;
    let mut plan = Plan::new(&call.api, upstream, transform);
    plan.selecting = Some(selector).filter(|selector| !selector.is_empty());
    Ok(plan)
}

pub(crate) fn selected_labels(call: &Undecided<'_>) -> Result<LabelSelector, Refusal> {
    evaluated_selector(&ListOptions::parse(call.api.info.query())?)
}

/// The transform for one shared object.
pub(crate) fn shared_transform(call: &Undecided<'_>, request: &ResourceRequest<'_>) -> ResponseTransform {
    ResponseTransform::Object { program: call.api.program(request), filter: Filter::Shared, only: None }
}

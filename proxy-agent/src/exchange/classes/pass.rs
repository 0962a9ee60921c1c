//! Reads that the agent sends with its own identity, and filters while the response streams.

use bytes::Bytes;
use http::{HeaderValue, header};
use kube_wire::query::Query;
use kube_wire::selector::LabelSelector;
use kube_wire::status::Reason;
use kube_wire::{ResourceRequest, Status, Verb};
use rewrite::schema;
use rewrite::view::Filter;

use crate::exchange::api_request::As;
use crate::exchange::host::error::{Destination, prefer_host_error};
use crate::exchange::kinds::program;
use crate::exchange::plan::Plan;
use crate::exchange::query::{list_query, list_transform};
use crate::exchange::undecided::Undecided;
use crate::exchange::upstream;
use crate::refusal::Refusal;
use crate::translate::ResponseTransform;
use host_client::empty;
use virtual_cluster::namespaces::NOBODYS;

/// Reads the objects that `only` selects, with the agent's identity.
pub(crate) async fn pass(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    filter: Filter,
    only: Option<&LabelSelector>,
) -> Result<Box<Plan>, Refusal> {
    match passed(call, request, filter, only) {
        Ok(plan) => Ok(plan),
        Err(refusal) => {
            let (path, mapping) = (request.path().build(), &call.api.mapping);
            let upstream = Destination { path: &path, identity: As::Agent, namespace: None, mapping };
            Err(Box::pin(prefer_host_error(call, request, &upstream, &Bytes::new(), refusal)).await)
        }
    }
}

fn passed(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    filter: Filter,
    only: Option<&LabelSelector>,
) -> Result<Box<Plan>, Refusal> {
    let listed = matches!(request.verb(), Verb::List | Verb::Watch);
    let mut query =
        if listed { list_query(call, request, only)? } else { call.api.info.query().borrowed().into_owned() };
    if listed && filter == Filter::Nothing {
        select_nothing(request, &mut query)?;
    }
    let target = upstream::target(&request.path().build(), &query);
    let mut upstream = upstream::request(&call.api, call.api.info.method().clone(), &target, As::Agent, empty())?;
    upstream::readable(&call.api, &mut upstream)?;
    if is_hidden_by_metadata(request) {
        whole_objects(&mut upstream)?;
    }
    let program = program(request);
    let transform = if listed {
        list_transform(call, request, program, filter)?
    } else {
        ResponseTransform::Object { program, filter, only: only.cloned() }
    };
    Ok(Plan::new(&call.api, upstream, transform))
}

/// Whether the owner of an object cannot be determined from its metadata alone.
fn is_hidden_by_metadata(request: &ResourceRequest<'_>) -> bool {
    matches!(
        (request.group(), request.resource()),
        ("", "persistentvolumes")
            | ("networking.k8s.io", "ipaddresses")
            | ("resource.k8s.io", "resourceslices")
            | ("storage.k8s.io", "volumeattachments")
    )
}

/// Selects an object that does not exist, so that the host does not send objects that would be filtered out. Servers of
/// aggregated APIs may not support this field.
fn select_nothing(request: &ResourceRequest<'_>, query: &mut Query<'_>) -> Result<(), Refusal> {
    if request.name().is_some() || schema::kind_of(request.group(), request.resource()).is_none() {
        return Ok(());
    }
    let selector = query.first("fieldSelector").map_err(|error| Status::bad_request(error.to_string()))?;
    let comma = if selector.as_ref().is_none_or(|selector| selector.is_empty()) { "" } else { "," };
    let narrowed = format!("{}{comma}metadata.name={NOBODYS}", selector.unwrap_or_default());
    query.set("fieldSelector", &narrowed);
    Ok(())
}

/// Requests whole objects, or Tables, even if the client would also accept only metadata. Most clients that request
/// metadata also accept whole objects, because old API servers return nothing else.
fn whole_objects(upstream: &mut http::Request<host_client::RequestBody>) -> Result<(), Refusal> {
    let accept = upstream.headers().get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    let rest: Vec<_> = accept.split(',').filter(|clause| !clause.contains("as=PartialObjectMetadata")).collect();
    if rest.is_empty() {
        let message = "this resource is not available as metadata only";
        return Err(Status::failure(406, Reason::NotAcceptable, message).into());
    }
    let value = HeaderValue::try_from(rest.join(",")).expect("a part of a header's value is one");
    upstream.headers_mut().insert(header::ACCEPT, value);
    Ok(())
}

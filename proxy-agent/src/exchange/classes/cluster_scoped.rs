//! Cluster-scoped requests, and requests in all namespaces: authorised in the root namespace (see `authorise`), then
//! sent with the agent's identity.

use http::{HeaderValue, Method, header};
use kube_wire::{ResourceRequest, Status, Verb};
use rewrite::Program;
use rewrite::view::Filter;

use crate::exchange::api_request::As;
use crate::exchange::body::Body;
use crate::exchange::classes::pass::pass;
use crate::exchange::classes::projected::projected_everywhere;
use crate::exchange::classes::rbac::{bindings, roles};
use crate::exchange::classes::reviews::{self, Kind};
use crate::exchange::classes::{mirrors, renamed};
use crate::exchange::classes::{namespaces, shared};
use crate::exchange::plan::{NotFound, Plan};
use crate::exchange::refusals::forbidden;
use crate::exchange::synced::known_nodes;
use crate::exchange::undecided::Undecided;
use crate::exchange::upstream;
use crate::refusal::Refusal;
use crate::translate::ResponseTransform;
use host_client::empty;
use virtual_cluster::policy::{self, Class, Custom};
use virtual_cluster::shared::Kind as SharedKind;

/// Selects the APIServices that kube-apiserver creates for its own groups (`AutoRegisterManagedLabel` in
/// kube-aggregator's `controllers/autoregister/autoregister_controller.go`). No Service of the host serves them.
const LOCAL_APIS: &str = "kube-aggregator.kubernetes.io/automanaged=onstart";

pub(crate) async fn decide(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    body: &Body,
) -> Result<Box<Plan>, Refusal> {
    let class = policy::class(request.group_resource());
    if class == Class::Namespaces {
        return Box::pin(namespaces::decide(call, request, body)).await;
    }
    if let (Class::Review, Some(kind)) = (class, Kind::of(request)) {
        return Box::pin(reviews::decide(call, request, kind, None, body)).await;
    }
    let known = call.outside(Box::pin(call.services.discovery.resource(request.group_version_resource()))).await;
    let known = known.map_err(|error| Refusal::from(Status::service_unavailable(error.to_string())))?;
    let Some(known) = known else { return unknown(call, request) };
    if known.namespaced {
        return everywhere(call, request).await;
    }
    let class = match call.api.custom {
        Some(Custom::Renamed) => return Box::pin(renamed::decide(call, request, body)).await,
        Some(Custom::Read | Custom::Shared) => return Box::pin(shared::decide(call, request, body)).await,
        Some(Custom::Hidden) => Class::Empty(policy::HIDDEN),
        None => class,
    };
    match class {
        Class::Roles => Box::pin(roles::decide(call, request, body)).await,
        Class::Bindings => Box::pin(bindings::decide(call, request, body)).await,
        Class::Shared if SharedKind::of(request.group_resource()).is_some() => {
            Box::pin(shared::decide(call, request, body)).await
        }
        _ if !request.verb().is_read() => Err(forbidden(request, policy::read_only(class))),
        Class::Empty(_) => nothing(call, request).await,
        _ if request.subresource().is_some_and(|subresource| subresource != "status") => {
            Err(forbidden(request, policy::read_only(class)))
        }
        Class::Nodes => pass(call, request, Filter::Everything, Some(&call.api.cluster.node_selector.all)).await,
        Class::Claimed => pass(call, request, Filter::ByClaim, None).await,
        Class::OfNodes => {
            known_nodes(call).await?;
            pass(call, request, Filter::ByNode, None).await
        }
        Class::Addresses => {
            let mut plan = pass(call, request, Filter::ByParent, None).await?;
            plan.projected = projected_everywhere(call, request).await?;
            Ok(plan)
        }
        Class::LocalApis => {
            let local = LOCAL_APIS.parse().expect("a constant selector");
            pass(call, request, Filter::Everything, Some(&local)).await
        }
        Class::Autoupdated => pass(call, request, Filter::Autoupdated, None).await,
        // Reviews can only be created. The host returns the error.
        Class::Shared | Class::Review => pass(call, request, Filter::Everything, None).await,
        Class::Namespaces => unreachable!("served above"),
    }
}

/// A resource of which the virtual cluster has no objects. The request still goes to the host, so that columns,
/// encodings, the resource version and the bookmarks of a watch are those of any API server.
async fn nothing(call: &Undecided<'_>, request: &ResourceRequest<'_>) -> Result<Box<Plan>, Refusal> {
    if matches!(request.verb(), Verb::List | Verb::Watch) {
        return pass(call, request, Filter::Nothing, None).await;
    }
    let name = request.path_name().unwrap_or_default();
    Err(Status::not_found(request.group_resource(), name).into())
}

/// A resource that is not known to be served; the host returns the error. The agent sends a read instead of the
/// request, and hides the response if the host serves the resource by now, because its owner is not known yet.
fn unknown(call: &Undecided<'_>, request: &ResourceRequest<'_>) -> Result<Box<Plan>, Refusal> {
    let target = format!("{}?limit=1", request.path().build());
    let mut upstream = upstream::request(&call.api, Method::GET, &target, As::Agent, empty())?;
    upstream.headers_mut().insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    // This program finds no namespace in the object, so the filter always hides it.
    let transform = ResponseTransform::Object { program: Program::default(), filter: Filter::ByNamespace, only: None };
    Ok(Plan::with_not_found(&call.api, upstream, transform, NotFound::Path))
}

/// All namespaces of the cluster: the host's response for all its namespaces, filtered while it streams.
async fn everywhere(call: &Undecided<'_>, request: &ResourceRequest<'_>) -> Result<Box<Plan>, Refusal> {
    if matches!(request.verb(), Verb::List | Verb::Watch) {
        let hidden = mirrors::hidden(request);
        let mut plan = pass(call, request, Filter::ByNamespace, hidden.as_ref()).await?;
        plan.projected = projected_everywhere(call, request).await?;
        return Ok(plan);
    }
    // The response of an API server to `DELETE /api/v1/pods`.
    Err(Status::method_not_allowed_here().into())
}

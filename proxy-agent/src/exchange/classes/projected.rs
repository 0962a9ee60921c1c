//! Projected objects: objects of the host that clients of a virtual cluster can only read. These are Leases of nodes,
//! Events about nodes, and the Service `kubernetes` with its endpoints.
//!
//! | virtual namespace | projected objects | other objects of the same kind |
//! |---|---|---|
//! | `kube-node-lease` | the Leases of the cluster's nodes | none |
//! | `default` | Events about the cluster's nodes; Service, Endpoints and EndpointSlice `kubernetes` | those of the cluster |
//! | none | the IPAddress of that Service | those of the cluster's Services |
//!
//! A client sees one list, and one watch, with one `resourceVersion` and one `continue`. So there is one upstream
//! request, for all namespaces, whose response is filtered while it streams, as for `--all-namespaces`. Two responses
//! would have to be merged, and neither a token nor a version could represent the position in both.

use http::Method;
use kube_wire::request_info::ResourcePath;
use kube_wire::{ResourceRequest, Status, Verb};
use rewrite::view::{Filter, Projected, ProjectedObjects};
use rewrite::{HostNamespace, VirtualNamespace};

use crate::exchange::api_request::As;
use crate::exchange::body::Body;
use crate::exchange::kinds::{program, segment};
use crate::exchange::plan::Plan;
use crate::exchange::query::{list_query, list_transform};
use crate::exchange::refusals::forbidden;
use crate::exchange::rights::allowed_in;
use crate::exchange::synced::known_nodes;
use crate::exchange::undecided::Undecided;
use crate::exchange::upstream;
use crate::exchange::write::object::received;
use crate::refusal::Refusal;
use crate::translate::ResponseTransform;
use host_client::empty;

/// The projected objects of a resource. Their namespace has the same name on the host and in every virtual cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Projection {
    namespace: &'static str,
    what: Projected,
}

/// Why a write is refused.
const NOT_WRITTEN: &str = "it belongs to the host cluster and is read-only here";

/// The Service of the API server, and its Endpoints and EndpointSlice (`pkg/controlplane/controller/kubernetesservice`,
/// `pkg/controlplane/reconcilers`).
const API_SERVICE: &str = "kubernetes";

// === impl Projection ===

impl Projection {
    fn of(request: &ResourceRequest<'_>) -> Option<Self> {
        let (namespace, what) = match (request.group(), request.resource()) {
            ("coordination.k8s.io", "leases") => ("kube-node-lease", Projected::NamedLikeNodes),
            ("" | "events.k8s.io", "events") => ("default", Projected::AboutNodes),
            ("", "services" | "endpoints")
            | ("discovery.k8s.io", "endpointslices")
            | ("networking.k8s.io", "ipaddresses") => ("default", Projected::Named(API_SERVICE)),
            _ => return None,
        };
        Some(Self { namespace, what })
    }

    fn as_projected_objects(self, only: bool) -> ProjectedObjects {
        let (from, to) = (HostNamespace::new(self.namespace), VirtualNamespace::new(self.namespace));
        let what = self.what;
        ProjectedObjects { from: from.expect("a literal label"), to: to.expect("a literal label"), what, only }
    }

    /// Whether every object with this name is projected.
    fn names(self, name: &str) -> bool {
        match self.what {
            Projected::NamedLikeNodes => true,
            Projected::AboutNodes => false,
            Projected::Named(projected) => projected == name,
        }
    }
}

/// The projected objects in the response to a request for all namespaces.
pub(crate) async fn projected_everywhere(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
) -> Result<Option<ProjectedObjects>, Refusal> {
    let Some(projection) = Projection::of(request) else { return Ok(None) };
    known_nodes(call).await?;
    Ok(Some(projection.as_projected_objects(false)))
}

/// The plan for a request in a namespace of the cluster, if it concerns projected objects.
pub(crate) async fn decide(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    host: &HostNamespace,
    body: &Body,
) -> Result<Option<Box<Plan>>, Refusal> {
    let Some(projection) =
        Projection::of(request).filter(|projection| request.namespace() == Some(projection.namespace))
    else {
        return Ok(None);
    };
    if request.has_watch_prefix() || request.subresource().is_some() {
        return Ok(None);
    }
    match (request.verb(), request.name()) {
        (Verb::List | Verb::Watch, None) => {}
        (Verb::List | Verb::Watch | Verb::Get, Some(name)) if projection.names(name) => {}
        (Verb::List | Verb::Watch, Some(_)) if projection.what == Projected::AboutNodes => {}
        (Verb::Create, _) if matches!(projection.what, Projected::Named(_)) => {
            let name = received(call, &body.bytes())?.name()?.name;
            if !projection.names(&name) {
                return Ok(None);
            }
            return Err(Status::already_exists(request.group_resource(), &name).into());
        }
        (Verb::Update | Verb::Patch | Verb::Delete, Some(name)) if projection.names(name) => {
            return Err(forbidden(request, NOT_WRITTEN));
        }
        (Verb::Create | Verb::DeleteCollection, _) if projection.what == Projected::NamedLikeNodes => {
            return Err(forbidden(request, NOT_WRITTEN));
        }
        _ => return Ok(None),
    }
    Box::pin(decide_about(call, request, host, &projection)).await.map(Some)
}

/// A read of projected objects.
async fn decide_about(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    host: &HostNamespace,
    projection: &Projection,
) -> Result<Box<Plan>, Refusal> {
    allowed_in(call, request, host).await?;
    known_nodes(call).await?;
    let projected = projection.as_projected_objects(true);
    let listed = matches!(request.verb(), Verb::List | Verb::Watch);
    // Request only the namespace of the projected objects if all objects are projected, or if the name is known.
    let alone = !listed || projection.what == Projected::NamedLikeNodes;
    let from = segment(&projected.from);
    let path = ResourcePath { namespace: alone.then_some(from), ..request.path() }.build();
    let query = if listed { list_query(call, request, None)? } else { call.api.info.query().borrowed().into_owned() };
    let mut upstream = upstream::request(
        &call.api,
        call.api.info.method().clone(),
        &upstream::target(&path, &query),
        As::Agent,
        empty(),
    )?;
    upstream::readable(&call.api, &mut upstream)?;
    let transform = if listed {
        match list_transform(call, request, program(request), Filter::ByNamespace)? {
            // The host also counts objects that the client does not see.
            ResponseTransform::List { program, filter, seal, token, namespaces, .. } => {
                ResponseTransform::List { program, filter, seal, token, counted: false, namespaces }
            }
            watch => watch,
        }
    } else {
        ResponseTransform::Object { program: program(request), filter: Filter::ByNamespace, only: None }
    };
    let mut plan = Plan::new(&call.api, upstream, transform);
    plan.mapping = plan.mapping.with_requested_namespace(projected.to.clone());
    plan.projected = Some(projected);
    Ok(plan)
}

/// The request to send if the cluster has no such object of its own: an Event may be about a node.
pub(crate) async fn projected_fallback(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
) -> Result<Option<Box<Plan>>, Refusal> {
    let is_event = |projection: &Projection| {
        projection.what == Projected::AboutNodes && request.namespace() == Some(projection.namespace)
    };
    let Some(projection) = Projection::of(request).filter(is_event) else { return Ok(None) };
    if request.verb() != Verb::Get || request.subresource().is_some() {
        return Ok(None);
    }
    known_nodes(call).await?;
    let projected = projection.as_projected_objects(true);
    let path = request.path_with(Some(&segment(&projected.from)), None);
    let target = upstream::target(&path, call.api.info.query());
    let mut upstream = upstream::request(&call.api, Method::GET, &target, As::Agent, empty())?;
    upstream::readable(&call.api, &mut upstream)?;
    let transform = ResponseTransform::Object { program: program(request), filter: Filter::ByNamespace, only: None };
    let mut plan = Plan::new(&call.api, upstream, transform);
    plan.projected = Some(projected);
    Ok(Some(plan))
}

#[cfg(test)]
mod tests {
    use kube_wire::{RequestInfo, Target};

    use super::*;

    #[test]
    fn projected_objects_keep_their_namespace() {
        let projection = |path: &str| {
            let info = RequestInfo::parse(&Method::GET, path, None).unwrap();
            let Target::Resource(request) = info.target() else { panic!("{path} is a resource") };
            Projection::of(request).map(|projection| projection.namespace)
        };
        assert_eq!(projection("/apis/coordination.k8s.io/v1/leases"), Some("kube-node-lease"));
        assert_eq!(projection("/apis/events.k8s.io/v1/namespaces/a/events"), Some("default"));
        for path in ["/api/v1/services", "/api/v1/endpoints", "/apis/discovery.k8s.io/v1/endpointslices"] {
            assert_eq!(projection(path), Some("default"));
        }
        assert_eq!(projection("/api/v1/pods"), None);
    }
}

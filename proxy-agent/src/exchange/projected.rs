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
use rewrite::view::{Filter, Lending, Lent};
use rewrite::{HostNamespace, VirtualNamespace};

use super::body::Body;
use super::cluster_scoped::forbidden;
use super::plan::{As, Plan, program};
use super::{ApiRequest, namespaced};
use crate::refusal::Refusal;
use crate::translate::ResponseTransform;
use host_client::empty;

/// The projected objects of a resource. Their namespace has the same name on the host and in every virtual cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Projection {
    namespace: &'static str,
    what: Lent,
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
            ("coordination.k8s.io", "leases") => ("kube-node-lease", Lent::NamedLikeNodes),
            ("" | "events.k8s.io", "events") => ("default", Lent::AboutNodes),
            ("", "services" | "endpoints")
            | ("discovery.k8s.io", "endpointslices")
            | ("networking.k8s.io", "ipaddresses") => ("default", Lent::Named(API_SERVICE)),
            _ => return None,
        };
        Some(Self { namespace, what })
    }

    fn as_lending(self, only: bool) -> Lending {
        let (from, to) = (HostNamespace::new(self.namespace), VirtualNamespace::new(self.namespace));
        let what = self.what;
        Lending { from: from.expect("a literal label"), to: to.expect("a literal label"), what, only }
    }

    /// Whether every object with this name is projected.
    fn names(self, name: &str) -> bool {
        match self.what {
            Lent::NamedLikeNodes => true,
            Lent::AboutNodes => false,
            Lent::Named(projected) => projected == name,
        }
    }
}

impl ApiRequest<'_> {
    /// The projected objects in the response to a request for all namespaces.
    pub(super) async fn projected_everywhere(&self, request: &ResourceRequest<'_>) -> Result<Option<Lending>, Refusal> {
        let Some(projection) = Projection::of(request) else { return Ok(None) };
        self.known_nodes().await?;
        Ok(Some(projection.as_lending(false)))
    }

    /// The plan for a request in a namespace of the cluster, if it concerns projected objects.
    pub(super) async fn projected(
        &self,
        request: &ResourceRequest<'_>,
        host: &HostNamespace,
        body: &Body,
    ) -> Result<Option<Plan>, Refusal> {
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
            (Verb::List | Verb::Watch, Some(_)) if projection.what == Lent::AboutNodes => {}
            (Verb::Create, _) if matches!(projection.what, Lent::Named(_)) => {
                let name = self.object(&body.bytes())?.name()?.name;
                if !projection.names(&name) {
                    return Ok(None);
                }
                return Err(Status::already_exists(request.group_resource(), &name).into());
            }
            (Verb::Update | Verb::Patch | Verb::Delete, Some(name)) if projection.names(name) => {
                return Err(forbidden(request, NOT_WRITTEN));
            }
            (Verb::Create | Verb::DeleteCollection, _) if projection.what == Lent::NamedLikeNodes => {
                return Err(forbidden(request, NOT_WRITTEN));
            }
            _ => return Ok(None),
        }
        self.allowed_in(request, host).await?;
        self.known_nodes().await?;
        let lending = projection.as_lending(true);
        let listed = matches!(request.verb(), Verb::List | Verb::Watch);
        // Request only the namespace of the projected objects if all objects are projected, or if the name is known.
        let alone = !listed || projection.what == Lent::NamedLikeNodes;
        let from = namespaced::segment(&lending.from);
        let path = ResourcePath { namespace: alone.then_some(from), ..request.path() }.build();
        let query = if listed { self.list_query(request, None)? } else { self.info.query().borrowed().into_owned() };
        let mut upstream =
            self.upstream(self.info.method().clone(), &Self::target(&path, &query), As::Agent, empty())?;
        self.readable(&mut upstream)?;
        let transform = if listed {
            match self.list_transform(request, program(request), Filter::ByNamespace)? {
                // The host also counts objects that the client does not see.
                ResponseTransform::List { program, filter, seal, token, large_objects, .. } => {
                    ResponseTransform::List { program, filter, seal, token, counted: false, large_objects }
                }
                watch => watch,
            }
        } else {
            ResponseTransform::Object { program: program(request), filter: Filter::ByNamespace, only: None }
        };
        let mut plan = self.planned(request, upstream, transform);
        plan.mapping = plan.mapping.asking_for(lending.to.clone());
        plan.projected = Some(lending);
        Ok(Some(plan))
    }

    /// The request to send if the cluster has no such object of its own: an Event may be about a node.
    pub(super) async fn projected_fallback(&self, request: &ResourceRequest<'_>) -> Result<Option<Box<Plan>>, Refusal> {
        let is_event = |projection: &Projection| {
            projection.what == Lent::AboutNodes && request.namespace() == Some(projection.namespace)
        };
        let Some(projection) = Projection::of(request).filter(is_event) else { return Ok(None) };
        if request.verb() != Verb::Get || request.subresource().is_some() {
            return Ok(None);
        }
        self.known_nodes().await?;
        let lending = projection.as_lending(true);
        let path = request.path_with(Some(&namespaced::segment(&lending.from)), None);
        let target = Self::target(&path, self.info.query());
        let mut upstream = self.upstream(Method::GET, &target, As::Agent, empty())?;
        self.readable(&mut upstream)?;
        let transform =
            ResponseTransform::Object { program: program(request), filter: Filter::ByNamespace, only: None };
        let mut plan = self.planned(request, upstream, transform);
        plan.projected = Some(lending);
        Ok(Some(Box::new(plan)))
    }
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

//! Objects of the host that a virtual cluster shows read-only: Leases of nodes, Events about nodes, and the Service
//! `kubernetes` with its endpoints.
//!
//! | virtual namespace | shows | beside |
//! |---|---|---|
//! | `kube-node-lease` | the Leases of own nodes | nothing |
//! | `default` | Events about own nodes; Service, Endpoints and EndpointSlice `kubernetes` | its own |
//! | none | the IPAddress of that Service | those of its own Services |
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
use super::{Asked, namespaced};
use crate::refusal::Refusal;
use crate::translate::Show;
use host_client::empty;

/// What of a resource is lent. The namespace has the same name on the host and in every virtual cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Loan {
    namespace: &'static str,
    what: Lent,
}

/// Why a write is refused.
const NOT_WRITTEN: &str = "it belongs to the host cluster and is read-only here";

/// The Service of the API server, and its Endpoints and EndpointSlice (`pkg/controlplane/controller/kubernetesservice`,
/// `pkg/controlplane/reconcilers`).
const API_SERVICE: &str = "kubernetes";

// === impl Loan ===

impl Loan {
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

    fn lending(self, only: bool) -> Lending {
        let (from, to) = (HostNamespace::new(self.namespace), VirtualNamespace::new(self.namespace));
        let what = self.what;
        Lending { from: from.expect("a literal label"), to: to.expect("a literal label"), what, only }
    }

    /// Whether an object is lent by its name alone.
    fn names(self, name: &str) -> bool {
        match self.what {
            Lent::NamedLikeNodes => true,
            Lent::AboutNodes => false,
            Lent::Named(lent) => lent == name,
        }
    }
}

impl Asked<'_> {
    /// What is lent to a request over all namespaces.
    pub(super) async fn lent_everywhere(&self, request: &ResourceRequest<'_>) -> Result<Option<Lending>, Refusal> {
        let Some(loan) = Loan::of(request) else { return Ok(None) };
        self.known_nodes().await?;
        Ok(Some(loan.lending(false)))
    }

    /// The plan for a request in a namespace of the cluster, if it is about what is lent there.
    pub(super) async fn lent(
        &self,
        request: &ResourceRequest<'_>,
        host: &HostNamespace,
        body: &Body,
    ) -> Result<Option<Plan>, Refusal> {
        let Some(loan) = Loan::of(request).filter(|loan| request.namespace() == Some(loan.namespace)) else {
            return Ok(None);
        };
        if request.has_watch_prefix() || request.subresource().is_some() {
            return Ok(None);
        }
        match (request.verb(), request.name()) {
            (Verb::List | Verb::Watch, None) => {}
            (Verb::List | Verb::Watch | Verb::Get, Some(name)) if loan.names(name) => {}
            (Verb::List | Verb::Watch, Some(_)) if loan.what == Lent::AboutNodes => {}
            (Verb::Create, _) if matches!(loan.what, Lent::Named(_)) => {
                let name = self.object(&body.bytes())?.name()?.name;
                if !loan.names(&name) {
                    return Ok(None);
                }
                return Err(Status::already_exists(request.group_resource(), &name).into());
            }
            (Verb::Update | Verb::Patch | Verb::Delete, Some(name)) if loan.names(name) => {
                return Err(forbidden(request, NOT_WRITTEN));
            }
            (Verb::Create | Verb::DeleteCollection, _) if loan.what == Lent::NamedLikeNodes => {
                return Err(forbidden(request, NOT_WRITTEN));
            }
            _ => return Ok(None),
        }
        self.allowed_in(request, host).await?;
        self.known_nodes().await?;
        let lending = loan.lending(true);
        let listed = matches!(request.verb(), Verb::List | Verb::Watch);
        // Where nothing is beside what is lent, and where its name is known, only that is asked for.
        let alone = !listed || loan.what == Lent::NamedLikeNodes;
        let from = namespaced::segment(&lending.from);
        let path = ResourcePath { namespace: alone.then_some(from), ..request.path() }.build();
        let query = if listed { self.list_query(request, None)? } else { self.info.query().borrowed().into_owned() };
        let mut upstream =
            self.upstream(self.info.method().clone(), &Self::target(&path, &query), As::Agent, empty())?;
        self.readable(&mut upstream)?;
        let show = if listed {
            match self.list_show(request, program(request), Filter::ByNamespace)? {
                // The host's count is of what is not shown, too.
                Show::List { program, filter, seal, token, turns, .. } => {
                    Show::List { program, filter, seal, token, counted: false, turns }
                }
                watch => watch,
            }
        } else {
            Show::Object { program: program(request), filter: Filter::ByNamespace, only: None }
        };
        let mut plan = self.planned(request, upstream, show);
        plan.mapping = plan.mapping.asking_for(lending.to.clone());
        plan.lending = Some(lending);
        Ok(Some(plan))
    }

    /// What to ask instead of something that is not among the cluster's own: an Event may be one about a node.
    pub(super) async fn lent_instead(&self, request: &ResourceRequest<'_>) -> Result<Option<Box<Plan>>, Refusal> {
        let is_event = |loan: &Loan| loan.what == Lent::AboutNodes && request.namespace() == Some(loan.namespace);
        let Some(loan) = Loan::of(request).filter(is_event) else { return Ok(None) };
        if request.verb() != Verb::Get || request.subresource().is_some() {
            return Ok(None);
        }
        self.known_nodes().await?;
        let lending = loan.lending(true);
        let path = request.path_with(Some(&namespaced::segment(&lending.from)), None);
        let target = Self::target(&path, self.info.query());
        let mut upstream = self.upstream(Method::GET, &target, As::Agent, empty())?;
        self.readable(&mut upstream)?;
        let show = Show::Object { program: program(request), filter: Filter::ByNamespace, only: None };
        let mut plan = self.planned(request, upstream, show);
        plan.lending = Some(lending);
        Ok(Some(Box::new(plan)))
    }
}

#[cfg(test)]
mod tests {
    use kube_wire::{RequestInfo, Target};

    use super::*;

    #[test]
    fn what_is_lent_stays_where_it_is() {
        let loan = |path: &str| {
            let info = RequestInfo::parse(&Method::GET, path, None).unwrap();
            let Target::Resource(request) = info.target() else { panic!("{path} is a resource") };
            Loan::of(request).map(|loan| loan.namespace)
        };
        assert_eq!(loan("/apis/coordination.k8s.io/v1/leases"), Some("kube-node-lease"));
        assert_eq!(loan("/apis/events.k8s.io/v1/namespaces/a/events"), Some("default"));
        for path in ["/api/v1/services", "/api/v1/endpoints", "/apis/discovery.k8s.io/v1/endpointslices"] {
            assert_eq!(loan(path), Some("default"));
        }
        assert_eq!(loan("/api/v1/pods"), None);
    }
}

//! Requests in one namespace: the agent sends them as the caller, so the host's RBAC decides.

use http::Method;
use kube_wire::gvr::GroupResource;
use kube_wire::media::BodyType;
use kube_wire::name::SegmentName;
use kube_wire::{ResourceRequest, Status, Verb};
use rewrite::view::Filter;
use rewrite::{HostNamespace, VirtualNamespace};

use super::body::{Body, content_type};
use super::cluster_scoped::forbidden;
use super::host_error::Upstream;
use super::list::NOBODYS;
use super::plan::{After, As, Plan, program};
use super::review::Kind;
use super::{ApiRequest, mirrors, node_ports};
use crate::refusal::Refusal;
use crate::translate::{Proxied, ResponseTransform};
use host_client::empty;
use virtual_cluster::policy;
use virtual_cluster::shared::Moved;

const NAMESPACES: GroupResource<'_> = GroupResource { group: "", resource: "namespaces" };

impl ApiRequest<'_> {
    pub(super) async fn namespaced(&self, request: &ResourceRequest<'_>, body: &Body) -> Result<Plan, Refusal> {
        if !request.verb().is_read() && self.services.discovery.is_reserved(request.group_resource()) {
            return Err(forbidden(request, policy::HIDDEN));
        }
        let name = request.namespace().unwrap_or_default();
        let Ok(namespace) = VirtualNamespace::new(name) else { return self.nowhere(request, name) };
        // The host name belongs to another owner, so the virtual cluster has no such namespace.
        let Ok(host) = self.mapping.host(&namespace) else { return self.nowhere(request, name) };
        if self.mapping.member(host.as_ref()).is_some() {
            if let Some(kind) = Kind::of(request) {
                return self.review(request, kind, Some((&namespace, &host)), body).await;
            }
            if let Some(plan) = self.projected(request, &host, body).await? {
                return Ok(plan);
            }
            let identity = if self.may_read_to_the_end(request, &host).await { As::Agent } else { As::Caller };
            return self.present(request, &namespace, &host, identity, body).await;
        }
        if matches!(request.verb(), Verb::List | Verb::Watch | Verb::DeleteCollection) {
            // The response is an empty list or a watch without events, in the form of the host's version. No user can
            // have rights there, so the agent sends the request with its own identity. It filters all objects, unless
            // the namespace becomes one of this virtual cluster.
            return self.present(request, &namespace, &host, As::Agent, body).await;
        }
        if BodyType::of_patch(content_type(&self.headers)) == Ok(BodyType::ApplyYaml) && request.verb() == Verb::Patch {
            // It would create the object.
            return Err(Status::not_found(NAMESPACES, name).into());
        }
        Err(no_such(request, name).into())
    }

    /// Whether this is a read in a namespace that is being deleted, by a caller with the right to read in all
    /// namespaces. Such a right is a binding in the namespace, which is deleted a moment before the namespace itself.
    async fn may_read_to_the_end(&self, request: &ResourceRequest<'_>, host: &HostNamespace) -> bool {
        if !request.verb().is_read() || request.subresource().is_some() || !self.services.provisioner.is_ending(host) {
            return false;
        }
        let decision = self.outside(self.services.authz.check(&self.caller.host, &self.attributes(request))).await;
        decision.is_ok_and(|decision| decision.allowed)
    }

    /// A request in a namespace that the virtual cluster cannot have, and whose name must not go upstream. The caller
    /// has the right in all namespaces. An API server does not check that a namespace exists before it lists its
    /// objects.
    fn nowhere(&self, request: &ResourceRequest<'_>, namespace: &str) -> Result<Plan, Refusal> {
        // There are no objects to delete. The response to a deletecollection is an empty list, too.
        if !matches!(request.verb(), Verb::List | Verb::Watch | Verb::DeleteCollection) {
            return Err(no_such(request, namespace).into());
        }
        let segment = SegmentName::new(NOBODYS).expect("a constant segment");
        let query = self.list_query(request, None)?;
        let target = Self::target(&request.path_with(Some(&segment), None), &query);
        let mut upstream = self.upstream(Method::GET, &target, As::Agent, empty())?;
        self.readable(&mut upstream)?;
        Ok(Plan {
            request: upstream,
            transform: self.list_transform(request, program(request), Filter::ByNamespace)?,
            mapping: self.mapping.clone(),
            projected: None,
            otherwise: None,
            not_found: no_such(request, namespace),
            selecting: None,
            again: false,
            written: None,
            after: After::Nothing,
            moved: Moved::default(),
        })
    }

    /// The path on the host.
    fn path(
        request: &ResourceRequest<'_>,
        namespace: &VirtualNamespace,
        host: &HostNamespace,
    ) -> Result<String, Refusal> {
        let segment = segment(host);
        let name = request.path_name().map(|name| SegmentName::new(name.to_owned()));
        let name = name.transpose().map_err(|_| Refusal::from(no_such(request, namespace.as_str())))?;
        Ok(request.path_with(Some(&segment), name.as_ref()))
    }

    /// A request in an existing namespace, or a request that an API server serves even if the namespace does not exist.
    async fn present(
        &self,
        request: &ResourceRequest<'_>,
        namespace: &VirtualNamespace,
        host: &HostNamespace,
        identity: As,
        body: &Body,
    ) -> Result<Plan, Refusal> {
        let path = Self::path(request, namespace, host)?;
        let mapping = self.mapping.clone().asking_for(namespace.clone());
        let mut plan = match self.planned_at(request, (namespace, host), &path, identity, body).await {
            Ok(plan) => plan,
            Err(refusal) => {
                let upstream = Upstream { path: &path, identity, namespace: Some(host), mapping: &mapping };
                return Err(self.prefer_host_error(request, &upstream, &body.bytes(), refusal).await);
            }
        };
        plan.mapping = mapping;
        Ok(plan)
    }

    async fn planned_at(
        &self,
        request: &ResourceRequest<'_>,
        (namespace, host): (&VirtualNamespace, &HostNamespace),
        path: &str,
        identity: As,
        body: &Body,
    ) -> Result<Plan, Refusal> {
        let hidden = mirrors::hidden(request);
        mirrors::check(request, || self.object(&body.bytes())?.name())?;
        let listed = matches!(request.verb(), Verb::List | Verb::Watch | Verb::DeleteCollection);
        let query =
            if listed { self.list_query(request, hidden.as_ref())? } else { self.info.query().borrowed().into_owned() };
        let target = Self::target(path, &query);
        let has_node_ports = node_ports::concerns(request);
        if has_node_ports {
            self.learn_node_ports(request, path).await?;
        }
        let mut again = false;
        let mut upstream = match body {
            // There are no objects to delete, and the response is an empty list.
            _ if request.verb() == Verb::DeleteCollection && identity == As::Agent => {
                self.upstream(Method::GET, &target, identity, empty())?
            }
            // Unchanged, with any method.
            _ if is_opaque(request) => self.upstream(self.info.method().clone(), &target, identity, body.take())?,
            _ if request.verb() == Verb::Patch => {
                let patched = self.patch(request, Some(namespace), path, &body.bytes()).await?;
                again = patched.again;
                patched.request
            }
            _ => {
                let body = if request.verb().is_read() {
                    empty()
                } else {
                    self.body(request, Some(namespace), &body.bytes()).await?
                };
                self.upstream(self.info.method().clone(), &target, identity, body)?
            }
        };
        let transform = if request.is_proxy() {
            ResponseTransform::Proxied(Proxied::new(host.as_str(), namespace.as_str()))
        } else if is_opaque(request) {
            ResponseTransform::Verbatim
        } else {
            self.readable(&mut upstream)?;
            if listed {
                self.list_transform(request, program(request), Filter::ByNamespace)?
            } else {
                ResponseTransform::Object { program: program(request), filter: Filter::Everything, only: None }
            }
        };
        Ok(Plan {
            request: upstream,
            transform,
            mapping: self.mapping.clone(),
            projected: None,
            otherwise: self.projected_fallback(request).await?,
            not_found: no_such(request, namespace.as_str()),
            selecting: None,
            again,
            written: None,
            after: if has_node_ports { After::NodePorts } else { After::Nothing },
            moved: Moved::default(),
        })
    }
}

/// The name of a namespace as a segment of a path.
pub(super) fn segment(host: &HostNamespace) -> SegmentName<'static> {
    SegmentName::new(host.to_string()).expect("a DNS label is a path segment")
}

/// Whether the response is not a Kubernetes object.
pub(super) fn is_opaque(request: &ResourceRequest<'_>) -> bool {
    request.is_connect() || matches!(request.subresource(), Some("log" | "proxy"))
}

/// The response of an API server if the namespace, or the object in it, does not exist.
pub(super) fn no_such(request: &ResourceRequest<'_>, namespace: &str) -> Status {
    match (request.verb(), request.path_name()) {
        (Verb::Create, _) | (_, None) => Status::not_found(NAMESPACES, namespace),
        (_, Some(name)) => Status::not_found(request.group_resource(), name),
    }
}

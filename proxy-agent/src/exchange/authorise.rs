//! The phase `authorise`: whether the caller may make a request with this head.
//!
//! It runs before the agent reads the body, and before it sends anything else to the host with its own identity. So a
//! caller without the right costs two reviews, which are cached. The agent neither keeps nor parses anything that such
//! a caller sends.
//!
//! | request | decision | namespace |
//! |---|---|---|
//! | of an anonymous caller, for a resource | refused by the agent | |
//! | for a path that is not a resource | [`Authorizer::non_resource`](caller::Authorizer::non_resource) | root namespace |
//! | write in a namespace, or of a Namespace | a SubjectAccessReview, then the host again | that namespace |
//! | read in a namespace, `exec` and similar | the host, as the caller; the agent reads no body | that namespace |
//! | to the server of a pod or a service | a SubjectAccessReview, then the host again | that namespace |
//! | cluster-scoped, or in all namespaces | a SubjectAccessReview | root namespace |
//!
//! Some rights depend on more than the head: for example, whether an update creates the object, or whether an object
//! grants rights. The agent checks these later, as soon as it has the facts.

use kube_wire::status::Denied;
use kube_wire::{ResourceRequest, Status, Target, Verb};
use rewrite::{HostNamespace, VirtualNamespace};

use super::{ApiRequest, rbac};
use crate::refusal::Refusal;
use caller::Caller;
use caller::authz::Refused;
use caller::reviews::Attributes;

/// A request whose caller is authenticated, but not authorised yet.
pub(crate) struct Identified<'a>(ApiRequest<'a>);

/// The place on the host to which a request for a namespace goes.
enum Place {
    /// The namespace belongs to the virtual cluster.
    Member(HostNamespace),
    /// The index has no such namespace. Another agent may have just created it.
    Unknown(HostNamespace),
    /// The virtual cluster cannot have a namespace of that name.
    Nowhere,
}

// === impl Identified ===

impl<'a> Identified<'a> {
    pub(super) fn new(api_request: ApiRequest<'a>) -> Self {
        Self(api_request)
    }

    /// The caller.
    pub(super) fn caller(&self) -> &Caller {
        &self.0.caller
    }

    /// Continues the request if its caller is allowed to make it.
    pub(crate) async fn authorise(self) -> Result<ApiRequest<'a>, Refusal> {
        let Self(mut api_request) = self;
        match api_request.info.target() {
            Target::NonResource(request) => {
                api_request.services.authz.non_resource(&api_request.caller, request).await?;
            }
            Target::Resource(_) => api_request.authorise_resource().await?,
        }
        api_request.learn_custom().await?;
        Ok(api_request)
    }
}

// === impl ApiRequest ===

impl ApiRequest<'_> {
    async fn authorise_resource(&mut self) -> Result<(), Refusal> {
        let Some(request) = self.info.resource() else { return Ok(()) };
        if !self.caller.is_authenticated() {
            // Regardless of what the host grants to `system:unauthenticated`.
            return Err(self.denied(request).into());
        }
        let Some(name) = request.namespace() else { return self.authorise_cluster_scoped().await };
        match self.place(name) {
            Place::Member(host) => self.authorise_in(&host).await,
            Place::Unknown(host) => self.authorise_in_unknown(&host).await,
            Place::Nowhere => self.allowed_everywhere(request).await,
        }
    }

    fn place(&self, name: &str) -> Place {
        let host = VirtualNamespace::new(name).ok().and_then(|name| self.mapping.host(&name).ok());
        match host {
            Some(host) if self.mapping.knows(host.as_ref()) => match self.mapping.member(host.as_ref()) {
                Some(_) => Place::Member(host),
                None => Place::Nowhere,
            },
            Some(host) => Place::Unknown(host),
            None => Place::Nowhere,
        }
    }

    async fn authorise_cluster_scoped(&mut self) -> Result<(), Refusal> {
        self.learn_roles().await?;
        let Some(request) = self.info.resource() else { return Ok(()) };
        self.allowed_everywhere(request).await
    }

    /// In a namespace of the virtual cluster, the host decides, because the request goes there as the caller. For a
    /// request with a body, the agent asks for a review first, because it collects the body.
    async fn authorise_in(&mut self, host: &HostNamespace) -> Result<(), Refusal> {
        self.learn_roles().await?;
        let Some(request) = self.info.resource() else { return Ok(()) };
        if request.is_proxy() {
            // The host's refusal would contain host names, and cannot be distinguished from a response of the pod.
            return self.allowed_in(request, host).await;
        }
        if request.verb().is_read() || request.is_connect() {
            return Ok(());
        }
        let of_all = Attributes { name: "", ..self.attributes_in(request, host) };
        // One answer about all objects serves every name. The host reviews the name itself.
        let decision =
            self.outside(self.services.authz.check(&self.caller.host, &of_all)).await.map_err(Refused::from)?;
        if !decision.allowed {
            self.allowed_in(request, host).await?;
        }
        self.demand_undirected(request)
    }

    /// Looks up a namespace that the index does not have, if the caller may make the request there or in all
    /// namespaces.
    async fn authorise_in_unknown(&mut self, host: &HostNamespace) -> Result<(), Refusal> {
        let Some(request) = self.info.resource() else { return Ok(()) };
        let everywhere = self.allowed_everywhere(request).await;
        let may_look = everywhere.is_ok() || {
            let there = self.attributes_in(request, host);
            self.outside(self.services.authz.check(&self.caller.host, &there))
                .await
                .is_ok_and(|decision| decision.allowed)
        };
        if may_look && self.services.provisioner.look_for(host).await {
            self.mapping = self.cluster.mapping();
            if self.mapping.member(host.as_ref()).is_some() {
                return self.authorise_in(host).await;
            }
        }
        everywhere
    }

    /// The 403 response of an API server.
    fn denied(&self, request: &ResourceRequest<'_>) -> Status {
        let denied = Denied::Resource {
            user: self.caller.virtual_name(),
            verb: request.verb().as_str(),
            resource: request.group_resource(),
            subresource: request.subresource(),
            namespace: request.namespace(),
            name: request.name(),
        };
        Status::forbidden(denied, "")
    }

    /// Whether the caller may make the request, even if the host would decide this later.
    pub(super) async fn allowed(&self, request: &ResourceRequest<'_>) -> Result<(), Refusal> {
        match request.namespace().map(|name| self.place(name)) {
            Some(Place::Member(host)) => self.allowed_in(request, &host).await,
            _ => self.allowed_everywhere(request).await,
        }
    }

    /// Whether the caller may do this in a namespace, for writes that the agent sends itself.
    pub(super) async fn allowed_in(
        &self,
        request: &ResourceRequest<'_>,
        namespace: &HostNamespace,
    ) -> Result<(), Refusal> {
        let attributes = self.attributes_in(request, namespace);
        Ok(self.outside(self.services.authz.demand(&self.mapping, &self.caller, &attributes)).await?)
    }

    /// Whether the caller may do this in the whole cluster: RBAC of the root namespace decides.
    pub(super) async fn allowed_everywhere(&self, request: &ResourceRequest<'_>) -> Result<(), Refusal> {
        let role = (request.group(), request.resource()) == (rbac::GROUP, "clusterroles");
        let role = request.name().filter(|_| role).map(|name| self.host_role(name));
        let attributes = self.attributes(request);
        let attributes = Attributes { name: role.as_deref().unwrap_or(attributes.name), ..attributes };
        Ok(self.outside(self.services.authz.demand(&self.mapping, &self.caller, &attributes)).await?)
    }

    /// Whether the caller may also create the object that an apply would create. An API server checks this once it
    /// knows that the object does not exist (`withAuthorization` in apiserver's `handlers/update.go`).
    pub(super) async fn may_create(&self, request: &ResourceRequest<'_>) -> Result<(), Refusal> {
        let attributes = Attributes { verb: Verb::Create.as_str(), ..self.attributes(request) };
        Ok(self.outside(self.services.authz.demand(&self.mapping, &self.caller, &attributes)).await?)
    }

    /// The attributes of this request, in the cluster scope.
    pub(super) fn attributes<'r>(&'r self, request: &'r ResourceRequest<'_>) -> Attributes<'r> {
        Attributes {
            verb: request.verb().as_str(),
            group: request.group(),
            version: request.version(),
            resource: request.resource(),
            subresource: request.subresource().unwrap_or_default(),
            name: request.name().unwrap_or_default(),
            namespace: &self.cluster.root,
        }
    }

    /// The attributes of this request, in a namespace of the host.
    pub(super) fn attributes_in<'r>(
        &'r self,
        request: &'r ResourceRequest<'_>,
        namespace: &'r HostNamespace,
    ) -> Attributes<'r> {
        let attributes = self.attributes(request);
        // For RBAC, a Namespace is in the namespace of the same name, so the rules of that namespace apply, with the
        // host name.
        let name = if request.is_namespace() { namespace.as_str() } else { attributes.name };
        Attributes { name, namespace, ..attributes }
    }

    /// Loads the names of shared ClusterRoles, for requests that contain names of ClusterRoles.
    async fn learn_roles(&mut self) -> Result<(), Refusal> {
        let Target::Resource(request) = self.info.target() else { return Ok(()) };
        if matches!(request.group(), rbac::GROUP | "authorization.k8s.io") && !self.cluster.roles().is_synced() {
            self.known_roles().await?;
            self.mapping = self.cluster.mapping();
        }
        Ok(())
    }
}

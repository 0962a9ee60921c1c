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

use kube_wire::Target;
use request_traces::Parent;
use rewrite::HostNamespace;

use crate::exchange::api_request::NamespaceLocation;
use crate::exchange::call::Call;
use crate::exchange::classes::control_plane::demand_undirected;
use crate::exchange::custom::learn_custom;
use crate::exchange::kinds::RBAC;
use crate::exchange::rights::{allowed_everywhere, allowed_in};
use crate::exchange::synced::known_roles;
use crate::refusal::Refusal;
use caller::Caller;
use caller::authz::Refused;
use caller::reviews::Attributes;

/// A request whose caller is authenticated, but not authorised yet. Boxed from here on, because it is large, and passes
/// through all phases.
pub(crate) struct Authenticated<'a>(Box<Call<'a>>);

// === impl Authenticated ===

impl<'a> Authenticated<'a> {
    pub(super) fn new(call: Box<Call<'a>>) -> Self {
        Self(call)
    }

    /// The caller.
    pub(super) fn caller(&self) -> &Caller {
        &self.0.api.caller
    }

    /// Sets the span of the request, which is the parent of those of the next phases.
    pub(super) fn trace_below(&mut self, span: Option<Parent>) {
        self.0.trace = span;
    }

    /// Continues the request if its caller is allowed to make it.
    pub(crate) async fn authorise(self) -> Result<Box<Call<'a>>, Refusal> {
        let Self(mut call) = self;
        match call.api.info.target() {
            Target::NonResource(request) => {
                call.services.authz.non_resource(&call.api.caller, request).await?;
            }
            Target::Resource(_) => authorise_resource(&mut call).await?,
        }
        learn_custom(&mut call).await?;
        Ok(call)
    }
}

async fn authorise_resource(call: &mut Call<'_>) -> Result<(), Refusal> {
    let Some(request) = call.api.info.resource() else { return Ok(()) };
    if !call.api.caller.is_authenticated() {
        // Regardless of what the host grants to `system:unauthenticated`.
        return Err(call.api.denied(request).into());
    }
    let Some(name) = request.namespace() else { return authorise_cluster_scoped(call).await };
    match call.api.locate(name) {
        NamespaceLocation::Member(host) => authorise_in(call, &host).await,
        NamespaceLocation::Unknown(host) => Box::pin(authorise_in_unknown(call, &host)).await,
        NamespaceLocation::Nowhere => allowed_everywhere(call, request).await,
    }
}

async fn authorise_cluster_scoped(call: &mut Call<'_>) -> Result<(), Refusal> {
    learn_roles(call).await?;
    let Some(request) = call.api.info.resource() else { return Ok(()) };
    allowed_everywhere(call, request).await
}

/// In a namespace of the virtual cluster, the host decides, because the request goes there as the caller. For a
/// request with a body, the agent asks for a review first, because it collects the body.
async fn authorise_in(call: &mut Call<'_>, host: &HostNamespace) -> Result<(), Refusal> {
    learn_roles(call).await?;
    let Some(request) = call.api.info.resource() else { return Ok(()) };
    if request.is_proxy() {
        // The host's refusal would contain host names, and cannot be distinguished from a response of the pod.
        return allowed_in(call, request, host).await;
    }
    if request.verb().is_read() || request.is_connect() {
        return Ok(());
    }
    let of_all = Attributes { name: "", ..call.api.attributes_in(request, host) };
    // One answer about all objects serves every name. The host reviews the name itself.
    let decision =
        call.outside(call.services.authz.check(&call.api.caller.host, &of_all)).await.map_err(Refused::from)?;
    if !decision.allowed {
        allowed_in(call, request, host).await?;
    }
    demand_undirected(call, request)
}

/// Looks up a namespace that the index does not have, if the caller may make the request there or in all
/// namespaces.
async fn authorise_in_unknown(call: &mut Call<'_>, host: &HostNamespace) -> Result<(), Refusal> {
    let Some(request) = call.api.info.resource() else { return Ok(()) };
    let everywhere = allowed_everywhere(call, request).await;
    let may_look = everywhere.is_ok() || {
        let there = call.api.attributes_in(request, host);
        call.outside(call.services.authz.check(&call.api.caller.host, &there))
            .await
            .is_ok_and(|decision| decision.allowed)
    };
    if may_look && call.services.provisioner.look_for(host).await {
        call.api.mapping = call.api.cluster.mapping();
        if call.api.mapping.member(host.as_ref()).is_some() {
            return authorise_in(call, host).await;
        }
    }
    everywhere
}

/// Loads the names of shared ClusterRoles, for requests that contain names of ClusterRoles.
async fn learn_roles(call: &mut Call<'_>) -> Result<(), Refusal> {
    let Target::Resource(request) = call.api.info.target() else { return Ok(()) };
    if matches!(request.group(), RBAC | "authorization.k8s.io") && !call.api.cluster.roles().is_synced() {
        known_roles(call).await?;
        call.api.mapping = call.api.cluster.mapping();
    }
    Ok(())
}

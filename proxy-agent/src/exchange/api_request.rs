//! The facts about an authenticated request. They do not change after the phase `authorise`.

use std::sync::Arc;

use http::{HeaderMap, Method, header};
use kube_wire::media::BodyType;
use kube_wire::selector::LabelSelector;
use kube_wire::status::Denied;
use kube_wire::{RequestInfo, ResourceRequest, Status, Target};
use rewrite::name::CLUSTER_LABEL;
use rewrite::{HostNamespace, Mapping, Program, VirtualNamespace, schema};

use crate::exchange::kinds::{RBAC, is_opaque, program};
use crate::refusal::{DryRunScope, Refusal, Unmapped};
use caller::Caller;
use caller::reviews::Attributes;
use virtual_cluster::clusters::VirtualCluster;
use virtual_cluster::policy::Custom;
use virtual_cluster::shared;

/// A request whose caller is authenticated.
pub(crate) struct ApiRequest<'a> {
    pub(crate) cluster: &'a Arc<VirtualCluster>,
    /// One snapshot of the names, for the request and its response.
    pub(crate) mapping: Mapping,
    pub(crate) caller: Caller,
    pub(crate) info: RequestInfo<'a>,
    /// The client's headers, without credentials.
    pub(crate) headers: HeaderMap,
    /// How the resource is served, if it is a custom one without namespaces.
    pub(super) custom: Option<Custom>,
}

/// The identity with which a request goes upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum As {
    /// The caller: the host's RBAC decides.
    Caller,
    /// The agent: the caller has been authorised in the root namespace.
    Agent,
}

/// How the body of a request is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyUse {
    /// It is an object or options, and is mapped.
    Mapped,
    /// The server of a pod or a service gets it unchanged.
    Passed,
    /// An API server does not read the body of such a request.
    Ignored,
}

/// The place on the host to which a request for a namespace goes.
pub(super) enum NamespaceLocation {
    /// The namespace belongs to the virtual cluster.
    Member(HostNamespace),
    /// The index has no such namespace. Another agent may have just created it.
    Unknown(HostNamespace),
    /// The virtual cluster cannot have a namespace of that name.
    Nowhere,
}

/// `TableOptions` in apimachinery's `pkg/apis/meta/v1/types.go`.
pub(super) const INCLUDE_OBJECT: &str = "includeObject";

// === impl ApiRequest ===

impl ApiRequest<'_> {
    /// The media type of the body.
    pub(super) fn content_type(&self) -> Option<&str> {
        self.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok())
    }

    /// The type of the patch.
    pub(super) fn patch_type(&self) -> Result<BodyType, Refusal> {
        BodyType::of_patch(self.content_type())
            .map_err(|error| Unmapped::refusal(Status::unsupported_media_type(error), DryRunScope::WithoutBody))
    }

    /// Whether the body is a patch of this type.
    pub(super) fn has_patch(&self, kind: BodyType) -> bool {
        BodyType::of_patch(self.content_type()).is_ok_and(|found| found == kind)
    }

    /// How the body of this request is used.
    pub(crate) fn body_use(&self) -> BodyUse {
        match self.info.target() {
            Target::Resource(request) if is_opaque(request) => BodyUse::Passed,
            Target::Resource(request) if !request.verb().is_read() => BodyUse::Mapped,
            _ => BodyUse::Ignored,
        }
    }

    /// Whether the response has no body, whatever its head says.
    pub(super) fn is_bodiless(&self) -> bool {
        self.info.method() == Method::HEAD && matches!(self.info.target(), Target::Resource(_))
    }

    /// Whether this is a request that changes nothing.
    pub(super) fn is_read(&self) -> bool {
        match self.info.target() {
            Target::Resource(request) => request.verb().is_read(),
            Target::NonResource(_) => true,
        }
    }

    /// Whether the client requests table rows without their objects. Other responses have no such objects.
    pub(super) fn wants_bare_rows(&self) -> bool {
        matches!(self.info.query().first(INCLUDE_OBJECT), Ok(Some(value)) if value == "None")
    }

    /// Whether the request is about objects that have other names on the host.
    pub(super) fn is_renamed(&self) -> bool {
        self.custom == Some(Custom::Renamed)
    }

    /// Whether the objects are of a kind that every API server has.
    pub(super) fn is_built_in(&self) -> bool {
        self.info.resource().is_some_and(|request| schema::kind_of(request.group(), request.resource()).is_some())
    }

    /// Whether the objects are CustomResourceDefinitions.
    pub(super) fn is_of_definitions(&self) -> bool {
        self.info.resource().is_some_and(|request| {
            shared::Kind::of(request.group_resource()) == Some(shared::Kind::CustomResourceDefinition)
        })
    }

    /// The places of names in the objects of the request.
    pub(super) fn program(&self, request: &ResourceRequest<'_>) -> Program {
        match self.custom {
            Some(Custom::Renamed) => schema::program_of_renamed(),
            Some(Custom::Read | Custom::Shared) => program(request).of_shared(),
            Some(Custom::Hidden) | None => program(request),
        }
    }

    /// The identity that writes the object. The agent has already authorised writes of the cluster's own RBAC objects.
    pub(super) fn acts_as(&self) -> As {
        let request = self.info.resource().map(|request| (request.group(), request.resource()));
        match request {
            Some((RBAC, "clusterroles" | "clusterrolebindings")) => As::Agent,
            _ if self.is_renamed() => As::Agent,
            _ => As::Caller,
        }
    }

    /// Where a namespace of this name is on the host.
    pub(super) fn locate(&self, name: &str) -> NamespaceLocation {
        let host = VirtualNamespace::new(name).ok().and_then(|name| self.mapping.host(&name).ok());
        match host {
            Some(host) if self.mapping.knows(host.as_ref()) => match self.mapping.member(host.as_ref()) {
                Some(_) => NamespaceLocation::Member(host),
                None => NamespaceLocation::Nowhere,
            },
            Some(host) => NamespaceLocation::Unknown(host),
            None => NamespaceLocation::Nowhere,
        }
    }

    /// The label of all namespaces and roles of the cluster.
    pub(super) fn own_label(&self) -> LabelSelector {
        let labels = [(CLUSTER_LABEL, self.cluster.name.as_str())];
        LabelSelector::from_labels(labels).expect("a label of ours and a DNS label")
    }

    /// The host's name for a ClusterRole. A name that no client can have created is returned unchanged, and no object
    /// on the host has it.
    pub(super) fn host_role(&self, name: &str) -> String {
        self.mapping.role(name).unwrap_or_else(|_| name.to_owned())
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

    /// The 403 response of an API server.
    pub(super) fn denied(&self, request: &ResourceRequest<'_>) -> Status {
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
}

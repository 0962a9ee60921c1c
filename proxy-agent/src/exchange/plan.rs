//! A plan: all decisions about a request.

use bytes::Bytes;
use http::Request;
use kube_wire::Status;
use kube_wire::selector::LabelSelector;
use rewrite::Mapping;
use rewrite::view::ProjectedObjects;

use crate::exchange::advertised::Advertised;
use crate::exchange::api_request::ApiRequest;
use crate::exchange::refusals::no_such;
use crate::translate::ResponseTransform;
use host_client::{RequestBody, empty};
use virtual_cluster::shared::Moved;

/// All decisions about a request.
pub(crate) struct Plan {
    /// The request for the host, with host names and the headers of the caller's identity.
    pub(crate) request: Request<RequestBody>,
    /// How the response is transformed for the client.
    pub(crate) transform: ResponseTransform,
    /// The mapping for the names in the response.
    pub(crate) mapping: Mapping,
    /// The projected objects in the response.
    pub(crate) projected: Option<ProjectedObjects>,
    /// The plan to carry out if the host responds with 404.
    pub(crate) otherwise: Option<Box<Self>>,
    /// The response if the object does not belong to the cluster.
    pub(crate) not_found: NotFound,
    /// The cluster roles that the client sees; `None` for all.
    pub(crate) selecting: Option<LabelSelector>,
    /// Whether the request is planned again after a conflict.
    pub(crate) replan: Replan,
    /// The RBAC objects of the cluster that the request writes.
    pub(crate) written: Option<WrittenRbac>,
    /// What the agent does after a successful response.
    pub(crate) after: After,
    /// The old and the new place of the overlay of a shared object.
    pub(crate) moved: Moved,
}

/// What does not exist for the client. Few responses say so, so the text is made only for those.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotFound {
    /// The object.
    Object,
    /// The object in its namespace, or the namespace.
    InNamespace,
    /// The path.
    Path,
}

/// Whether a request is planned again after a conflict (409).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Replan {
    /// The conflict is the response to the client.
    Never,
    /// The agent caused the conflict, by the version that it has added.
    AfterConflict,
    /// As before, unless the object still has the version of the last attempt. Then the conflict is another one, such
    /// as that of field managers, which no further attempt can solve.
    IfNewerThan(String),
}

/// What the agent does before the client gets a successful response.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// Nothing.
    Nothing,
    /// A namespace was created: write its mirrors.
    PostCreate,
    /// The labels of the Namespace at this path may have changed, so update what is enforced.
    Labelled(String),
    /// A namespace was created for an apply, which follows.
    FirstApply(FirstApply),
    /// A dry run of an apply that would create a namespace.
    DryRunApply,
    /// A Service was written, or was refused because one of its node ports is taken.
    NodePorts,
    /// An update of an existing shared object created the object for this cluster.
    Created,
    /// An update of a shared object removed it from this cluster. Respond with this body.
    Removed(Bytes),
    /// A document that lists resources: remove those of other clusters.
    Advertised(Advertised),
}

/// The apply that follows the creation of a namespace.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FirstApply {
    /// The virtual name.
    pub(super) name: String,
    /// Path and query, in host names.
    pub(super) target: String,
    pub(super) body: Bytes,
}

/// The RBAC objects that a request writes.
pub(crate) enum WrittenRbac {
    /// One or several ClusterRoles.
    Role,
    /// The ClusterRoleBinding of this name, which may be deleted by now.
    Binding(String),
    /// One or several ClusterRoleBindings; only the host knows which.
    Bindings,
}

// === impl Plan ===

impl Plan {
    /// The request for the host, which is sent once.
    pub(super) fn take_request(&mut self) -> Request<RequestBody> {
        std::mem::replace(&mut self.request, Request::new(empty()))
    }

    /// A plan that sends `upstream`, and transforms the response. It is boxed, because it is large, and passes through
    /// several functions.
    pub(super) fn new(api: &ApiRequest<'_>, upstream: Request<RequestBody>, transform: ResponseTransform) -> Box<Self> {
        Self::with_not_found(api, upstream, transform, NotFound::Object)
    }

    /// The same with another response if the host has nothing to show.
    pub(super) fn with_not_found(
        api: &ApiRequest<'_>,
        upstream: Request<RequestBody>,
        transform: ResponseTransform,
        not_found: NotFound,
    ) -> Box<Self> {
        Box::new(Self {
            request: upstream,
            transform,
            mapping: api.mapping.clone(),
            projected: None,
            otherwise: None,
            not_found,
            selecting: None,
            replan: Replan::Never,
            written: None,
            after: After::Nothing,
            moved: Moved::default(),
        })
    }
}

// === impl NotFound ===

impl NotFound {
    /// The 404 response to this request.
    pub(crate) fn status(self, api: &ApiRequest<'_>) -> Status {
        match (self, api.info.resource()) {
            (Self::Object, Some(request)) => {
                Status::not_found(request.group_resource(), request.path_name().unwrap_or_default())
            }
            (Self::InNamespace, Some(request)) => no_such(request, request.namespace().unwrap_or_default()),
            (Self::Path, _) | (_, None) => Status::path_not_found(),
        }
    }
}

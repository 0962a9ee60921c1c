//! A plan: all decisions about a request.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, header};
use kube_wire::gvr::GroupKind;
use kube_wire::media::Accept;
use kube_wire::query::Query;
use kube_wire::selector::LabelSelector;
use kube_wire::status::Reason;
use kube_wire::{ResourceRequest, Status, Target};
use protocol::stream::PREFIX;
use rewrite::view::Lending;
use rewrite::{Mapping, Program, ProtoProgram, schema};

use super::ApiRequest;
use super::apply_namespace::FirstApply;
use super::rbac::{GROUP, Written};
use super::shared::Advertised;
use crate::refusal::{DryRunScope, Refusal, Unmapped};
use crate::translate::ResponseTransform;
use host_client::RequestBody;
use virtual_cluster::shared::{self, Moved};

/// All decisions about a request.
pub(crate) struct Plan {
    /// The request for the host, with host names and the headers of the caller's identity.
    pub(crate) request: Request<RequestBody>,
    /// How the response is transformed for the client.
    pub(crate) transform: ResponseTransform,
    /// The mapping for the names in the response.
    pub(crate) mapping: Mapping,
    /// The projected objects in the response.
    pub(crate) projected: Option<Lending>,
    /// The plan to carry out if the host responds with 404.
    pub(crate) otherwise: Option<Box<Self>>,
    /// The response if the object does not belong to the cluster.
    pub(crate) not_found: Status,
    /// The cluster roles that the client sees; `None` for all.
    pub(crate) selecting: Option<LabelSelector>,
    /// Whether the agent caused a conflict, so that the request is planned again.
    pub(crate) again: bool,
    /// The RBAC objects of the cluster that the request writes.
    pub(crate) written: Option<Written>,
    /// What the agent does after a successful response.
    pub(crate) after: After,
    /// The old and the new place of the overlay of a shared object.
    pub(crate) moved: Moved,
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
    Tried,
    /// A Service was written, or was refused because one of its node ports is taken.
    NodePorts,
    /// An update of an existing shared object created the object for this cluster.
    Made,
    /// An update of a shared object removed it from this cluster. Respond with this body.
    Gone(Bytes),
    /// A document that lists resources: remove those of other clusters.
    Advertised(Advertised),
}

/// The identity with which a request goes upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum As {
    /// The caller: the host's RBAC decides.
    Caller,
    /// The agent: the caller has been authorised in the root namespace.
    Agent,
}

/// Headers of a client's request that go upstream. All others concern credentials, connections or proxies, and are
/// dropped. Requests to the server of a pod or a service keep more: see [`is_end_to_end`].
const KEPT: [HeaderName; 7] = [
    header::ACCEPT,
    header::CONTENT_TYPE,
    header::IF_NONE_MATCH,
    header::IF_MODIFIED_SINCE,
    header::USER_AGENT,
    HeaderName::from_static("audit-id"),
    HeaderName::from_static("traceparent"),
];

/// The maximum length of a URI, in bytes (`MAX_LEN` in the `uri` module of the crate `http`).
const LONGEST_TARGET: usize = 65_534;

/// `TableOptions` in apimachinery's `pkg/apis/meta/v1/types.go`.
const INCLUDE_OBJECT: &str = "includeObject";

/// The kind of the subresource `eviction` of a pod.
const EVICTION: &str = "Eviction";

// === impl ApiRequest ===

impl ApiRequest<'_> {
    /// The identity that writes the object. The agent has already authorised writes of the cluster's own RBAC objects.
    pub(super) fn acts_as(&self) -> As {
        let request = self.info.resource().map(|request| (request.group(), request.resource()));
        match request {
            Some((GROUP, "clusterroles" | "clusterrolebindings")) => As::Agent,
            _ if self.is_renamed() => As::Agent,
            _ => As::Caller,
        }
    }

    /// A request upstream. `target` is in host names.
    pub(super) fn upstream(
        &self,
        method: Method,
        target: &str,
        identity: As,
        body: RequestBody,
    ) -> Result<Request<RequestBody>, Refusal> {
        let mut headers = self.kept();
        if identity == As::Caller {
            self.caller.host.write(&mut headers);
        }
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = uri(target)?;
        *request.headers_mut() = headers;
        Ok(request)
    }

    /// The headers that go upstream, with an `Accept` that the engine understands.
    fn kept(&self) -> HeaderMap {
        if self.info.resource().is_some_and(ResourceRequest::is_proxy) {
            let kept = self.headers.iter().filter(|(name, _)| is_end_to_end(name));
            return kept.map(|(name, value)| (name.clone(), value.clone())).collect();
        }
        let mut headers = HeaderMap::new();
        for name in KEPT {
            for value in self.headers.get_all(&name) {
                headers.append(name.clone(), value.clone());
            }
        }
        headers
    }

    /// Replaces `Accept` by its JSON part, or by its protobuf part if there is no other and the engine can read such
    /// objects. Also requests the objects of table rows. The response can then be mapped.
    pub(super) fn readable(&self, request: &mut Request<RequestBody>) -> Result<(), Refusal> {
        let accept = self.headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let accept = Accept::parse(accept);
        let only = match (accept.json_only(), self.info.target()) {
            (Err(_), Target::Resource(resource)) if self.program(resource).has_protobuf() => accept.protobuf_only(),
            (json, _) => json,
        };
        let only = only.map_err(|error| Unmapped::refusal(Status::not_acceptable(error), DryRunScope::WithoutBody))?;
        let value = HeaderValue::from_str(only.header())
            .map_err(|_| Refusal::from(Status::bad_request("the Accept header cannot be read")))?;
        request.headers_mut().insert(header::ACCEPT, value);
        if self.wants_bare_rows() {
            let mut query = Query::new(request.uri().query().unwrap_or_default());
            query.set(INCLUDE_OBJECT, "Metadata");
            let target = Self::target(request.uri().path(), &query);
            *request.uri_mut() = uri(&target)?;
        }
        Ok(())
    }

    /// Whether the client requests table rows without their objects. Other responses have no such objects.
    pub(super) fn wants_bare_rows(&self) -> bool {
        matches!(self.info.query().first(INCLUDE_OBJECT), Ok(Some(value)) if value == "None")
    }

    /// The path, followed by the query if there is one.
    pub(super) fn target(path: &str, query: &Query<'_>) -> String {
        if query.is_empty() { path.to_owned() } else { format!("{path}?{}", query.as_str()) }
    }
}

/// An upstream target. It may be longer than the client's, because host names are longer and the agent adds parameters.
pub(super) fn uri(target: &str) -> Result<Uri, Refusal> {
    target.parse().map_err(|_| {
        Refusal::from(if target.len() > LONGEST_TARGET {
            let message = format!("the request target with host names has more than {LONGEST_TARGET} bytes");
            Status::failure(414, Reason::Other("".into()), message)
        } else {
            Status::bad_request("the request target is not a path")
        })
    })
}

/// Whether an API server forwards a header to the server of a pod (`httputil.ReverseProxy`, behind `WithAuthentication`
/// and `WithImpersonation` in apiserver's `pkg/endpoints/filters`). It does not forward headers about one connection
/// (RFC 9110 section 7.6.1), the caller's credentials, and headers by which trusted proxies name the caller. It makes a
/// new handshake.
fn is_end_to_end(name: &HeaderName) -> bool {
    const NEVER: [&str; 12] = [
        "authorization",
        "connection",
        "expect",
        "host",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    ];
    let name = name.as_str();
    !NEVER.contains(&name)
        && !["impersonate-", "sec-websocket-", "x-remote-", PREFIX].iter().any(|prefix| name.starts_with(prefix))
}

/// The places of names in the objects of a request.
pub(super) fn program(request: &ResourceRequest<'_>) -> Program {
    let program = match kind(request) {
        Some((group, version, kind)) => schema::program_for(group, version, kind),
        None => schema::program_of_any(),
    };
    if shared::Kind::of(request.group_resource()).is_some() { program.of_shared() } else { program }
}

/// The same for an object in protobuf whose `apiVersion` is `api_version`. `None` if its schema is not known.
pub(super) fn proto_program(request: &ResourceRequest<'_>, api_version: &str) -> Option<ProtoProgram> {
    let (group, version, kind) = kind(request)?;
    // The one subresource that takes two versions (`AcceptsGroupVersion` in pkg/registry/core/pod/storage/eviction.go).
    let version = if kind == EVICTION { api_version.strip_prefix("policy/").unwrap_or(version) } else { version };
    schema::proto_program_for(group, version, kind)
}

/// The kind of the objects of a request, as Kubernetes names it in a validation error. For custom resources, only the
/// plural is known without a request to the host.
pub(super) fn group_kind<'a>(request: &'a ResourceRequest<'_>) -> GroupKind<'a> {
    let (group, _, name) = kind(request).unwrap_or((request.group(), request.version(), request.resource()));
    GroupKind { group, kind: schema::kind_of(group, name).unwrap_or(name) }
}

/// Group, version, and the resource or kind of the objects of a request.
fn kind<'a>(request: &'a ResourceRequest<'_>) -> Option<(&'a str, &'a str, &'a str)> {
    match request.subresource() {
        None | Some("status" | "resize" | "ephemeralcontainers" | "finalize" | "approval") => {
            Some((request.group(), request.version(), request.resource()))
        }
        Some("binding") => Some(("", "v1", "Binding")),
        Some("token") => Some(("authentication.k8s.io", "v1", "TokenRequest")),
        Some("eviction") => Some(("policy", "v1", EVICTION)),
        Some("scale") => Some(("autoscaling", "v1", "Scale")),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pods_own_server_gets_what_is_meant_for_it() {
        let passes = |name: &'static str| is_end_to_end(&HeaderName::from_static(name));
        for name in
            ["accept-encoding", "cookie", "content-length", "origin", "range", "x-forwarded-for", "x-request-id"]
        {
            assert!(passes(name), "{name}");
        }
        for name in ["authorization", "impersonate-user", "x-remote-user", "x-atoll-cluster", "te", "sec-websocket-key"]
        {
            assert!(!passes(name), "{name}");
        }
    }
}

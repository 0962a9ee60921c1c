//! What a plan is: everything that was decided about a request.

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

use super::Asked;
use super::apply_namespace::FirstApply;
use super::rbac::{GROUP, Written};
use super::shared::Advertised;
use crate::refusal::{Ask, Refusal, Unmapped};
use crate::translate::Show;
use host_client::RequestBody;
use virtual_cluster::shared::{self, Moved};

/// Everything that was decided.
pub(crate) struct Plan {
    /// In host names, with the identity it goes upstream as.
    pub(crate) request: Request<RequestBody>,
    /// How the answer is shown.
    pub(crate) show: Show,
    /// The names that the answer is shown with.
    pub(crate) mapping: Mapping,
    /// What the host lends to the answer.
    pub(crate) lending: Option<Lending>,
    /// What is done instead if there is no such object.
    pub(crate) otherwise: Option<Box<Self>>,
    /// What is said of an object that is not the cluster's.
    pub(crate) not_found: Status,
    /// What is shown of cluster roles, if not all.
    pub(crate) selecting: Option<LabelSelector>,
    /// Whether a conflict is ours: the request is planned anew.
    pub(crate) again: bool,
    /// What is written of the cluster's RBAC.
    pub(crate) written: Option<Written>,
    /// What follows a success.
    pub(crate) after: After,
    /// Where the overlay of a shared object is stored, and was.
    pub(crate) moved: Moved,
}

/// What the agent does before the client gets a successful response.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// Nothing.
    Nothing,
    /// A namespace was made: it gets its mirrors.
    Birth,
    /// The labels of the Namespace at this path may have changed, so update what is enforced.
    Labelled(String),
    /// A namespace was created for an apply, which follows.
    FirstApply(FirstApply),
    /// A dry run of an apply that would create a namespace.
    Tried,
    /// A Service was written, or could not be because a node port of it is taken.
    NodePorts,
    /// What others had was updated, and so there is an object more in this cluster.
    Made,
    /// What others have was updated, and so it is gone in this cluster: what is said of that.
    Gone(Bytes),
    /// A document that tells of resources: those of others are left out.
    Advertised(Advertised),
}

/// As whom a request goes upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum As {
    /// The host's RBAC decides.
    Caller,
    /// Authorised in the root namespace already.
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

/// What the subresource `eviction` of a pod takes.
const EVICTION: &str = "Eviction";

// === impl Asked ===

impl Asked<'_> {
    /// As whom an object is written: of what is the cluster's own RBAC, the agent has asked what the caller may.
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
    /// objects; and asks for the objects of table rows. What comes back can then be mapped.
    pub(super) fn readable(&self, request: &mut Request<RequestBody>) -> Result<(), Refusal> {
        let accept = self.headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let accept = Accept::parse(accept);
        let only = match (accept.json_only(), self.info.target()) {
            (Err(_), Target::Resource(resource)) if self.program(resource).has_protobuf() => accept.protobuf_only(),
            (json, _) => json,
        };
        let only = only.map_err(|error| Unmapped::refusal(Status::not_acceptable(error), Ask::WithoutBody))?;
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

    /// Whether tables are to come without their objects. (Other answers have none to leave out.)
    pub(super) fn wants_bare_rows(&self) -> bool {
        matches!(self.info.query().first(INCLUDE_OBJECT), Ok(Some(value)) if value == "None")
    }

    /// The path with a query behind it, if there is one.
    pub(super) fn target(path: &str, query: &Query<'_>) -> String {
        if query.is_empty() { path.to_owned() } else { format!("{path}?{}", query.as_str()) }
    }
}

/// An upstream target. It may be longer than the client's, because host names are longer, and parameters are added.
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

/// Headers that an API server passes on to the server of a pod (`httputil.ReverseProxy`, behind `WithAuthentication` and
/// `WithImpersonation` in apiserver's `pkg/endpoints/filters`): all but those about one connection (RFC 9110 section
/// 7.6.1), the caller's credentials, and those by which it trusts others to name the caller. Handshakes are done again.
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

/// The same for an object in protobuf that says it is of `api_version`. Nothing where the schema is not known.
pub(super) fn proto_program(request: &ResourceRequest<'_>, api_version: &str) -> Option<ProtoProgram> {
    let (group, version, kind) = kind(request)?;
    // The one subresource that takes two versions (`AcceptsGroupVersion` in pkg/registry/core/pod/storage/eviction.go).
    let version = if kind == EVICTION { api_version.strip_prefix("policy/").unwrap_or(version) } else { version };
    schema::proto_program_for(group, version, kind)
}

/// The kind of the objects of a request, as Kubernetes names it when one of them is invalid. Of custom resources only the
/// plural is known without asking.
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

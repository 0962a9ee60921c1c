//! What the path of a request says about its objects.

use kube_wire::ResourceRequest;
use kube_wire::gvr::GroupKind;
use kube_wire::name::SegmentName;
use rewrite::{HostNamespace, Program, ProtoProgram, schema};

use virtual_cluster::shared;

/// The group of RBAC's kinds.
pub(super) const RBAC: &str = "rbac.authorization.k8s.io";

/// The kind of the subresource `eviction` of a pod.
const EVICTION: &str = "Eviction";

/// Kinds that contain a pod specification, and so the guard.
const GUARDED: [(&str, &str); 9] = [
    ("", "pods"),
    ("", "podtemplates"),
    ("", "replicationcontrollers"),
    ("apps", "daemonsets"),
    ("apps", "deployments"),
    ("apps", "replicasets"),
    ("apps", "statefulsets"),
    ("batch", "cronjobs"),
    ("batch", "jobs"),
];

/// Whether the objects contain a pod specification.
pub(super) fn is_guarded(request: &ResourceRequest<'_>) -> bool {
    GUARDED.contains(&(request.group(), request.resource()))
}

/// Whether the response is not a Kubernetes object.
pub(super) fn is_opaque(request: &ResourceRequest<'_>) -> bool {
    request.is_connect() || matches!(request.subresource(), Some("log" | "proxy"))
}

/// The name of a namespace as a segment of a path.
pub(super) fn segment(host: &HostNamespace) -> SegmentName<'static> {
    SegmentName::new(host.to_string()).expect("a DNS label is a path segment")
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

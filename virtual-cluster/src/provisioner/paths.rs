//! Paths on the host.

use kube_wire::name::SegmentName;
use kube_wire::request_info::ResourcePath;
use rewrite::HostNamespace;

use crate::namespaces;

/// All RoleBindings of the host.
pub(super) const ALL_BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/rolebindings";
/// All Roles of the host.
pub(super) const ALL_ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/roles";
/// SubjectAccessReviews.
pub(super) const REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

/// One Namespace.
pub(super) fn namespace(host: &HostNamespace) -> String {
    format!("{}/{host}", namespaces::PATH)
}

/// The RoleBindings in a namespace.
pub(super) fn bindings(host: &HostNamespace) -> String {
    format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{host}/rolebindings")
}

/// One RoleBinding; `None` if no object can have this name. Names of RBAC objects may need escapes.
pub(super) fn binding(host: &HostNamespace, name: &str) -> Option<String> {
    let path = ResourcePath {
        namespace: Some(SegmentName::new(host.as_str()).ok()?),
        name: Some(SegmentName::new(name).ok()?),
        ..ResourcePath::new("rbac.authorization.k8s.io", "v1", "rolebindings")
    };
    Some(path.build())
}

/// The Roles in a namespace.
pub(super) fn roles(host: &HostNamespace) -> String {
    format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{host}/roles")
}

/// One Role, whose name needs no escapes.
pub(super) fn role(host: &HostNamespace, name: &str) -> String {
    format!("{}/{name}", roles(host))
}

/// One ClusterRole, whose name needs no escapes.
pub(super) fn cluster_role(name: &str) -> String {
    format!("/apis/rbac.authorization.k8s.io/v1/clusterroles/{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped() {
        let host = HostNamespace::new("edge-vc").unwrap();
        let path = binding(&host, "atoll:crb:a b?").unwrap();
        assert!(path.starts_with(&bindings(&host)) && path.ends_with("/atoll:crb:a%20b%3F"), "{path}");
        assert_eq!(binding(&host, ".."), None);
    }
}

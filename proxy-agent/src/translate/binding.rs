//! Turns errors about a RoleBinding in the root namespace into errors about the ClusterRoleBinding that it represents.

use kube_wire::Status;

/// The names of the resource and of the kind in messages, with the group.
const NAMES: [(&str, &str); 2] = [
    ("rolebindings.rbac.authorization.k8s.io", "clusterrolebindings.rbac.authorization.k8s.io"),
    ("RoleBinding.rbac.authorization.k8s.io", "ClusterRoleBinding.rbac.authorization.k8s.io"),
];

/// The Status with the names of ClusterRoleBindings.
pub(crate) fn as_cluster_binding(mut status: Status) -> Status {
    for (host, shown) in NAMES {
        // A message first names its object. The rest may quote what a client wrote.
        if !status.message.contains(shown) {
            status.message = status.message.replacen(host, shown, 1);
        }
    }
    if let Some(details) = &mut status.details {
        match &*details.kind {
            "rolebindings" => "clusterrolebindings".clone_into(&mut details.kind),
            "RoleBinding" => "ClusterRoleBinding".clone_into(&mut details.kind),
            _ => {}
        }
    }
    status
}

#[cfg(test)]
mod tests {
    use kube_wire::gvr::{GroupKind, GroupResource};

    use super::*;

    const GROUP: &str = "rbac.authorization.k8s.io";

    #[test]
    fn a_status_names_the_requested_resource() {
        let resource = |resource| GroupResource { group: GROUP, resource };
        let (host, shown) = (resource("rolebindings"), resource("clusterrolebindings"));
        assert_eq!(as_cluster_binding(Status::not_found(host, "b")), Status::not_found(shown, "b"));
        assert_eq!(as_cluster_binding(Status::already_exists(host, "b")), Status::already_exists(shown, "b"));
        let kind = |kind| GroupKind { group: GROUP, kind };
        let invalid = |name| Status::invalid(kind(name), "b", &[]);
        assert_eq!(as_cluster_binding(invalid("RoleBinding")), invalid("ClusterRoleBinding"));
        let other = Status::not_found(resource("clusterroles"), "b");
        assert_eq!(as_cluster_binding(other.clone()), other);
    }
}

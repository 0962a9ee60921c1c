//! Bindings of the host that grant a role to more users than its operator may expect.

use ops::config::Location;
use serde_json::Value;

use crate::check::weakness::{Check, Weakness};

/// Subjects that include users of virtual clusters or all users, and a description of these users. The agent has no
/// influence on them.
const EVERYBODY: [(&str, &str, &str); 4] = [
    ("Group", "system:authenticated", "every user and service account of every virtual cluster"),
    ("Group", "system:serviceaccounts", "every service account of every virtual cluster"),
    ("Group", "system:unauthenticated", "anybody who can connect to the host's API server, such as pods"),
    ("User", "system:anonymous", "anybody who can connect to the host's API server, such as pods"),
];

/// Bindings that each API server creates, and their subjects
/// (`plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go`). The role has the name of the binding.
const BUILT_IN: [(&str, &[&str]); 5] = [
    ("system:basic-user", &["system:authenticated"]),
    ("system:cluster-trust-bundle-discovery", &["system:serviceaccounts"]),
    ("system:discovery", &["system:authenticated"]),
    ("system:public-info-viewer", &["system:authenticated", "system:unauthenticated"]),
    ("system:service-account-issuer-discovery", &["system:serviceaccounts"]),
];

/// The binding with which kubeadm publishes the address and the CA of the cluster for nodes that join it
/// (`cmd/kubeadm/app/phases/bootstraptoken/clusterinfo`).
const KUBEADM_BINDING: (&str, &str) = ("kube-public", "kubeadm:bootstrap-signer-clusterinfo");

/// The role of kubelets. The Node authorizer restricts it to objects of each node.
const NODE_ROLE: &str = "system:node";

/// The weaknesses of a ClusterRoleBinding or a RoleBinding.
pub(super) fn weaknesses(location: Option<Location>, kind: &str, binding: &Value) -> Vec<Weakness> {
    let metadata = &binding["metadata"];
    let name = metadata["name"].as_str().unwrap_or_default();
    let namespace = metadata["namespace"].as_str();
    let role = binding["roleRef"]["name"].as_str().unwrap_or_default();
    let within = namespace.map(|name| format!("{name}/")).unwrap_or_default();
    let binds = |kind: &str, name: &str| {
        let mut subjects = binding["subjects"].as_array().into_iter().flatten();
        subjects.any(|subject| subject["kind"] == kind && subject["name"] == name)
    };
    let is_built_in = |group: &str| match namespace {
        None => BUILT_IN.iter().any(|(known, groups)| *known == name && *known == role && groups.contains(&group)),
        Some(namespace) => (namespace, name) == KUBEADM_BINDING && role == name,
    };
    let mut found = Vec::new();
    for (subject, group, users) in EVERYBODY {
        if binds(subject, group) && !is_built_in(group) {
            found.push(Weakness::at(
                Check::OpenBinding,
                location,
                format_args!("host: {kind} {within}{name} grants {role} to {group}: {users}"),
                "bind the role to the users, groups and service accounts that need it, by name",
            ));
        }
    }
    if namespace.is_none() && role == NODE_ROLE && binds("Group", "system:nodes") {
        found.push(Weakness::at(
            Check::NodeRole,
            location,
            format_args!("host: {kind} {name} lets every node read all Secrets, not only those of its pods"),
            "run kube-apiserver with --authorization-mode=Node,RBAC and --enable-admission-plugins=NodeRestriction, \
             and delete the binding",
        ));
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(kind: &str, namespace: Option<&str>, name: &str, role: &str, subjects: &[(&str, &str)]) -> Vec<String> {
        let subjects: Vec<_> = subjects.iter().map(|(kind, name)| json!({"kind": kind, "name": name})).collect();
        let binding = json!({
            "metadata": {"name": name, "namespace": namespace}, "roleRef": {"name": role}, "subjects": subjects,
        });
        let found = weaknesses(None, kind, &binding);
        found.into_iter().map(|weakness| format!("{} {}", weakness.check, weakness.problem.message())).collect()
    }

    #[test]
    fn bindings_for_all_users_are_reported() {
        for (kind, name, users) in EVERYBODY {
            let messages = found("ClusterRoleBinding", None, "open", "view", &[("User", "jane"), (kind, name)]);
            assert_eq!(
                messages,
                [format!("open-binding host: ClusterRoleBinding open grants view to {name}: {users}")]
            );
        }
        let messages = found("RoleBinding", Some("default"), "open", "view", &[("Group", "system:authenticated")]);
        assert!(messages[0].contains("RoleBinding default/open grants view"), "{messages:?}");
        for (kind, name) in [("User", "system:authenticated"), ("Group", "vc:a:system:authenticated"), ("Group", "x")] {
            assert_eq!(found("ClusterRoleBinding", None, "closed", "view", &[(kind, name)]), [""; 0]);
        }
    }

    #[test]
    fn built_in_bindings_are_recognised_by_all_fields() {
        let group = |name| ("Group", name);
        let everybody = [group("system:authenticated"), group("system:unauthenticated")];
        assert_eq!(
            found("ClusterRoleBinding", None, "system:public-info-viewer", "system:public-info-viewer", &everybody),
            [""; 0]
        );
        // One more subject, another role, another name, and a RoleBinding with the name of a ClusterRoleBinding.
        assert_eq!(found("ClusterRoleBinding", None, "system:discovery", "system:discovery", &everybody).len(), 1);
        assert_eq!(found("ClusterRoleBinding", None, "system:discovery", "view", &everybody[..1]).len(), 1);
        assert_eq!(found("ClusterRoleBinding", None, "discovery", "system:discovery", &everybody[..1]).len(), 1);
        assert_eq!(found("RoleBinding", Some("a"), "system:discovery", "system:discovery", &everybody[..1]).len(), 1);
        let anonymous = [("User", "system:anonymous")];
        let (namespace, name) = KUBEADM_BINDING;
        assert_eq!(found("RoleBinding", Some(namespace), name, name, &anonymous), [""; 0]);
        assert_eq!(found("RoleBinding", Some("a"), name, name, &anonymous).len(), 1);
    }

    #[test]
    fn bindings_of_the_node_role_are_reported() {
        let nodes = [("Group", "system:nodes")];
        let messages = found("ClusterRoleBinding", None, "all-nodes", "system:node", &nodes);
        assert!(
            messages[0].starts_with("node-role host: ClusterRoleBinding all-nodes lets every node"),
            "{messages:?}"
        );
        assert_eq!(found("ClusterRoleBinding", None, "rotation", "selfnodeclient", &nodes), [""; 0]);
    }
}

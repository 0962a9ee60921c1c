//! What the policies have in common.

use rewrite::name::CLUSTER_LABEL;
use serde_json::{Value, json};

use crate::gate::policy::{literal, variable};

/// `everywhere`: whether the caller may do the same in every namespace of the host. The host's control plane and its
/// administrators may. Nobody of a virtual cluster may, because its users have no rights but those of RoleBindings.
///
/// Admission does not tell an update from a patch, and RBAC does; either right is host-wide.
pub(super) fn everywhere() -> Value {
    variable(
        "everywhere",
        "(request.operation == 'UPDATE' ? ['update', 'patch'] : request.operation == 'DELETE' ? ['delete'] : ['create'])\
         .exists(verb, authorizer.group(request.resource.group).resource(request.resource.resource)\
         .subresource(request.?subResource.orValue('')).check(verb).allowed())",
    )
}

/// `through`: whether the request came through the endpoint of the cluster that `label` of its namespace names. Only the
/// agent gives the group that says so.
pub(super) fn through(label: &str) -> Value {
    let group = format!("'vc:' + namespaceObject.metadata.labels[{}] + ':system:authenticated'", literal(label));
    variable("through", &format!("({group}) in request.userInfo.groups"))
}

/// An annotation of the namespace that the object is in; empty if there is none.
pub(super) fn annotation(key: &str) -> String {
    format!("namespaceObject.metadata.?annotations[?{}].orValue('')", literal(key))
}

/// Objects in the namespaces of all virtual clusters.
pub(super) fn in_members(rules: &[Value]) -> Value {
    in_namespaces(CLUSTER_LABEL, rules)
}

/// Objects in namespaces that have this label.
pub(super) fn in_namespaces(label: &str, rules: &[Value]) -> Value {
    json!({
        "matchPolicy": "Equivalent", "objectSelector": {},
        "namespaceSelector": {"matchExpressions": [{"key": label, "operator": "Exists"}]},
        "resourceRules": rules,
    })
}

/// Objects wherever they are.
pub(super) fn anywhere(rules: &[Value]) -> Value {
    json!({"matchPolicy": "Equivalent", "objectSelector": {}, "namespaceSelector": {}, "resourceRules": rules})
}

//! Common parts of the policies.

use rewrite::name::CLUSTER_LABEL;
use serde_json::{Value, json};

use crate::admission_policies::policy::{literal, variable};

/// `everywhere`: whether the caller may do the same in all namespaces of the host. The host's control plane and its
/// administrators may. Users of virtual clusters may not, because they have only rights from RoleBindings.
///
/// Admission does not distinguish an update from a patch, but RBAC does. Either host-wide right is enough.
pub(super) fn everywhere() -> Value {
    variable(
        "everywhere",
        "(request.operation == 'UPDATE' ? ['update', 'patch'] : request.operation == 'DELETE' ? ['delete'] : ['create'])\
         .exists(verb, authorizer.group(request.resource.group).resource(request.resource.resource)\
         .subresource(request.?subResource.orValue('')).check(verb).allowed())",
    )
}

/// `through`: whether the request came through the endpoint of the cluster that `label` of its namespace names. Only
/// the agent sets this group.
pub(super) fn through(label: &str) -> Value {
    let group = format!("'vc:' + namespaceObject.metadata.labels[{}] + ':system:authenticated'", literal(label));
    variable("through", &format!("({group}) in request.userInfo.groups"))
}

/// An annotation of the object's namespace; empty if there is none.
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

/// All objects, namespaced or cluster-scoped.
pub(super) fn anywhere(rules: &[Value]) -> Value {
    json!({"matchPolicy": "Equivalent", "objectSelector": {}, "namespaceSelector": {}, "resourceRules": rules})
}

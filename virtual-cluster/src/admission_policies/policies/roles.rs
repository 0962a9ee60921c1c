//! The number of permissions that a Role may grant.

use rewrite::request::MAX_PERMISSIONS;
use serde_json::{Value, json};

use super::vocabulary::in_members;
use crate::admission_policies::policy::{rule, variable};

/// A Role may grant as many permissions as through the endpoint. Only a mutation can refuse it in time, because
/// kube-apiserver compares its rules with those of the caller between mutation and validation (`Create` in
/// pkg/registry/rbac/role/policybased/storage.go). The error message is the missing key of the look-up that fails.
pub(super) fn bounded() -> Value {
    // An empty list that is not `omitempty` (`rules`, `verbs`) is null in a policy.
    let list = |path: &str| format!("({path}.orValue(null) == null ? [] : {path}.value())");
    let length = |field: &str| format!("{}.size()", list(&format!("rule.?{field}")));
    // As `RuleLengths::permissions`. An overflow is an error, which refuses the request.
    let permissions = format!(
        "{}.map(rule, {verbs} * {} * {} * [1, {}].max() + {verbs} * {})",
        list("object.?rules"),
        length("apiGroups"),
        length("resources"),
        length("resourceNames"),
        length("nonResourceURLs"),
        verbs = length("verbs"),
    );
    let bound = format!(
        "variables.permissions.sum() <= {MAX_PERMISSIONS} ? [] : [JSONPatch{{op: 'add', path: '', value: \
         {{}}['a role must grant at most {MAX_PERMISSIONS} combinations of a verb, an API group, a resource and a name']}}]"
    );
    json!({
        "failurePolicy": "Fail",
        "reinvocationPolicy": "IfNeeded",
        "matchConstraints": in_members(&[rule("rbac.authorization.k8s.io", &["roles"], &["CREATE", "UPDATE"])]),
        "variables": [variable("permissions", &permissions)],
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": bound}}],
    })
}

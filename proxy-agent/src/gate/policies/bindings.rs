//! RoleBindings that look like Atoll's own.

use serde_json::{Value, json};

use super::vocabulary::{everywhere, in_members};
use crate::gate::policy::{literal, rule, validation};
use crate::root::{MIRROR_LABEL, MIRROR_PREFIX};

/// The copies of ClusterRoleBindings have a label and names of their own, by which clients do not see them and the agent
/// selects them. Somebody else's would be hidden, and the agent would have to read it. What has the label already may
/// lose it.
pub(super) fn own() -> Value {
    let (label, prefix) = (literal(MIRROR_LABEL), literal(MIRROR_PREFIX));
    let is_own = format!(
        "object.metadata.?labels[?{label}].hasValue() || object.metadata.?name.orValue('').startsWith({prefix})"
    );
    json!({
        "failurePolicy": "Fail",
        "matchConstraints":
            in_members(&[rule("rbac.authorization.k8s.io", &["rolebindings"], &["CREATE", "UPDATE"])]),
        "variables": [everywhere()],
        "validations": [validation(
            &format!("!({is_own}) || variables.everywhere"),
            &format!("the label {MIRROR_LABEL} and names that begin with {MIRROR_PREFIX} are reserved"),
        )],
    })
}

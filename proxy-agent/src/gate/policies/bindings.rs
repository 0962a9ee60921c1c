//! RoleBindings that look like Atoll's own.

use serde_json::{Value, json};

use super::vocabulary::{everywhere, in_members};
use crate::gate::policy::{literal, rule, validation};
use crate::root::{MIRROR_LABEL, MIRROR_PREFIX};

/// The copies of ClusterRoleBindings have a label and names of their own, by which clients do not see them and the agent
/// selects them. Somebody else's would be hidden, and the agent would have to read it. What has only one of the two may
/// exist from before this policy: it may lose the label, and with such a name its finalizers, or it could never go.
pub(super) fn own() -> Value {
    let (label, prefix) = (literal(MIRROR_LABEL), literal(MIRROR_PREFIX));
    let labelled = |object: &str| format!("{object}.metadata.?labels[?{label}].hasValue()");
    let (is_labelled, was_labelled) = (labelled("object"), labelled("oldObject"));
    let is_own = format!(
        "{is_labelled} || object.metadata.?name.orValue('').startsWith({prefix}) \
         && (oldObject == null || {was_labelled})"
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

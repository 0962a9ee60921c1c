//! RoleBindings that look like Atoll's own.

use rewrite::name::CLUSTER_LABEL;
use serde_json::{Value, json};

use super::vocabulary::{everywhere, in_members};
use crate::admission_policies::policy::{literal, rule, validation};
use crate::provisioner::{MIRROR_LABEL, MIRROR_PREFIX};

/// The agent recognises its copies of ClusterRoleBindings by a label and a prefix of the name, and hides them from
/// clients. It would also hide and read a RoleBinding of a client that has them. Its watch of the bindings in root
/// namespaces selects them by the label with the virtual cluster.
///
/// A RoleBinding from before this policy may have only one of the two. Clients can still remove the label, or change a
/// RoleBinding that has only the name: otherwise nobody could remove its finalizers, and it could not be deleted.
pub(super) fn own() -> Value {
    let (labels, prefix) = ([MIRROR_LABEL, CLUSTER_LABEL].map(literal).join(", "), literal(MIRROR_PREFIX));
    let labelled = |object: &str| format!("[{labels}].exists(key, {object}.metadata.?labels[?key].hasValue())");
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
            &format!(
                "the labels {MIRROR_LABEL} and {CLUSTER_LABEL}, and names that begin with {MIRROR_PREFIX}, are reserved"
            ),
        )],
    })
}

//! The right to attempt a grant, which a special group has in the root namespace.
//!
//! If a caller writes a ClusterRole or a ClusterRoleBinding, the agent makes a dry run as the caller with this
//! additional group. It shows whether the host lets the caller grant these rights. An object of that name never exists.

use host_client::api::HostApi;
use rewrite::{ClusterName, HostNamespace};
use serde_json::{Value, json};

use super::binding::{RBAC, Wanted};
use super::bindings::Bindings;
use super::names::INTERNAL_LABEL;
use super::paths;
use super::reconcile_error::{ReconcileError, is_already_there};
use caller::identity::{ATTEMPT, attempt_group};

/// The name of the group's Role and RoleBinding.
const ATTEMPTS_ROLE: &str = "atoll:attempts";

/// Ensures that the group has this right.
pub(super) async fn ensure_attempts(
    bindings: &Bindings<impl HostApi>,
    cluster: &ClusterName,
    root: &HostNamespace,
) -> Result<(), ReconcileError> {
    ensure_role(bindings.api(), root).await?;
    let subjects = json!([{"apiGroup": RBAC, "kind": "Group", "name": attempt_group(cluster)}]);
    let role_ref = json!({"apiGroup": RBAC, "kind": "Role", "name": ATTEMPTS_ROLE});
    bindings.ensure(root, &Wanted::internal(ATTEMPTS_ROLE, &subjects, role_ref)).await
}

async fn ensure_role(api: &impl HostApi, root: &HostNamespace) -> Result<(), ReconcileError> {
    let wanted = role(root);
    let found = match api.create(&paths::roles(root), &wanted).await {
        Ok(_) => return Ok(()),
        Err(error) if is_already_there(&error) => api.get(&paths::role(root, ATTEMPTS_ROLE)).await?,
        Err(error) => return Err(error.into()),
    };
    if found["rules"] != wanted["rules"] {
        api.update(&paths::role(root, ATTEMPTS_ROLE), &wanted).await?;
    }
    Ok(())
}

fn role(root: &HostNamespace) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"name": ATTEMPTS_ROLE, "namespace": root.as_str(), "labels": {INTERNAL_LABEL: "true"}},
        // An update of an object that does not exist is a creation, and requires both verbs.
        "rules": [{
            "verbs": ["create", "update"], "apiGroups": [RBAC], "resources": ["rolebindings", "roles"],
            "resourceNames": [ATTEMPT],
        }],
    })
}

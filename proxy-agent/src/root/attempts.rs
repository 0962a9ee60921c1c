//! The right to attempt a grant, for which a group of its own is bound in the root namespace.
//!
//! A caller who writes a ClusterRole or a ClusterRoleBinding is made a member of that group for one dry run, which says
//! whether the host lets it grant as much. No object of that name ever exists.

use rewrite::{ClusterName, HostNamespace};
use serde_json::{Value, json};

use super::binding::{RBAC, Wanted};
use super::{ATTEMPT, INTERNAL_LABEL, Root, Trouble, paths};
use crate::clusters::host_api::HostApi;
use crate::root::trouble::is_already_there;

/// The Role and the RoleBinding of the group.
pub(super) const ATTEMPTS: &str = "atoll:attempts";

/// The group on the host whose members may attempt grants in a virtual cluster. No client is in it: names of clients' groups
/// begin otherwise.
pub(crate) fn attempt_group(cluster: &ClusterName) -> String {
    format!("{ATTEMPT}:{cluster}")
}

// === impl Root ===

impl<A: HostApi> Root<A> {
    pub(super) async fn ensure_attempts(&self, cluster: &ClusterName, root: &HostNamespace) -> Result<(), Trouble> {
        self.ensure_role(root).await?;
        let subjects = json!([{"apiGroup": RBAC, "kind": "Group", "name": attempt_group(cluster)}]);
        let role_ref = json!({"apiGroup": RBAC, "kind": "Role", "name": ATTEMPTS});
        self.ensure_binding(root, &Wanted::internal(ATTEMPTS, &subjects, role_ref)).await
    }

    async fn ensure_role(&self, root: &HostNamespace) -> Result<(), Trouble> {
        let api = &self.shared.api;
        let wanted = role(root);
        let found = match api.create(&paths::roles(root), &wanted).await {
            Ok(_) => return Ok(()),
            Err(error) if is_already_there(&error) => api.get(&paths::role(root, ATTEMPTS)).await?,
            Err(error) => return Err(error.into()),
        };
        if found["rules"] != wanted["rules"] {
            api.update(&paths::role(root, ATTEMPTS), &wanted).await?;
        }
        Ok(())
    }
}

fn role(root: &HostNamespace) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"name": ATTEMPTS, "namespace": root.as_str(), "labels": {INTERNAL_LABEL: "true"}},
        // An update of what is not there is a creation, and needs both.
        "rules": [{
            "verbs": ["create", "update"], "apiGroups": [RBAC], "resources": ["rolebindings", "roles"],
            "resourceNames": [ATTEMPT],
        }],
    })
}

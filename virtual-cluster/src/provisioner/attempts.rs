//! The right to attempt a grant, which a special group has in the root namespace.
//!
//! If a caller writes a ClusterRole or a ClusterRoleBinding, the agent makes a dry run as the caller with this
//! additional group. It shows whether the host lets the caller grant these rights. An object of that name never exists.

use std::collections::HashSet;

use host_client::api::{ApiError, HostApi, Selection};
use rewrite::{ClusterName, HostNamespace};
use serde_json::{Value, json};

use super::binding::{RBAC, Wanted};
use super::bindings::Bindings;
use super::names::INTERNAL_LABEL;
use super::paths;
use super::present::Present;
use super::reconcile_error::{ReconcileError, is_already_there};
use caller::identity::{ATTEMPT, attempt_group};

/// The name of the group's Role and RoleBinding.
const ATTEMPTS_ROLE: &str = "atoll:attempts";

/// Ensures that the group has this right. `present` is what exists as wanted. `is_new` is whether the root namespace is new.
pub(super) async fn ensure_attempts(
    bindings: &Bindings<impl HostApi>,
    cluster: &ClusterName,
    root: &HostNamespace,
    is_new: bool,
    present: Present,
) -> Result<(), ReconcileError> {
    if !present.attempts_role {
        ensure_role(bindings.api(), root, is_new).await?;
    }
    if !present.attempts_binding {
        bindings.write(root, &binding(cluster), is_new).await?;
    }
    Ok(())
}

/// The RoleBinding of the group.
pub(super) fn binding(cluster: &ClusterName) -> Wanted {
    let subjects = json!([{"apiGroup": RBAC, "kind": "Group", "name": attempt_group(cluster)}]);
    let role_ref = json!({"apiGroup": RBAC, "kind": "Role", "name": ATTEMPTS_ROLE});
    Wanted::internal(ATTEMPTS_ROLE, &subjects, role_ref)
}

/// The namespaces in which the Role of the group exists as wanted. One list has those of all virtual clusters.
pub(super) async fn roots_with_role(api: &impl HostApi) -> Result<HashSet<HostNamespace>, ApiError> {
    let fields = format!("metadata.name={ATTEMPTS_ROLE}");
    let selection = Selection { labels: INTERNAL_LABEL.to_owned(), fields, ..Selection::default() };
    let mut pages = api.pages(paths::ALL_ROLES, &selection);
    let mut roots = HashSet::new();
    while let Some(page) = pages.next::<Value>().await? {
        for found in page {
            let root = found["metadata"]["namespace"].as_str().and_then(|name| HostNamespace::new(name).ok());
            if let Some(root) = root.filter(HostNamespace::is_root)
                && found["rules"] == role(&root)["rules"]
            {
                roots.insert(root);
            }
        }
    }
    Ok(roots)
}

async fn ensure_role(api: &impl HostApi, root: &HostNamespace, is_new: bool) -> Result<(), ReconcileError> {
    let (wanted, path) = (role(root), paths::role(root, ATTEMPTS_ROLE));
    let found = if is_new { None } else { found(api.get(&path).await)? };
    let found = match found {
        Some(found) => found,
        None => match api.create(&paths::roles(root), &wanted).await {
            Ok(_) => return Ok(()),
            Err(error) if is_already_there(&error) => api.get(&path).await?,
            Err(error) => return Err(error.into()),
        },
    };
    if found["rules"] != wanted["rules"] {
        api.update(&path, &wanted).await?;
    }
    Ok(())
}

fn found(read: Result<Value, ApiError>) -> Result<Option<Value>, ApiError> {
    match read {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
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

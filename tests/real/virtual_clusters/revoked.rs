//! The rights of a ClusterRoleBinding end with it in all namespaces, also if clients have created objects that delay
//! this.

use anyhow::ensure;
use atoll_tests::kubectl::CONDITION_TIMEOUT;
use atoll_tests::{Kubectl, Route, VirtualSite, eventually};
use serde_json::{Value, json};

use super::{BEIJING, Listed, namespace};

pub(super) const TRIALS: [Listed; 3] = [
    ("revoked_rights_end_in_an_ending_namespace", end_in_an_ending_namespace),
    ("revoked_rights_go_to_no_namesake", go_to_no_namesake),
    ("revoked_rights_end_in_spite_of_a_quota", end_in_spite_of_a_quota),
];

/// In a namespace that waits for a finalizer, objects can still be read and changed.
fn end_in_an_ending_namespace(site: &VirtualSite) -> anyhow::Result<()> {
    const NAME: &str = "revoked-ending";
    let admin = site.administrator(BEIJING, Route::Proxy)?;
    let jane = site.user(BEIJING, "revoked-jane")?;
    admin.ok_with(&["create", "-f", "-"], &namespace(NAME))?;
    admin.ok_with(&["create", "-f", "-"], &binding(NAME, "cluster-admin", &["revoked-jane"]))?;
    reads(&jane, "secrets", NAME)?;
    hold(&admin, NAME)?;
    reads(&jane, "secrets", NAME)?;
    admin.ok(&["delete", "clusterrolebinding", NAME])?;
    may_not_read(&jane, "secrets", "default")?;
    may_not_read(&jane, "secrets", NAME)?;
    // Other users keep their rights.
    ensure!(admin.ok(&["get", "configmaps", "-n", NAME, "-o", "name"])?.contains("held"));
    free(&admin, NAME)
}

/// The role of a RoleBinding cannot be changed, and no object can be created in a namespace that is being deleted. The
/// mirror of the old binding must not bind the new subjects to the old role.
fn go_to_no_namesake(site: &VirtualSite) -> anyhow::Result<()> {
    const NAME: &str = "revoked-namesake";
    let admin = site.administrator(BEIJING, Route::Proxy)?;
    let jane = site.user(BEIJING, "revoked-old")?;
    let joe = site.user(BEIJING, "revoked-new")?;
    admin.ok_with(&["create", "-f", "-"], &namespace(NAME))?;
    admin.ok_with(&["create", "-f", "-"], &binding(NAME, "cluster-admin", &["revoked-old"]))?;
    hold(&admin, NAME)?;
    reads(&jane, "secrets", NAME)?;
    admin.ok(&["delete", "clusterrolebinding", NAME])?;
    admin.ok_with(&["create", "-f", "-"], &binding(NAME, "view", &["revoked-new"]))?;
    reads(&joe, "configmaps", "default")?;
    // When the old subject has no rights there, the agent has finished its changes.
    may_not_read(&jane, "secrets", NAME)?;
    for namespace in [NAME, "default"] {
        let refused = joe.fails(&["get", "secrets", "-n", namespace])?;
        ensure!(refused.contains("(Forbidden)"), "{namespace}: {refused}");
    }
    admin.ok(&["delete", "clusterrolebinding", NAME])?;
    free(&admin, NAME)
}

/// A quota refuses each creation of a RoleBinding, also if one with this name exists.
fn end_in_spite_of_a_quota(site: &VirtualSite) -> anyhow::Result<()> {
    const NAME: &str = "revoked-quota";
    let admin = site.administrator(BEIJING, Route::Proxy)?;
    let jane = site.user(BEIJING, "revoked-removed")?;
    let joe = site.user(BEIJING, "revoked-kept")?;
    admin.ok_with(&["create", "-f", "-"], &namespace(NAME))?;
    admin.ok_with(&["create", "-f", "-"], &binding(NAME, "cluster-admin", &["revoked-removed", "revoked-kept"]))?;
    let none = "--hard=count/rolebindings.rbac.authorization.k8s.io=0";
    admin.ok(&["create", "quota", "none", none, "-n", NAME])?;
    eventually(CONDITION_TIMEOUT, || {
        let create = ["create", "rolebinding", "refused", "--clusterrole=view", "--user=a", "--dry-run=server"];
        let refused = admin.fails(&[&create[..], &["-n", NAME]].concat())?;
        // Wait until the host has computed the usage.
        ensure!(refused.contains("exceeded quota"), "{refused}");
        Ok(())
    })?;
    for user in [&jane, &joe] {
        reads(user, "secrets", NAME)?;
    }
    let kept = json!({"subjects": subjects(&["revoked-kept"])}).to_string();
    admin.ok(&["patch", "clusterrolebinding", NAME, "--type=merge", "-p", &kept])?;
    may_not_read(&jane, "secrets", NAME)?;
    reads(&joe, "secrets", NAME)?;
    admin.ok(&["delete", "clusterrolebinding", NAME])?;
    may_not_read(&joe, "secrets", NAME)?;
    admin.ok(&["delete", "namespace", NAME, "--wait=false"])?;
    Ok(())
}

fn binding(name: &str, role: &str, users: &[&str]) -> String {
    let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role});
    json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
        "roleRef": role, "subjects": subjects(users)})
    .to_string()
}

fn subjects(users: &[&str]) -> Value {
    users.iter().map(|user| json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user})).collect()
}

/// Deletes a namespace that contains an object with a finalizer, and waits until only such objects are left.
fn hold(admin: &Kubectl, name: &str) -> anyhow::Result<()> {
    let metadata = json!({"name": "held", "namespace": name, "finalizers": ["example.com/hold"]});
    let held = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
    admin.ok_with(&["create", "-f", "-"], &held.to_string())?;
    admin.ok(&["delete", "namespace", name, "--wait=false"])?;
    eventually(CONDITION_TIMEOUT, || {
        let condition = r#"jsonpath={.status.conditions[?(@.type=="NamespaceFinalizersRemaining")].status}"#;
        let remaining = admin.ok(&["get", "namespace", name, "-o", condition])?;
        ensure!(remaining == "True", "{remaining}");
        Ok(())
    })
}

fn free(admin: &Kubectl, name: &str) -> anyhow::Result<()> {
    let free = r#"{"metadata":{"finalizers":null}}"#;
    admin.ok(&["patch", "configmap", "held", "-n", name, "--type=merge", "-p", free])?;
    admin.ok(&["wait", "--for=delete", &format!("namespace/{name}"), "--timeout=50s"])?;
    Ok(())
}

/// The host can cache a denied review for seconds.
fn reads(user: &Kubectl, resource: &str, namespace: &str) -> anyhow::Result<()> {
    eventually(CONDITION_TIMEOUT, || user.ok(&["get", resource, "-n", namespace]).map(drop))
}

/// The host can also cache an allowed review.
fn may_not_read(user: &Kubectl, resource: &str, namespace: &str) -> anyhow::Result<()> {
    eventually(CONDITION_TIMEOUT, || {
        let refused = user.fails(&["get", resource, "-n", namespace])?;
        ensure!(refused.contains("(Forbidden)"), "{refused}");
        Ok(())
    })
}

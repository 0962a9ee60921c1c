//! Rights that a ClusterRoleBinding gave end with it in every namespace, whatever its clients have made there.

use anyhow::ensure;
use atoll_tests::kubectl::SOON;
use atoll_tests::{Kubectl, Route, VirtualSite, eventually};
use serde_json::{Value, json};

use super::{BEIJING, Listed, namespace};

pub(super) const TRIALS: [Listed; 3] = [
    ("revoked_rights_end_in_an_ending_namespace", end_in_an_ending_namespace),
    ("revoked_rights_go_to_no_namesake", go_to_no_namesake),
    ("revoked_rights_end_in_spite_of_a_quota", end_in_spite_of_a_quota),
];

/// As long as anything in a namespace has a finalizer, its objects can be read and changed there.
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
    // Others keep theirs.
    ensure!(admin.ok(&["get", "configmaps", "-n", NAME, "-o", "name"])?.contains("held"));
    free(&admin, NAME)
}

/// The role of a RoleBinding cannot be changed, and nothing can be created in a namespace that is being deleted: what is
/// there of the old binding must not become one of the new subjects to the old role.
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
    // Once the old subject has no rights there, what was there has been changed for the last time.
    may_not_read(&jane, "secrets", NAME)?;
    for namespace in [NAME, "default"] {
        let refused = joe.fails(&["get", "secrets", "-n", namespace])?;
        ensure!(refused.contains("(Forbidden)"), "{namespace}: {refused}");
    }
    admin.ok(&["delete", "clusterrolebinding", NAME])?;
    free(&admin, NAME)
}

/// A quota refuses each creation of a RoleBinding before the host looks whether there is one of that name already.
fn end_in_spite_of_a_quota(site: &VirtualSite) -> anyhow::Result<()> {
    const NAME: &str = "revoked-quota";
    let admin = site.administrator(BEIJING, Route::Proxy)?;
    let jane = site.user(BEIJING, "revoked-removed")?;
    let joe = site.user(BEIJING, "revoked-kept")?;
    admin.ok_with(&["create", "-f", "-"], &namespace(NAME))?;
    admin.ok_with(&["create", "-f", "-"], &binding(NAME, "cluster-admin", &["revoked-removed", "revoked-kept"]))?;
    let none = "--hard=count/rolebindings.rbac.authorization.k8s.io=0";
    admin.ok(&["create", "quota", "none", none, "-n", NAME])?;
    eventually(SOON, || {
        let create = ["create", "rolebinding", "refused", "--clusterrole=view", "--user=a", "--dry-run=server"];
        let refused = admin.fails(&[&create[..], &["-n", NAME]].concat())?;
        // Until the host has counted what there is, it says that it does not know.
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

/// Deletes a namespace in which an object has a finalizer, and waits until only such objects are left.
fn hold(admin: &Kubectl, name: &str) -> anyhow::Result<()> {
    let metadata = json!({"name": "held", "namespace": name, "finalizers": ["example.com/hold"]});
    let held = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
    admin.ok_with(&["create", "-f", "-"], &held.to_string())?;
    admin.ok(&["delete", "namespace", name, "--wait=false"])?;
    eventually(SOON, || {
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

/// What somebody was not allowed before may be remembered for seconds.
fn reads(user: &Kubectl, resource: &str, namespace: &str) -> anyhow::Result<()> {
    eventually(SOON, || user.ok(&["get", resource, "-n", namespace]).map(drop))
}

/// What somebody was allowed before, too.
fn may_not_read(user: &Kubectl, resource: &str, namespace: &str) -> anyhow::Result<()> {
    eventually(SOON, || {
        let refused = user.fails(&["get", resource, "-n", namespace])?;
        ensure!(refused.contains("(Forbidden)"), "{refused}");
        Ok(())
    })
}

//! A user that may update but not create cannot create objects with an update or an apply.

use anyhow::ensure;
use atoll_tests::{Route, VirtualSite};
use serde_json::json;

use super::BEIJING;

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

pub(super) fn of_roles_and_bindings_take_the_right_to(site: &VirtualSite) -> anyhow::Result<()> {
    let admin = site.administrator(BEIJING, Route::Proxy)?;
    let tess = site.user(BEIJING, "tess")?;
    let curl = site.curl_like(&tess, BEIJING, Route::Proxy)?;
    admin.ok(&["create", "clusterrole", "creates-none", "--verb=get", "--resource=pods"])?;
    let tuners = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "creates-tuners"},
        "rules": [
            {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles", "clusterrolebindings"], "verbs": ["get", "update", "patch"]},
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]},
        ],
    });
    admin.ok_with(&["create", "-f", "-"], &tuners.to_string())?;
    admin.ok(&["create", "clusterrolebinding", "creates-tuners", "--clusterrole=creates-tuners", "--user=tess"])?;
    admin.ok(&["create", "clusterrolebinding", "creates-there", "--clusterrole=creates-none", "--user=a"])?;
    admin.ok(&["create", "clusterrole", "creates-there", "--verb=get", "--resource=pods"])?;

    let role = |name: &str| json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": []});
    let binding = |name: &str| {
        let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "creates-none"});
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name}, "roleRef": role, "subjects": []})
    };
    for dry in [true, false] {
        for (resource, made, there) in [
            ("clusterroles", role("creates-new"), role("creates-there")),
            ("clusterrolebindings", binding("creates-new"), binding("creates-there")),
        ] {
            let query = |more: &str| if dry { format!("?dryRun=All&{more}") } else { format!("?{more}") };
            let put = |name: &str| ("PUT", format!("{RBAC}/{resource}/{name}{}", query("")), "application/json");
            let apply = |name: &str| {
                let query = query("fieldManager=tess&force=true");
                ("PATCH", format!("{RBAC}/{resource}/{name}{query}"), "application/apply-patch+yaml")
            };
            for (method, path, media_type) in [put("creates-new"), apply("creates-new")] {
                let response = curl.send_as(method, &path, media_type, &made.to_string())?;
                let why = format!(
                    "User \"tess\" cannot create resource \"{resource}\" in API group \"rbac.authorization.k8s.io\""
                );
                response.refused(403, "Forbidden", &why)?;
                let missing = admin.fails(&["get", resource, "creates-new"])?;
                ensure!(missing.contains("(NotFound)"), "{method} {path}: {missing}");
            }
            for (method, path, media_type) in [put("creates-there"), apply("creates-there")] {
                let response = curl.send_as(method, &path, media_type, &there.to_string())?;
                ensure!(response.code == 200, "{method} {path}: {response:?}");
            }
        }
    }
    // With the right, the same request succeeds.
    let makers = r#"[{"op":"add","path":"/rules/0/verbs/-","value":"create"}]"#;
    admin.ok(&["patch", "clusterrole", "creates-tuners", "--type=json", "-p", makers])?;
    let response = curl.send("PUT", &format!("{RBAC}/clusterroles/creates-new"), &role("creates-new").to_string())?;
    ensure!(response.code == 201, "{response:?}");
    let body = binding("creates-new").to_string();
    let path = format!("{RBAC}/clusterrolebindings/creates-new?fieldManager=tess");
    let response = curl.send_as("PATCH", &path, "application/apply-patch+yaml", &body)?;
    ensure!(response.code == 201, "{response:?}");
    Ok(())
}

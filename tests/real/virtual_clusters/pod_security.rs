//! Pod Security labels (`pod-security.kubernetes.io`): clients write them on their Namespaces as on any cluster.

use anyhow::ensure;
use atoll_tests::{Route, VirtualSite};
use serde_json::{Value, json};

use super::BEIJING;

const ENFORCE: &str = "pod-security.kubernetes.io/enforce";
const WARN: &str = "pod-security.kubernetes.io/warn";
const NAMESPACES: &str = "/api/v1/namespaces";

/// A Namespace with these labels.
fn labelled(name: &str, labels: &Value) -> String {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}).to_string()
}

/// The host enforces the labels, with every kind of write.
pub(super) fn labels_are_the_clients(site: &VirtualSite) -> anyhow::Result<()> {
    let curl = site.curl(BEIJING, Route::Path)?;
    let kubectl = site.administrator(BEIJING, Route::Proxy)?;
    let host = site.host().kubectl();
    let seen = |object: &str| -> anyhow::Result<(Value, Value)> {
        let labels = &serde_json::from_str::<Value>(object)?["metadata"]["labels"];
        Ok((labels[ENFORCE].clone(), labels[WARN].clone()))
    };
    let made = curl.send("POST", NAMESPACES, &labelled("secured", &json!({ENFORCE: "baseline", WARN: "baseline"})))?;
    ensure!(made.code == 201 && seen(&made.body)? == (json!("baseline"), json!("baseline")), "{}", made.body);
    let privileged = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "secured"},
        "spec": {"containers": [{"name": "a", "image": "a", "securityContext": {"privileged": true}}]}});
    let refused = kubectl.run_with(&["create", "-f", "-"], &privileged.to_string())?;
    ensure!(refused.stderr.contains(r#"violates PodSecurity "baseline:latest""#), "{}", refused.stderr);

    let one = format!("{NAMESPACES}/secured");
    let applied = format!("{one}?fieldManager=gitops&force=true");
    let patch = |enforce: Value| json!({"metadata": {"labels": {ENFORCE: enforce}}}).to_string();
    let pointer = "/metadata/labels/pod-security.kubernetes.io~1enforce";
    for (method, path, media, body, enforced, warned) in [
        (
            "PUT",
            &one,
            "application/json",
            labelled("secured", &json!({ENFORCE: "restricted"})),
            json!("restricted"),
            Value::Null,
        ),
        (
            "PUT",
            &one,
            "application/yaml",
            format!(
                "{{apiVersion: v1, kind: Namespace, metadata: {{name: secured, labels: {{{ENFORCE}: baseline}}}}}}"
            ),
            json!("baseline"),
            Value::Null,
        ),
        ("PATCH", &one, "application/merge-patch+json", patch(json!("privileged")), json!("privileged"), Value::Null),
        ("PATCH", &one, "application/strategic-merge-patch+json", patch(Value::Null), Value::Null, Value::Null),
        (
            "PATCH",
            &one,
            "application/json-patch+json",
            json!([{"op": "add", "path": pointer, "value": "restricted"}]).to_string(),
            json!("restricted"),
            Value::Null,
        ),
        (
            "PATCH",
            &applied,
            "application/apply-patch+yaml",
            labelled("secured", &json!({ENFORCE: "privileged", WARN: "restricted"})),
            json!("privileged"),
            json!("restricted"),
        ),
        ("PATCH", &applied, "application/apply-patch+yaml", labelled("secured", &json!({})), Value::Null, Value::Null),
    ] {
        let response = curl.send_as(method, path, media, &body)?;
        ensure!(response.code == 200, "{method} {media}: {}", response.body);
        let stored = host.ok(&["get", "namespace", "secured-ke-beijing", "-o", "json"])?;
        for object in [&response.body, &stored] {
            ensure!(seen(object)? == (enforced.clone(), warned.clone()), "{method} {media} {body}: {object}");
        }
    }
    kubectl.ok_with(&["create", "-f", "-"], &privileged.to_string())?;
    kubectl.ok(&["delete", "namespace", "secured", "--timeout=60s"])?;
    Ok(())
}

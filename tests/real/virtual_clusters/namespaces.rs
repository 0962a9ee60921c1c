//! Server-side apply of Namespaces, and protected labels and annotations.

use anyhow::ensure;
use atoll_tests::{Route, VirtualSite};
use serde_json::{Value, json};

use super::{BEIJING, namespace};

const NAMESPACES: &str = "/api/v1/namespaces";
const APPLY: &str = "application/apply-patch+yaml";

/// `kubectl apply --server-side` creates a Namespace that does not exist, as on any cluster.
pub(super) fn an_apply_creates_it(site: &VirtualSite) -> anyhow::Result<()> {
    let kubectl = site.administrator(BEIJING, Route::Proxy)?;
    let host = site.host().kubectl();
    let applied = kubectl.ok_with(&["apply", "--server-side", "-f", "-"], &namespace("applied"))?;
    ensure!(applied == "namespace/applied serverside-applied\n", "{applied}");
    // Writes to it succeed immediately, so its mirrors exist. On the host, it belongs to the cluster.
    kubectl.ok(&["create", "configmap", "a", "-n", "applied"])?;
    let label = host.ok(&[
        "get",
        "namespace",
        "applied-ke-beijing",
        "-o",
        "jsonpath={.metadata.labels.atoll\\.dev/virtual-cluster}",
    ])?;
    ensure!(label == BEIJING, "{label}");

    let curl = site.curl(BEIJING, Route::Path)?;
    let path = |name: &str, more: &str| format!("{NAMESPACES}/{name}?fieldManager=gitops{more}");
    let body = |name: &str| {
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {"a": "b"}}}).to_string()
    };
    let tried = curl.send_as("PATCH", &path("by-gitops", "&dryRun=All"), APPLY, &body("by-gitops"))?;
    ensure!(tried.code == 201, "{}", tried.body);
    ensure!(curl.get(&format!("{NAMESPACES}/by-gitops"))?.code == 404, "a dry run has created it");
    let made = curl.send_as("PATCH", &path("by-gitops", ""), APPLY, &body("by-gitops"))?;
    ensure!(made.code == 201 && !made.body.contains("atoll.dev"), "{} {}", made.code, made.body);
    let made = made.json()?;
    ensure!(made["metadata"]["name"] == "by-gitops" && made["metadata"]["labels"]["a"] == "b", "{made}");
    let managers = made["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let owned = |entry: &Value| entry["fieldsV1"]["f:metadata"]["f:labels"].get("f:a").is_some();
    ensure!(
        managers.iter().any(|entry| entry["manager"] == "gitops" && entry["operation"] == "Apply" && owned(entry)),
        "{made}"
    );
    // The second apply is an update, and removes fields.
    let again = curl.send_as("PATCH", &path("by-gitops", ""), APPLY, &namespace("by-gitops"))?;
    ensure!(
        again.code == 200 && again.json()?["metadata"]["labels"].get("a").is_none(),
        "{} {}",
        again.code,
        again.body
    );

    // The annotations for the policies of the host always exist.
    let selector = "jsonpath={.metadata.annotations.atoll\\.dev/node-selector}";
    let selector = host.ok(&["get", "namespace", "by-gitops-ke-beijing", "-o", selector])?;
    ensure!(selector.contains("location=beijing"), "{selector}");

    for (name, sent, code, reason, why) in [
        ("one", "two", 400, "BadRequest", "the name of the object (two) does not match the name on the URL (one)"),
        ("Bad_Name", "Bad_Name", 404, "NotFound", "not found"),
    ] {
        curl.send_as("PATCH", &path(name, ""), APPLY, &body(sent))?.refused(code, reason, why)?;
    }
    let wrong = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "wrong", "labels": {"a": "-b-"}}});
    curl.send_as("PATCH", &path("wrong", ""), APPLY, &wrong.to_string())?.refused(422, "Invalid", "-b-")?;
    ensure!(host.run(&["get", "namespace", "wrong-ke-beijing"])?.code != 0, "a refused namespace exists");
    // A namespace of the host with this name stays unchanged.
    host.ok_with(&["create", "-f", "-"], &namespace("foreign-ke-beijing"))?;
    atoll_tests::eventually(atoll_tests::kubectl::CONDITION_TIMEOUT, || {
        curl.send_as("PATCH", &path("foreign", ""), APPLY, &body("foreign"))?.refused(409, "Conflict", "")?;
        Ok(())
    })?;
    let labels = host.ok(&["get", "namespace", "foreign-ke-beijing", "-o", "jsonpath={.metadata.labels}"])?;
    ensure!(!labels.contains("atoll"), "{labels}");

    // A user without the right to create cannot create one with an apply.
    kubectl.ok(&["create", "clusterrole", "patcher", "--verb=patch,update,get", "--resource=namespaces"])?;
    kubectl.ok(&["create", "clusterrolebinding", "patcher", "--clusterrole=patcher", "--user=patcher"])?;
    let patcher = site.curl_like(&site.user(BEIJING, "patcher")?, BEIJING, Route::Proxy)?;
    let refused = patcher.send_as("PATCH", &path("not-mine", ""), APPLY, &body("not-mine"))?;
    refused.refused(403, "Forbidden", "cannot create resource \"namespaces\"")?;
    for name in ["applied", "by-gitops"] {
        kubectl.ok(&["delete", "namespace", name, "--timeout=60s"])?;
    }
    kubectl.ok(&["delete", "clusterrolebinding,clusterrole", "patcher"])?;
    host.ok(&["delete", "namespace", "foreign-ke-beijing", "--timeout=60s"])?;
    Ok(())
}

/// Clients cannot write protected keys, and all their writes keep them.
pub(super) fn operators_keys_stay(site: &VirtualSite) -> anyhow::Result<()> {
    const IGNORE: &str = "admission.gatekeeper.sh/ignore";
    const PROJECT: &str = "field.cattle.io/projectId";
    let kubectl = site.administrator(BEIJING, Route::Proxy)?;
    let host = site.host().kubectl();
    kubectl.ok_with(&["create", "-f", "-"], &namespace("tooled"))?;
    host.ok(&["label", "namespace", "tooled-ke-beijing", &format!("{PROJECT}=p-1"), "capsule.clastix.io/tenant=oil"])?;
    host.ok(&["annotate", "namespace", "tooled-ke-beijing", &format!("{PROJECT}=c-1:p-1")])?;
    let curl = site.curl(BEIJING, Route::Path)?;
    let one = format!("{NAMESPACES}/tooled");
    let whole = |labels: Value| {
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "tooled", "labels": labels}}).to_string()
    };
    let patch = |field: &str, key: &str, value: Value| json!({"metadata": {field: {key: value}}}).to_string();
    let merge = "application/merge-patch+json";
    let applied = format!("{one}?fieldManager=a&force=true");
    for (method, path, media, body) in [
        (
            "POST",
            NAMESPACES,
            "application/json",
            json!({"metadata": {"name": "freed", "labels": {IGNORE: "x"}}}).to_string(),
        ),
        ("PUT", &one, "application/json", whole(json!({IGNORE: "x"}))),
        ("PUT", &one, "application/json", whole(json!({PROJECT: "p-2"}))),
        ("PATCH", &one, merge, patch("labels", "policies.kyverno.io/exclude", json!("true"))),
        ("PATCH", &one, merge, patch("labels", PROJECT, Value::Null)),
        ("PATCH", &one, merge, patch("annotations", PROJECT, json!("c-1:p-2"))),
        (
            "PATCH",
            &one,
            "application/strategic-merge-patch+json",
            patch("labels", "capsule.clastix.io/tenant", json!("gas")),
        ),
        (
            "PATCH",
            &one,
            "application/json-patch+json",
            json!([{"op": "remove", "path": "/metadata/labels/field.cattle.io~1projectId"},
            {"op": "add", "path": "/metadata/labels/field.cattle.io~1projectId", "value": "p-2"}])
            .to_string(),
        ),
        ("PATCH", &applied, APPLY, whole(json!({PROJECT: "p-2"}))),
    ] {
        let response = curl.send_as(method, path, media, &body)?;
        response
            .refused(422, "Invalid", "managed by the operator of the host cluster")
            .map_err(|error| error.context(body))?;
    }
    // The object stays readable and writable, and keeps protected keys that a client omits.
    for (method, path, media, body) in [
        ("PUT", &one, "application/json", whole(json!({"mine": "1"}))),
        (
            "PATCH",
            &one,
            "application/json-patch+json",
            json!([{"op": "replace", "path": "/metadata/labels", "value": {"mine": "2"}}]).to_string(),
        ),
        ("PATCH", &one, merge, patch("labels", "mine", json!("3"))),
        ("PATCH", &applied, APPLY, whole(json!({"mine": "4"}))),
    ] {
        let response = curl.send_as(method, path, media, &body)?;
        ensure!(response.code == 200, "{}", response.body);
        let metadata = &response.json()?["metadata"];
        ensure!(
            metadata["labels"][PROJECT] == "p-1" && metadata["annotations"][PROJECT] == "c-1:p-1",
            "{}",
            response.body
        );
        ensure!(
            metadata["labels"]["capsule.clastix.io/tenant"] == "oil" && !metadata["labels"]["mine"].is_null(),
            "{}",
            response.body
        );
    }
    let mut read = curl.get(&one)?.json()?;
    read["metadata"]["labels"]["mine"] = "5".into();
    let response = curl.send("PUT", &one, &read.to_string())?;
    ensure!(response.code == 200, "{}", response.body);
    kubectl.ok(&["delete", "namespace", "tooled", "--timeout=60s"])?;
    Ok(())
}

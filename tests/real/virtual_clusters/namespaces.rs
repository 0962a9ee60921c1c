//! Keys of Namespaces that are the operator's.

use anyhow::ensure;
use atoll_tests::{VirtualSite, Way};
use serde_json::{Value, json};

use super::{BEIJING, namespace};

const NAMESPACES: &str = "/api/v1/namespaces";
const APPLY: &str = "application/apply-patch+yaml";

/// What tools of the operator go by no client writes, and every write keeps it.
pub(super) fn operators_keys_stay(site: &VirtualSite) -> anyhow::Result<()> {
    const IGNORE: &str = "admission.gatekeeper.sh/ignore";
    const PROJECT: &str = "field.cattle.io/projectId";
    let kubectl = site.administrator(BEIJING, Way::Proxy)?;
    let host = site.host().kubectl();
    kubectl.ok_with(&["create", "-f", "-"], &namespace("tooled"))?;
    host.ok(&["label", "namespace", "tooled-ke-beijing", &format!("{PROJECT}=p-1"), "capsule.clastix.io/tenant=oil"])?;
    host.ok(&["annotate", "namespace", "tooled-ke-beijing", &format!("{PROJECT}=c-1:p-1")])?;
    let curl = site.curl(BEIJING, Way::Path)?;
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
        let answer = curl.send_as(method, path, media, &body)?;
        answer
            .refused(422, "Invalid", "managed by the operator of the host cluster")
            .map_err(|error| error.context(body))?;
    }
    // It stays readable and writable, and keeps what a client leaves out.
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
        let answer = curl.send_as(method, path, media, &body)?;
        ensure!(answer.code == 200, "{}", answer.body);
        let metadata = &answer.json()?["metadata"];
        ensure!(
            metadata["labels"][PROJECT] == "p-1" && metadata["annotations"][PROJECT] == "c-1:p-1",
            "{}",
            answer.body
        );
        ensure!(
            metadata["labels"]["capsule.clastix.io/tenant"] == "oil" && !metadata["labels"]["mine"].is_null(),
            "{}",
            answer.body
        );
    }
    let mut read = curl.get(&one)?.json()?;
    read["metadata"]["labels"]["mine"] = "5".into();
    let answer = curl.send("PUT", &one, &read.to_string())?;
    ensure!(answer.code == 200, "{}", answer.body);
    kubectl.ok(&["delete", "namespace", "tooled", "--timeout=60s"])?;
    Ok(())
}

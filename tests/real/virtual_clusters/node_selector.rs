//! The annotation of a Namespace that selects nodes: clients write and read it as on any cluster, and the host ignores
//! it.

use anyhow::ensure;
use atoll_tests::{Route, VirtualSite};
use serde_json::{Value, json};

use super::BEIJING;

const SELECTOR: &str = "scheduler.alpha.kubernetes.io/node-selector";
const PARKED: &str = "scheduler.alpha.kubernetes.io.parked.atoll.dev/node-selector";
const NAMESPACES: &str = "/api/v1/namespaces";
const ONE: &str = "/api/v1/namespaces/selecting";
const HOST_ONE: &str = "selecting-ke-beijing";

/// A Namespace with these annotations.
fn annotated(name: &str, annotations: &Value) -> String {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "annotations": annotations}}).to_string()
}

/// The value of the annotation of an object.
fn selector(object: &str) -> anyhow::Result<Value> {
    Ok(serde_json::from_str::<Value>(object)?["metadata"]["annotations"][SELECTOR].take())
}

/// Clients read the value that they wrote, and the host ignores it.
pub(super) fn a_node_selector_is_parked(site: &VirtualSite) -> anyhow::Result<()> {
    let curl = site.curl(BEIJING, Route::Path)?;
    let host = site.host().kubectl();
    let stored = || -> anyhow::Result<(Value, Value)> {
        let object = host.ok(&["get", "namespace", HOST_ONE, "-o", "json"])?;
        let annotations = &serde_json::from_str::<Value>(&object)?["metadata"]["annotations"];
        Ok((annotations[SELECTOR].clone(), annotations[PARKED].clone()))
    };
    let made = curl.send("POST", NAMESPACES, &annotated("selecting", &json!({SELECTOR: ""})))?;
    ensure!(made.code == 201 && selector(&made.body)? == "", "{}", made.body);
    ensure!(stored()? == (Value::Null, json!("")), "{:?}", stored()?);

    let patch = |value: Value| json!({"metadata": {"annotations": {SELECTOR: value}}}).to_string();
    let pointer = "/metadata/annotations/scheduler.alpha.kubernetes.io~1node-selector";
    let json_patch = |operations: Value| operations.to_string();
    let applied = &*format!("{ONE}?fieldManager=gitops&force=true");
    let (merge, strategic) = ("application/merge-patch+json", "application/strategic-merge-patch+json");
    let (by_pointer, apply) = ("application/json-patch+json", "application/apply-patch+yaml");
    let writes = || {
        let whole = |value: &str| annotated("selecting", &json!({SELECTOR: value}));
        let none = || annotated("selecting", &json!({}));
        [
            ("PUT", ONE, "application/json", whole("a=b"), json!("a=b")),
            ("PUT", ONE, "application/json", none(), Value::Null),
            (
                "PUT",
                ONE,
                "application/yaml",
                format!(
                    "{{apiVersion: v1, kind: Namespace, metadata: {{name: selecting, annotations: {{{SELECTOR}: a=c}}}}}}"
                ),
                json!("a=c"),
            ),
            ("PATCH", ONE, merge, patch(json!("a=d")), json!("a=d")),
            ("PATCH", ONE, merge, r#"{"metadata":{"annotations":{"e":"f"}}}"#.to_owned(), json!("a=d")),
            ("PATCH", ONE, strategic, patch(Value::Null), Value::Null),
            (
                "PATCH",
                ONE,
                by_pointer,
                json_patch(json!([{"op": "add", "path": pointer, "value": "a=e"}])),
                json!("a=e"),
            ),
            (
                "PATCH",
                ONE,
                by_pointer,
                json_patch(json!([{"op": "test", "path": pointer, "value": "a=e"}, {"op": "remove", "path": pointer}])),
                Value::Null,
            ),
            ("PATCH", applied, apply, whole("a=f"), json!("a=f")),
            ("PATCH", applied, apply, none(), Value::Null),
            ("PATCH", applied, apply, whole("a=g"), json!("a=g")),
        ]
    };
    // In the second round, the operator of the host also selects nodes. Clients cannot remove this.
    for operators in [Value::Null, json!("h=i")] {
        if let Some(value) = operators.as_str() {
            host.ok(&["annotate", "namespace", HOST_ONE, &format!("{SELECTOR}={value}")])?;
        }
        for (method, path, media, body, wanted) in writes() {
            let response = curl.send_as(method, path, media, &body)?;
            ensure!(response.code == 200, "{method} {media} {body}: {}", response.body);
            ensure!(selector(&response.body)? == wanted, "{method} {media} {body}: {}", response.body);
            ensure!(stored()? == (operators.clone(), wanted), "{method} {media} {body}: {:?}", stored()?);
        }
    }

    let watch = "/api/v1/namespaces?watch=1&timeoutSeconds=1";
    for (path, accept) in [
        (NAMESPACES, "application/json"),
        (NAMESPACES, "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"),
        (NAMESPACES, "application/vnd.kubernetes.protobuf"),
        (watch, "application/json"),
        (watch, "application/vnd.kubernetes.protobuf;stream=watch"),
    ] {
        let response = curl.clone().with(&["--header", &format!("Accept: {accept}")]).get(path)?;
        let says = |text: &str| response.body.contains(text);
        ensure!(
            response.code == 200 && says(SELECTOR) && says("a=g"),
            "{path} {accept}: {} {}",
            response.code,
            response.body
        );
        ensure!(!says("parked") && !says("h=i"), "{path} {accept}: {}", response.body);
    }
    let read = curl.get(ONE)?.json()?;
    let owned = read["metadata"]["managedFields"].to_string();
    ensure!(owned.contains(&format!("f:{SELECTOR}")) && !owned.contains("parked"), "{owned}");
    // Two field managers with different values have a conflict over the visible annotation.
    let other = format!("{ONE}?fieldManager=other");
    let conflict = curl.send_as("PATCH", &other, apply, &annotated("selecting", &json!({SELECTOR: "a=j"})))?;
    let status = conflict.refused(409, "Conflict", SELECTOR)?;
    ensure!(!status.to_string().contains("parked"), "{status}");
    // No visible manager owns the key of the host.
    for key in [PARKED, "scheduler.alpha.kubernetes.io/tolerationsWhitelist"] {
        let response = curl.send("POST", NAMESPACES, &annotated("selecting-2", &json!({key: "a=b"})))?;
        response.refused(422, "Invalid", "managed by the operator of the host cluster")?;
    }
    site.administrator(BEIJING, Route::Proxy)?.ok(&["delete", "namespace", "selecting", "--timeout=60s"])?;
    Ok(())
}

/// A client that writes back the object keeps the owner of the annotation, and does not become the owner of that of the
/// operator.
pub(super) fn a_node_selector_keeps_its_owner(site: &VirtualSite) -> anyhow::Result<()> {
    const NAME: &str = "selecting-back";
    let (curl, host) = (site.curl(BEIJING, Route::Path)?, site.host().kubectl());
    let (path, host_name) = (format!("{NAMESPACES}/{NAME}"), format!("{NAME}-{BEIJING}"));
    let apply = |annotations: Value| {
        let target = format!("{path}?fieldManager=gitops&force=true");
        curl.send_as("PATCH", &target, "application/apply-patch+yaml", &annotated(NAME, &annotations))
    };
    for operators in [None, Some("h=i")] {
        let applied = apply(json!({SELECTOR: "a=b"}))?;
        ensure!(matches!(applied.code, 200 | 201), "{}", applied.body);
        if let Some(value) = operators {
            host.ok(&["annotate", "namespace", &host_name, &format!("{SELECTOR}={value}")])?;
        }
        let mut object = curl.get(&path)?.json()?;
        object["metadata"]["resourceVersion"].take();
        object["metadata"]["labels"]["written"] = "back".into();
        let written = curl.send("PUT", &path, &object.to_string())?;
        ensure!(written.code == 200 && selector(&written.body)? == "a=b", "{}", written.body);
        let left_out = apply(json!({}))?;
        ensure!(left_out.code == 200 && selector(&left_out.body)? == Value::Null, "{operators:?}: {}", left_out.body);
        let stored = host.ok(&["get", "namespace", &host_name, "-o", "json"])?;
        ensure!(selector(&stored)? == json!(operators) && !stored.contains(PARKED), "{operators:?}: {stored}");
    }
    site.administrator(BEIJING, Route::Proxy)?.ok(&["delete", "namespace", NAME, "--wait=false"])?;
    Ok(())
}

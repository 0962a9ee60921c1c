//! Requests that in earlier versions removed a namespace from its virtual cluster, or deleted an object of the host.

use anyhow::{Context, ensure};
use atoll_tests::{Route, VirtualSite, eventually, kubectl::CONDITION_TIMEOUT};
use serde_json::{Value, json};

use super::{BEIJING, namespace};

const SPACE: &str = "/api/v1/namespaces/kept-in";
const HOST_SPACE: &str = "kept-in-ke-beijing";
const JSON: &str = "application/json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const MERGE: &str = "application/merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// No request removes the labels and annotations that assign a namespace to its virtual cluster, or the settings of the
/// operator.
pub(super) fn a_namespace_stays_what_it_is(site: &VirtualSite) -> anyhow::Result<()> {
    let kubectl = site.administrator(BEIJING, Route::Proxy)?;
    kubectl.ok_with(&["create", "-f", "-"], &namespace("kept-in"))?;
    let host = site.host().kubectl();
    host.ok(&["label", "namespace", HOST_SPACE, "resource.kubernetes.io/admin-access=true"])?;
    host.ok(&["annotate", "namespace", HOST_SPACE, "scheduler.alpha.kubernetes.io/node-selector=a=b"])?;
    let curl = site.curl(BEIJING, Route::Path)?;
    let standing = || -> anyhow::Result<(Value, Value)> {
        let object: Value = serde_json::from_str(&host.ok(&["get", "namespace", HOST_SPACE, "-o", "json"])?)?;
        let metadata = &object["metadata"];
        let selector = metadata["annotations"]["scheduler.alpha.kubernetes.io/node-selector"].clone();
        let mut labels = metadata["labels"].clone();
        labels.as_object_mut().context("no labels")?.remove("mine");
        Ok((labels, selector))
    };
    let before = standing()?;
    ensure!(before.0["atoll.dev/virtual-cluster"] == BEIJING, "{before:?}");

    let whole = |labels: Value| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kept-in", "labels": labels}});
    let bare = whole(json!({"mine": "1"})).to_string();
    let finalize = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kept-in"},
                          "spec": {"finalizers": ["kubernetes"]}});
    let requests = [
        ("PATCH", STRATEGIC, SPACE, r#"{"metadata":{"labels":{"$patch":"replace"}}}"#.to_owned()),
        ("PATCH", STRATEGIC, SPACE, r#"{"metadata":{"labels":{"\u0024patch":"replace","mine":"1"}}}"#.to_owned()),
        ("PATCH", STRATEGIC, SPACE, r#"{"metadata":{"$patch":"replace","name":"kept-in"}}"#.to_owned()),
        ("PATCH", STRATEGIC, SPACE, r#"{"metadata":{"$retainKeys":["name"],"name":"kept-in"}}"#.to_owned()),
        ("PATCH", STRATEGIC, SPACE, r#"{"x":"\ud800","metadata":{"labels":{"\u0024patch":"replace"}}}"#.to_owned()),
        ("PATCH", MERGE, SPACE, r#"{"metadata":null}"#.to_owned()),
        ("PATCH", MERGE, SPACE, r#"{"metadata":{"labels":null}}"#.to_owned()),
        ("PATCH", JSON_PATCH, SPACE, r#"[{"op":"remove","path":"/metadata/labels"}]"#.to_owned()),
        (
            "PATCH",
            JSON_PATCH,
            SPACE,
            r#"[{"op":"remove","path":"/metadata/labels/resource.kubernetes.io~1admin-access"}]"#.to_owned(),
        ),
        ("PUT", JSON, SPACE, bare.clone()),
        ("PUT", JSON, "/api/v1/namespaces/kept-in/status", bare),
        ("PUT", JSON, "/api/v1/namespaces/kept-in/finalize", finalize.to_string()),
    ];
    for (method, media, path, body) in requests {
        let response = curl.send_as(method, path, media, &body)?;
        let after = standing()?;
        ensure!(after == before, "{method} {media} {path} {body}\n{} {}\n{after:?}", response.code, response.body);
    }
    // An apply by the only visible owner of the labels.
    for body in [whole(json!({"mine": "2"})), json!({"apiVersion": "v1", "kind": "Namespace"})] {
        let path = format!("{SPACE}?fieldManager=mine&force=true");
        let response = curl.send_as("PATCH", &path, APPLY, &body.to_string())?;
        let after = standing()?;
        ensure!(after == before, "an apply of {body}\n{} {}\n{after:?}", response.code, response.body);
    }
    // A client that does not change them can write other fields.
    let seen = curl.get(SPACE)?.json()?;
    let mut wanted = seen;
    wanted["metadata"]["labels"]["mine"] = "3".into();
    let response = curl.send("PUT", SPACE, &wanted.to_string())?;
    ensure!(response.code == 200, "{}", response.body);
    let add = r#"[{"op":"add","path":"/metadata/labels/mine","value":"4"}]"#;
    let response = curl.send_as("PATCH", SPACE, JSON_PATCH, add)?;
    ensure!(response.code == 200, "{}", response.body);
    ensure!(standing()? == before);
    kubectl.ok(&["delete", "namespace", "kept-in", "--timeout=60s"])?;
    Ok(())
}

/// Delete options that only Go's decoder accepts: the object belongs to the host, and stays.
pub(super) fn a_delete_that_is_refused_deletes_nothing(site: &VirtualSite) -> anyhow::Result<()> {
    let names = json!({"plural": "operateds", "singular": "operated", "kind": "Operated"});
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "operateds.escape.example.com"},
        "spec": {"group": "escape.example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    });
    let host = site.host().kubectl();
    host.ok_with(&["create", "-f", "-"], &definition.to_string())?;
    let uid = || {
        host.ok(&[
            "get",
            "crd",
            "operateds.escape.example.com",
            "-o",
            "jsonpath={.metadata.uid} {.metadata.deletionTimestamp}",
        ])
    };
    let before = uid()?;
    let curl = site.curl(BEIJING, Route::Path)?;
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/operateds.escape.example.com";
    eventually(CONDITION_TIMEOUT, || {
        let seen = curl.get(path)?;
        ensure!(seen.code == 200, "{}", seen.body);
        Ok(())
    })?;
    let deep = format!(r#"{{"x":{}{}}}"#, "[".repeat(200), "]".repeat(200));
    for body in [r#"{"x":"\ud800"}"#, &deep, r#"{"dryRun":7}"#, "[]", "{", ""] {
        for query in ["", "?dryRun=All", "?dryRun=x"] {
            let response = curl.send_as("DELETE", &format!("{path}{query}"), JSON, body)?;
            ensure!(response.code >= 400, "{body:.40}: {}", response.body);
            ensure!(uid()? == before, "{body:.40}{query}: it is gone: {} {}", response.code, response.body);
        }
    }
    host.ok(&["delete", "crd", "operateds.escape.example.com"])?;
    Ok(())
}

//! Patches and bodies that need much more time or memory than their length suggests: the agent responds like the host,
//! or refuses them, and continues to work.

use anyhow::{Context, ensure};
use atoll_tests::costly::{TEST, aliases, copied, grown, moved, nested};
use atoll_tests::{Curl, Route, VirtualSite};
use serde_json::{Value, json};

use super::{BEIJING, namespace};

const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";
const YAML: &str = "application/yaml";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/costly/deployments";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// The maximum additional memory of the agent.
const MEMORY: u64 = 128 << 20;

/// Sends one request at a time, and checks the peak memory of the agent after each.
pub(super) fn cost_the_agent_little(site: &VirtualSite) -> anyhow::Result<()> {
    let kubectl = site.administrator(BEIJING, Route::Proxy)?;
    kubectl.ok_with(&["create", "-f", "-"], &namespace("costly"))?;
    let curl = site.curl(BEIJING, Route::Path)?;
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "annotations": {"a": "b"}},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "a", "image": "a"}]}}}});
    let made = curl.send("POST", DEPLOYMENTS, &deployment.to_string())?;
    ensure!(made.code == 201, "{}", made.body);
    let names = json!({"plural": "costlies", "singular": "costly", "kind": "Costly"});
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "costlies.patches.example.com", "annotations": {"a": "b"}},
        "spec": {"group": "patches.example.com", "scope": "Namespaced", "names": names, "versions": [version]}});
    let made = curl.send("POST", DEFINITIONS, &definition.to_string())?;
    ensure!(made.code == 201, "{}", made.body);

    let one = format!("{DEPLOYMENTS}/a");
    let crd = format!("{DEFINITIONS}/costlies.patches.example.com");
    let applied = format!("{one}?fieldManager=a&force=true");
    let small_parts = format!("[{}]", vec![r#"{"":0}"#; 370_000].join(","));
    let elements = vec!["0"; 30_000].join(",");
    let with = |value: &str| {
        format!(
            r#"[{{"op":"add","path":"/metadata/x","value":{value}}},{{"op":"remove","path":"/metadata/x"}},{TEST}]"#
        )
    };
    let with_yaml = |yaml: &str| {
        format!("apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: a, namespace: costly}}\nx: {yaml}\n")
    };
    let merge = |value: &str| {
        format!(r#"{{"metadata":{{"annotations":{{"a":"b"}}}},"spec":{{"template":{{"spec":{{"x":{value}}}}}}}}}"#)
    };
    for (what, method, path, media, body, codes) in [
        ("a value that grows into itself", "PATCH", &one, JSON_PATCH, grown("/metadata/annotations"), &[413][..]),
        ("copies of all annotations", "PATCH", &one, JSON_PATCH, copied("/metadata/annotations", 22), &[422]),
        ("a value of small parts", "PATCH", &one, JSON_PATCH, with(&small_parts), &[413]),
        ("elements that are moved", "PATCH", &one, JSON_PATCH, moved(&elements), &[413]),
        ("a value that grows into itself", "PATCH", &crd, JSON_PATCH, grown("/metadata/annotations"), &[413]),
        ("copies of all annotations", "PATCH", &crd, JSON_PATCH, copied("/metadata/annotations", 22), &[422]),
        ("a merge of small parts", "PATCH", &one, MERGE_PATCH, merge(&small_parts), &[413]),
        ("a deep merge", "PATCH", &one, MERGE_PATCH, merge(&nested(20_000)), &[400]),
        ("an apply of small parts", "PATCH", &applied, APPLY, merge(&small_parts), &[413]),
        ("an update of small parts", "PUT", &one, "application/json", merge(&small_parts), &[413]),
        ("YAML of small parts", "PUT", &one, YAML, with_yaml(&format!("[{}]", vec!["{a}"; 700_000].join(","))), &[400]),
        (
            "YAML of many scalars",
            "PUT",
            &one,
            YAML,
            with_yaml(&format!("[{}]", vec!["a"; 1_400_000].join(","))),
            &[400],
        ),
        ("YAML of aliases", "PUT", &one, YAML, with_yaml(&aliases()), &[400]),
        ("an apply of aliases", "PATCH", &applied, APPLY, with_yaml(&aliases()), &[400]),
        ("deep YAML", "PUT", &one, YAML, with_yaml(&"[".repeat(1_000_000)), &[400]),
        ("deeper YAML", "PUT", &one, YAML, "- ".repeat(1_000_000), &[400]),
    ] {
        let idle = site.agent().memory()?;
        let response = curl.send_as(method, path, media, &body)?;
        ensure!(codes.contains(&response.code), "{what}: {} {:.300}", response.code, response.body);
        let peak = site.agent().peak()?;
        ensure!(peak < idle + MEMORY, "{what}: {idle} bytes before, {peak} for it");
    }
    // The agent applies possible patches. For others, the response equals that of the host.
    ensure!(curl.get(&one)?.code == 200);
    agrees_with_the_host(site, &curl)?;
    kubectl.ok(&["delete", "crd", "costlies.patches.example.com", "--timeout=60s"])?;
    kubectl.ok(&["delete", "namespace", "costly", "--timeout=60s"])?;
    Ok(())
}

/// Both the host and the agent limit copies to 3 MiB.
fn agrees_with_the_host(site: &VirtualSite, curl: &Curl) -> anyhow::Result<()> {
    let pki = site.host().dir().join("pki");
    let address = site.host().api_servers()?.into_iter().next().context("no API server")?;
    let host = Curl::directly(&address, &pki.join("ca.crt"));
    let host = host.with_certificate(&pki.join("admin.crt"), &pki.join("admin.key"));
    let there = "/apis/apps/v1/namespaces/costly-ke-beijing/deployments/a?dryRun=All";
    let here = format!("{DEPLOYMENTS}/a?dryRun=All");
    for times in [3, 22] {
        let mut patch = copied("/metadata/annotations", times);
        // Remove the copy, so that the result is valid.
        let gone = r#",{"op":"replace","path":"/metadata/annotations","value":{"a":"b"}}]"#;
        patch.replace_range(patch.len() - 1.., gone);
        // The patch for the host has no `test`, because the host shows the node selector.
        let (host, cluster) = (
            host.send_as("PATCH", there, JSON_PATCH, &patch.replacen(&format!("{TEST},"), "", 1))?,
            curl.send_as("PATCH", &here, JSON_PATCH, &patch)?,
        );
        ensure!(host.code == cluster.code, "{times} copies: {} and {}", host.body, cluster.body);
        if host.code != 200 {
            let message = |body: &str| serde_json::from_str::<Value>(body).map(|status| status["message"].clone());
            ensure!(message(&host.body)? == message(&cluster.body)?, "{} and {}", host.body, cluster.body);
        }
    }
    Ok(())
}

//! Objects that the agent keeps in memory, of which a client makes as many as it likes, and those that cost the host much.

use std::sync::Arc;

use anyhow::{Context, ensure};
use atoll_tests::kubectl::SOON;
use atoll_tests::{HostCluster, Route, eventually};
use serde_json::{Value, json};

use super::{Memory, site};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// More than fits into the memory.
const MOST: usize = 100;

pub(super) fn that_fill_the_memory_are_refused(host: Arc<HostCluster>) -> anyhow::Result<()> {
    let (site, cluster, _) = site(host, "filled", "")?;
    let kubectl = site.administrator(&cluster, Route::Path)?;
    let curl = site.curl_like(&kubectl, &cluster, Route::Path)?;
    let rules = json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["x".repeat(500_000)]}]);
    let view = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"});
    let subject = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "x".repeat(500_000)});
    let memory = Memory::measure(&site)?;
    for (kind, object, small) in [
        ("ClusterRole", json!({"rules": rules}), json!({"rules": []})),
        ("ClusterRoleBinding", json!({"roleRef": view, "subjects": [subject]}), json!({"subjects": []})),
    ] {
        let path = format!("{RBAC}/{}s", kind.to_lowercase());
        let create = |number: usize| {
            let mut object: Value = object.clone();
            object["metadata"] = json!({"name": format!("filling-{number}")});
            curl.send("POST", &path, &object.to_string())
        };
        let why = format!("exceeded quota: the {kind}s of a virtual cluster are limited to");
        let mut made = 0;
        loop {
            let answer = create(made)?;
            if answer.code != 201 {
                answer.refused(403, "Forbidden", &why)?;
                break;
            }
            made += 1;
            ensure!(made < MOST, "nobody bounds objects of kind {kind}");
        }
        // What becomes smaller makes room.
        let answer =
            curl.send_as("PATCH", &format!("{path}/filling-0"), "application/merge-patch+json", &small.to_string())?;
        ensure!(answer.code == 200, "{answer:?}");
        eventually(SOON, || {
            let answer = create(made)?;
            ensure!(answer.code == 201, "{answer:?}");
            Ok(())
        })
        .context("there is no room again")?;
    }
    memory.is_bounded()
}

/// The host needs hundreds of milliseconds for each.
pub(super) fn of_many_values_are_limited(host: Arc<HostCluster>) -> anyhow::Result<()> {
    let (site, cluster, other) = site(host, "heavy", "")?;
    let [own, other] = [cluster, other].map(|cluster| {
        let kubectl = site.administrator(&cluster, Route::Path)?;
        site.curl_like(&kubectl, &cluster, Route::Path)
    });
    let (own, other) = (own?, other?);
    let values = vec!["0"; 150_000].join(",");
    let path = "/api/v1/namespaces/default/configmaps?dryRun=All";
    let map = format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"heavy"}},"values":[{values}]}}"#);
    // No object of a built-in kind has so many.
    own.send("POST", path, &map)?.refused(413, "RequestEntityTooLarge", "the object has too many fields")?;
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "heavies.limits.example.com"},
        "spec": {
            "group": "limits.example.com",
            "names": {"kind": "Heavy", "plural": "heavies"},
            "scope": "Namespaced",
            "versions": [{
                "name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}},
            }],
        },
    });
    let definition = definition.to_string();
    let body = format!(r#"{},"values":[{values}]}}"#, &definition[..definition.len() - 1]);
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All";
    let mut accepted = 0;
    let refused = loop {
        let answer = own.send("POST", definitions, &body)?;
        if answer.code != 201 {
            break answer;
        }
        accepted += 1;
        ensure!(accepted < MOST, "nobody limits them");
    };
    ensure!(accepted > 0, "the first is refused: {refused:?}");
    refused.refused(429, "TooManyRequests", "this cluster has sent too many objects")?;
    // Neither other objects of the cluster nor such objects of others.
    let small = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"light"}}"#;
    for (curl, path, body) in [(&own, path, small), (&other, definitions, body.as_str())] {
        let answer = curl.send("POST", path, body)?;
        ensure!(answer.code == 201, "{answer:?}");
    }
    Ok(())
}

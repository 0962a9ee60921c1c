//! Objects that the agent stores in memory, and objects that need much time on the host.

use std::sync::Arc;

use anyhow::{Context, ensure};
use atoll_tests::kubectl::CONDITION_TIMEOUT;
use atoll_tests::{HostCluster, Route, eventually};
use serde_json::{Value, json};

use super::{Memory, site};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// More objects than fit into the budget.
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
            let response = create(made)?;
            if response.code != 201 {
                response.refused(403, "Forbidden", &why)?;
                break;
            }
            made += 1;
            ensure!(made < MOST, "objects of kind {kind} are not limited");
        }
        // Smaller objects free memory.
        let response =
            curl.send_as("PATCH", &format!("{path}/filling-0"), "application/merge-patch+json", &small.to_string())?;
        ensure!(response.code == 200, "{response:?}");
        eventually(CONDITION_TIMEOUT, || {
            let response = create(made)?;
            ensure!(response.code == 201, "{response:?}");
            Ok(())
        })
        .context("the memory is not freed")?;
    }
    memory.is_bounded()
}

/// Objects for which the host needs hundreds of milliseconds each.
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
    // No valid object of a built-in kind has so many elements.
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
        let response = own.send("POST", definitions, &body)?;
        if response.code != 201 {
            break response;
        }
        accepted += 1;
        ensure!(accepted < MOST, "they are not limited");
    };
    ensure!(accepted > 0, "the first is refused: {refused:?}");
    refused.refused(429, "TooManyRequests", "this cluster has sent too many objects")?;
    // The limit applies neither to other objects of the cluster nor to other clusters.
    let small = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"light"}}"#;
    for (curl, path, body) in [(&own, path, small), (&other, definitions, body.as_str())] {
        let response = curl.send("POST", path, body)?;
        ensure!(response.code == 201, "{response:?}");
    }
    Ok(())
}

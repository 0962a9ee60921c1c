//! A certificate or a token of one virtual cluster is invalid in another one.

use anyhow::{Context, ensure};
use atoll_tests::{Route, VirtualSite};
use serde_json::json;

use super::{BEIJING, HANGZHOU};

pub(super) fn end_at_their_cluster(site: &VirtualSite) -> anyhow::Result<()> {
    // A token from the endpoint, not from the host.
    let request = r#"{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}}"#;
    let path = "/api/v1/namespaces/kube-system/serviceaccounts/default/token";
    let response = site.curl(BEIJING, Route::Path)?.send("POST", path, request)?;
    ensure!(response.code == 201, "{}", response.body);
    let response = response.json()?;
    let token = response["status"]["token"].as_str().context("no token")?;
    for route in Route::ALL {
        let own = site.curl(BEIJING, route)?;
        let foreign = site.curl(HANGZHOU, route)?;
        ensure!(foreign.get("/api/v1/nodes")?.code == 200, "its own certificate, {route:?}");
        for (what, client) in [("certificate", own.clone()), ("token", own.clone().with_token(token))] {
            // Its own cluster authenticates it. This service account has no rights, so the response names it.
            let home = client.get("/api/v1/namespaces/kube-system/pods")?;
            let known = if what == "token" { 403 } else { 200 };
            ensure!(home.code == known, "{what} at home, {route:?}: {} {}", home.code, home.body);
            let name = "system:serviceaccount:kube-system:default";
            ensure!(known == 200 || home.body.contains(name), "{}", home.body);
            for path in ["/api/v1/namespaces/kube-system/pods", "/api/v1/nodes", "/api", "/version"] {
                client
                    .at(&foreign)
                    .get(path)?
                    .refused(401, "Unauthorized", "Unauthorized")
                    .with_context(|| format!("{what}, {route:?}, {path}"))?;
            }
        }
    }
    Ok(())
}

/// A token can be bound to a node only if the node exists, and then names it.
pub(super) fn are_bound_to_own_nodes(site: &VirtualSite) -> anyhow::Result<()> {
    let curl = site.curl(BEIJING, Route::Path)?;
    let path = "/api/v1/namespaces/kube-system/serviceaccounts/default/token";
    for (node, code) in [("beijing-1", 201), ("hangzhou-1", 422), ("nowhere-1", 422)] {
        let bound = json!({"kind": "Node", "apiVersion": "v1", "name": node});
        let request = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"boundObjectRef": bound},
        });
        let response = curl.send("POST", path, &request.to_string())?;
        ensure!(response.code == code, "{node}: {} {}", response.code, response.body);
        if code == 422 {
            response.refused(
                422,
                "Invalid",
                &format!("spec.boundObjectRef.name: Invalid value: \"{node}\": not a node"),
            )?;
        }
    }
    Ok(())
}

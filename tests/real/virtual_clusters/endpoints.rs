//! An endpoint is the same cluster on all routes.

use anyhow::{Context, ensure};
use atoll_tests::{Curl, Route, VirtualSite};

use super::{BEIJING, HANGZHOU};

pub(super) fn are_one_cluster(site: &VirtualSite) -> anyhow::Result<()> {
    let identity = |cluster, route| {
        let kubectl = site.administrator(cluster, route)?;
        let uid = kubectl.ok(&["get", "namespace", "kube-system", "-o", "jsonpath={.metadata.uid}"])?;
        let nodes = kubectl.ok(&["get", "nodes", "-o", "name"])?;
        anyhow::Ok((uid, nodes))
    };
    for (cluster, nodes) in
        [(BEIJING, "node/beijing-1\nnode/beijing-2\n"), (HANGZHOU, "node/hangzhou-1\nnode/hangzhou-2\n")]
    {
        let first = identity(cluster, Route::Proxy)?;
        ensure!(first.1 == nodes, "{}", first.1);
        for route in [Route::Path, Route::Sni] {
            ensure!(identity(cluster, route)? == first, "{cluster}, {route:?}");
        }
    }
    ensure!(identity(BEIJING, Route::Path)?.0 != identity(HANGZHOU, Route::Path)?.0);
    // The cluster of the TLS handshake and that of the request must be equal.
    let misled = site.curl(BEIJING, Route::Sni)?.with(&["--header", "Host: ke-hangzhou.atoll.internal"]);
    misled.get("/api/v1/nodes")?.refused(400, "BadRequest", "Host header")?;
    Ok(())
}

/// Compares with the response of the host.
pub(super) fn hidden_fields_stay_hidden(site: &VirtualSite) -> anyhow::Result<()> {
    let address = &site.host().api_servers()?[0];
    let host = Curl::directly(address, &site.host().dir().join("pki/ca.crt"));
    for route in Route::ALL {
        let endpoint = site.curl(BEIJING, route)?.anonymous();
        for path in ["/livez", "/readyz", "/healthz", "/version"] {
            let (expected, seen) = (host.get(path)?, endpoint.get(path)?);
            ensure!(expected.code == 200 && seen.code == 200, "{route:?} {path}: {}", seen.code);
            ensure!(expected.body == seen.body, "{route:?} {path}: {}", seen.body);
        }
        for path in [
            "/api",
            "/apis",
            "/openapi/v2",
            "/metrics",
            "/nowhere",
            "/api/v1/nodes",
            "/api/v1/namespaces",
            "/api/v1/namespaces/kube-system/secrets",
            "/apis/apps/v1/deployments",
        ] {
            let (expected, seen) = (host.get(path)?, endpoint.get(path)?);
            ensure!(expected.code == seen.code, "{route:?} {path}: {} instead of {}", seen.code, expected.code);
            let (expected, seen) = (expected.json()?, seen.json().context("no Status")?);
            for field in ["reason", "message", "code"] {
                ensure!(
                    expected[field] == seen[field],
                    "{route:?} {path}: {} instead of {}",
                    seen[field],
                    expected[field]
                );
            }
        }
        let nobody = endpoint.with_token("nobody's");
        nobody.get("/api")?.refused(401, "Unauthorized", "Unauthorized")?;
    }
    Ok(())
}

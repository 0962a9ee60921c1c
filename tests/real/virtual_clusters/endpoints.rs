//! An endpoint is one cluster, by whatever way a client comes.

use anyhow::{Context, ensure};
use atoll_tests::{Curl, VirtualSite, Way};

use super::{BEIJING, HANGZHOU};

pub(super) fn are_one_cluster(site: &VirtualSite) -> anyhow::Result<()> {
    let identity = |cluster, way| {
        let kubectl = site.administrator(cluster, way)?;
        let uid = kubectl.ok(&["get", "namespace", "kube-system", "-o", "jsonpath={.metadata.uid}"])?;
        let nodes = kubectl.ok(&["get", "nodes", "-o", "name"])?;
        anyhow::Ok((uid, nodes))
    };
    for (cluster, nodes) in
        [(BEIJING, "node/beijing-1\nnode/beijing-2\n"), (HANGZHOU, "node/hangzhou-1\nnode/hangzhou-2\n")]
    {
        let first = identity(cluster, Way::Proxy)?;
        ensure!(first.1 == nodes, "{}", first.1);
        for way in [Way::Path, Way::Sni] {
            ensure!(identity(cluster, way)? == first, "{cluster}, {way:?}");
        }
    }
    ensure!(identity(BEIJING, Way::Path)?.0 != identity(HANGZHOU, Way::Path)?.0);
    // The cluster of the TLS handshake and that of the request must be equal.
    let misled = site.curl(BEIJING, Way::Sni)?.with(&["--header", "Host: ke-hangzhou.atoll.internal"]);
    misled.get("/api/v1/nodes")?.refused(400, "BadRequest", "Host header")?;
    Ok(())
}

/// The host's own answer is the oracle.
pub(super) fn nobody_sees_what_a_cluster_shows_nobody(site: &VirtualSite) -> anyhow::Result<()> {
    let address = &site.host().api_servers()?[0];
    let host = Curl::directly(address, &site.host().dir().join("pki/ca.crt"));
    for way in Way::ALL {
        let endpoint = site.curl(BEIJING, way)?.anonymous();
        for path in ["/livez", "/readyz", "/healthz", "/version"] {
            let (expected, seen) = (host.get(path)?, endpoint.get(path)?);
            ensure!(expected.code == 200 && seen.code == 200, "{way:?} {path}: {}", seen.code);
            ensure!(expected.body == seen.body, "{way:?} {path}: {}", seen.body);
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
            ensure!(expected.code == seen.code, "{way:?} {path}: {} instead of {}", seen.code, expected.code);
            let (expected, seen) = (expected.json()?, seen.json().context("no Status")?);
            for field in ["reason", "message", "code"] {
                ensure!(
                    expected[field] == seen[field],
                    "{way:?} {path}: {} instead of {}",
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

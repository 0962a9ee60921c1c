//! The order of checks: the agent authorizes a caller before it reads the body, and before it sends requests as itself.

use anyhow::{Context, ensure};
use atoll_tests::{Route, VirtualSite};

use super::{BEIJING, namespace};

/// Writes of every class of resource.
const WRITES: [(&str, &str); 9] = [
    ("POST", "/api/v1/namespaces/default/configmaps"),
    ("PUT", "/api/v1/namespaces/default/configmaps/a"),
    ("PATCH", "/apis/apps/v1/namespaces/default/deployments/a"),
    ("DELETE", "/api/v1/namespaces/default"),
    ("POST", "/api/v1/namespaces/no-such-namespace/configmaps"),
    ("POST", "/api/v1/namespaces"),
    ("PATCH", "/apis/rbac.authorization.k8s.io/v1/clusterroles/a"),
    ("PUT", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/a.example.com"),
    ("POST", "/apis/nobody.example.com/v1/things"),
];

/// The bodies of the requests do not come. An agent that waits for them would not respond.
pub(super) fn bodies_are_read_after_authorization(site: &VirtualSite) -> anyhow::Result<()> {
    for route in Route::ALL {
        let nobody = site.curl(BEIJING, route)?.anonymous();
        let stranger = site.curl_like(&site.user(BEIJING, "stranger")?, BEIJING, route)?;
        for (client, name) in [(&nobody, "system:anonymous"), (&stranger, "stranger")] {
            for (method, path) in WRITES {
                let response = client.send_head(method, path)?;
                let says = format!("is forbidden: User \"{name}\" cannot ");
                response.refused(403, "Forbidden", &says).with_context(|| format!("{route:?} {method} {path}"))?;
            }
        }
    }
    Ok(())
}

/// Reads for which the agent would send requests as itself if the caller had the right. The audit log of the host
/// contains all requests.
pub(super) fn the_host_gets_requests_after_authorization(site: &VirtualSite) -> anyhow::Result<()> {
    let stranger = site.curl_like(&site.user(BEIJING, "stranger")?, BEIJING, Route::Sni)?;
    for path in [
        "/api/v1/namespaces/looked-for/pods",
        "/api/v1/namespaces/looked-for",
        "/apis/looked-for.example.com/v1/things/looked-for",
        "/api/v1/persistentvolumes/looked-for",
    ] {
        stranger.get(path)?.refused(403, "Forbidden", "is forbidden: User \"stranger\" cannot ")?;
    }
    // This request comes after all of the above in the log.
    let kubectl = site.administrator(BEIJING, Route::Proxy)?;
    kubectl.ok_with(&["create", "-f", "-"], &namespace("asked-last"))?;
    let log = std::fs::read_to_string(site.host().dir().join("audit.log"))?;
    ensure!(log.contains("asked-last-ke-beijing"), "the log is not complete");
    let asked: Vec<_> = log.lines().filter(|line| line.contains("looked-for")).collect();
    ensure!(asked.is_empty(), "the host got requests: {asked:?}");
    Ok(())
}

//! The order of a request: a caller is authorised before their body is read, and before the agent asks the host for
//! anything in its own name.

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

/// Each request announces a body that never comes. An agent that waited for it would not answer.
pub(super) fn bodies_are_read_of_the_authorised(site: &VirtualSite) -> anyhow::Result<()> {
    for route in Route::ALL {
        let nobody = site.curl(BEIJING, route)?.anonymous();
        let stranger = site.curl_like(&site.user(BEIJING, "stranger")?, BEIJING, route)?;
        for (client, name) in [(&nobody, "system:anonymous"), (&stranger, "stranger")] {
            for (method, path) in WRITES {
                let answer = client.send_head(method, path)?;
                let says = format!("is forbidden: User \"{name}\" cannot ");
                answer.refused(403, "Forbidden", &says).with_context(|| format!("{route:?} {method} {path}"))?;
            }
        }
    }
    Ok(())
}

/// Reads that the agent would answer by requests of its own. The host's audit log has them all.
pub(super) fn the_host_is_asked_for_the_authorised(site: &VirtualSite) -> anyhow::Result<()> {
    let stranger = site.curl_like(&site.user(BEIJING, "stranger")?, BEIJING, Route::Sni)?;
    for path in [
        "/api/v1/namespaces/looked-for/pods",
        "/api/v1/namespaces/looked-for",
        "/apis/looked-for.example.com/v1/things/looked-for",
        "/api/v1/persistentvolumes/looked-for",
    ] {
        stranger.get(path)?.refused(403, "Forbidden", "is forbidden: User \"stranger\" cannot ")?;
    }
    // What is authorised after that is in the log after that.
    let kubectl = site.administrator(BEIJING, Route::Proxy)?;
    kubectl.ok_with(&["create", "-f", "-"], &namespace("asked-last"))?;
    let log = std::fs::read_to_string(site.host().dir().join("audit.log"))?;
    ensure!(log.contains("asked-last-ke-beijing"), "the log is not complete");
    let asked: Vec<_> = log.lines().filter(|line| line.contains("looked-for")).collect();
    ensure!(asked.is_empty(), "the host was asked: {asked:?}");
    Ok(())
}

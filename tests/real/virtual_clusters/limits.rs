//! Names that are as long as names may be, and targets that are as long as URIs may be.

use anyhow::{Context, ensure};
use atoll_tests::{Route, VirtualSite};

use super::{BEIJING, namespace};

/// The longest label of DNS (RFC 1123 section 2.1): no room is left for the cluster's name on the host.
const LONGEST: usize = 63;

/// The maximum length of a URI, in bytes: names of the host and further parameters do not fit any more.
const LONGEST_TARGET: usize = 65_534;

pub(super) fn targets_at_the_limit_are_answered(site: &VirtualSite) -> anyhow::Result<()> {
    const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
    // curl's own HTTP/2 has no room for such a head.
    let curl = site.curl(BEIJING, Route::Proxy)?.with(&["--http1.1"]);
    let role = r#"{"metadata":{"name":"limits"},"rules":[]}"#;
    let binding = r#"{"metadata":{"name":"limits"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"view"}}"#;
    for (method, path, body) in [
        ("GET", "/api/v1/pods?includeObject=None&padding=".to_owned(), ""),
        ("GET", "/api/v1/namespaces?includeObject=None&padding=".to_owned(), ""),
        ("GET", "/api/v1/namespaces/default/pods?includeObject=None&padding=".to_owned(), ""),
        ("POST", format!("{RBAC}/clusterroles?padding="), role),
        ("POST", format!("{RBAC}/clusterrolebindings?padding="), binding),
    ] {
        let target = format!("{path}{}", "a".repeat(LONGEST_TARGET - path.len()));
        let answer = curl.send(method, &target, body)?;
        ensure!(answer.code == 414, "{method} {path}: {answer:?}");
        let message = answer.json()?["message"].to_string();
        ensure!(
            message.contains("the request target with host names has more than 65534 bytes"),
            "{method} {path}: {message}"
        );
    }
    // What looks like an object field by field is none.
    let path = "/apis/scheduling.k8s.io/v1/priorityclasses";
    for body in [r#"[{"name":"limits"}]"#, r#"{"metadata":["limits"],"value":7}"#] {
        curl.send("POST", path, body)?.refused(400, "BadRequest", "cannot unmarshal array")?;
    }
    Ok(())
}

pub(super) fn names_at_the_limit_work(site: &VirtualSite) -> anyhow::Result<()> {
    let kubectl = site.administrator(BEIJING, Route::Proxy)?;
    let curl = site.curl(BEIJING, Route::Path)?;
    // They differ in their last letter only: what shortens them must not make them one.
    let names = ['a', 'b'].map(|last| format!("{}{last}", "n".repeat(LONGEST - 1)));
    for name in &names {
        kubectl.ok_with(&["create", "-f", "-"], &namespace(name))?;
        let config_map = format!(
            r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"only","namespace":"{name}"}},"data":{{"of":"{name}"}}}}"#
        );
        kubectl.ok_with(&["create", "-f", "-"], &config_map)?;
    }
    for name in &names {
        let of =
            kubectl.ok(&["get", "configmap", "only", "-n", name, "-o", "jsonpath={.metadata.namespace} {.data.of}"])?;
        ensure!(of == format!("{name} {name}"), "{of}");
    }
    let long = "n".repeat(LONGEST + 1);
    let refused = curl.send("POST", "/api/v1/namespaces", &namespace(&long))?;
    ensure!((400..500).contains(&refused.code), "{}", refused.code);
    let status = refused.json().context("no Status")?;
    ensure!(status["message"].as_str().is_some_and(|text| text.contains("metadata.name: Invalid value")), "{status}");
    let path = format!("/api/v1/namespaces/{}/configmaps", names[0]);
    let config_map = format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{}"}}}}"#, "n".repeat(254));
    curl.send("POST", &path, &config_map)?.refused(422, "Invalid", "metadata.name")?;
    Ok(())
}

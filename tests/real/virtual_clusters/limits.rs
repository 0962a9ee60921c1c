//! Names and URIs of the maximum length.

use anyhow::{Context, ensure};
use atoll_tests::{Route, VirtualSite};

use super::{BEIJING, namespace};

/// The maximum length of a DNS label (RFC 1123 section 2.1). The host name cannot also contain the name of the cluster.
const LONGEST: usize = 63;

/// The maximum length of a URI, in bytes. Longer host names and more parameters exceed it.
const LONGEST_TARGET: usize = 65_534;

pub(super) fn targets_at_the_limit_are_answered(site: &VirtualSite) -> anyhow::Result<()> {
    const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
    // curl limits the size of HTTP/2 headers.
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
        let response = curl.send(method, &target, body)?;
        ensure!(response.code == 414, "{method} {path}: {response:?}");
        let message = response.json()?["message"].to_string();
        ensure!(
            message.contains("the request target with host names has more than 65534 bytes"),
            "{method} {path}: {message}"
        );
    }
    // This value has the fields of an object, but is not one.
    let path = "/apis/scheduling.k8s.io/v1/priorityclasses";
    for body in [r#"[{"name":"limits"}]"#, r#"{"metadata":["limits"],"value":7}"#] {
        curl.send("POST", path, body)?.refused(400, "BadRequest", "cannot unmarshal array")?;
    }
    Ok(())
}

pub(super) fn names_at_the_limit_work(site: &VirtualSite) -> anyhow::Result<()> {
    let kubectl = site.administrator(BEIJING, Route::Proxy)?;
    let curl = site.curl(BEIJING, Route::Path)?;
    // The names differ only in their last letter. Their shortened host names must differ too.
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

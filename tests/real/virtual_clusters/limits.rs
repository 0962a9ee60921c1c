//! Names that are as long as names may be.

use anyhow::{Context, ensure};
use atoll_tests::{VirtualSite, Way};

use super::{BEIJING, namespace};

/// The longest label of DNS (RFC 1123 section 2.1): no room is left for the cluster's name on the host.
const LONGEST: usize = 63;

pub(super) fn names_at_the_limit_work(site: &VirtualSite) -> anyhow::Result<()> {
    let kubectl = site.administrator(BEIJING, Way::Proxy)?;
    let curl = site.curl(BEIJING, Way::Path)?;
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

//! Objects that are nested as deeply as the host allows, and an agent that starts.

use std::time::Duration;

use anyhow::{Context, ensure};
use atoll_tests::{HostCluster, Nodes, Site, eventually, site};
use serde_json::Value;

const CLUSTERS: [&str; 2] = ["deep-a", "deep-b"];

/// The levels of managed fields of a Namespace, which the agent parses. serde_json parses fewer than 128.
const OF_NAMESPACE: usize = 200;
/// Those of a ConfigMap, which only passes through the agent. The host allows 10,000 for the whole object.
const OF_CONFIG_MAP: usize = 9_990;

const MAPS: &str = "/api/v1/configmaps";

/// The time in which a new agent serves its clusters.
const START: Duration = Duration::from_secs(30);

/// An object with managed fields of this many levels.
fn deep(kind: &str, name: &str, levels: usize) -> String {
    let fields = format!("{}{{}}{}", r#"{"f:a":"#.repeat(levels), "}".repeat(levels));
    let entry = format!(
        r#"{{"manager":"deep","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{fields}}}"#
    );
    format!(r#"{{"apiVersion":"v1","kind":"{kind}","metadata":{{"name":"{name}","managedFields":[{entry}]}}}}"#)
}

/// One virtual cluster writes such objects. The agent starts, and serves the other one.
pub(super) fn of_one_cluster_stop_no_other(host: &HostCluster) -> anyhow::Result<()> {
    let entries = CLUSTERS.map(|name| site::entry(name, "site-n"));
    let site = Site::start(&entries.each_ref().map(String::as_str), &CLUSTERS)?;
    let slices = CLUSTERS.map(|name| Nodes::Location("hangzhou").entry(name)).join(", ");
    let kubeconfig = host.agent_kubeconfig();
    let body = format!("host: {{kubeconfig: {}}}\nvirtualClusters: [{slices}]", kubeconfig.display());
    let mut agent = site.agent("site-n", &body)?;
    let (ours, theirs) = (site.administrator(CLUSTERS[0])?, site.administrator(CLUSTERS[1])?);
    let operator = host.kubectl();
    eventually(START, || ours.ok(&["create", "namespace", "aaa"]))?;

    let namespace = format!("aaa-{}", CLUSTERS[0]);
    let body_of_namespace = deep("Namespace", "aaa", OF_NAMESPACE);
    ours.ok_with(&["replace", "--raw", "/api/v1/namespaces/aaa", "-f", "-"], &body_of_namespace)?;
    let inside = format!("/api/v1/namespaces/{namespace}/configmaps");
    operator.ok_with(&["create", "--raw", &inside, "-f", "-"], &deep("ConfigMap", "aaa", OF_CONFIG_MAP))?;
    for (path, levels) in
        [(format!("/api/v1/namespaces/{namespace}"), OF_NAMESPACE), (format!("{inside}/aaa"), OF_CONFIG_MAP)]
    {
        let stored = operator.ok(&["get", "--raw", &path])?.matches(r#""f:a""#).count();
        ensure!(stored >= levels, "the host has stored {stored} levels of {path}");
    }

    agent.kill()?;
    let agent = site.agent("site-n", &body)?;
    eventually(START, || theirs.ok(&["get", "namespaces"])).context("after the agent has started")?;
    let list: Value = serde_json::from_str(&theirs.ok(&["get", "--raw", MAPS])?)?;
    let version = list["metadata"]["resourceVersion"].as_str().context("no resourceVersion")?;
    operator.ok(&["label", "configmap", "aaa", "-n", &namespace, "changed=yes"])?;
    theirs.ok(&["create", "configmap", "after", "-n", "default"])?;
    let path = format!("{MAPS}?watch=1&timeoutSeconds=3&resourceVersion={version}");
    let events = theirs.ok(&["get", "--raw", &path])?;
    ensure!(events.contains(r#""name":"after""#) && !events.contains("ERROR"), "{events}");
    ensure!(!agent.log().contains("panicked"), "{}", agent.log());
    operator.ok(&["delete", "namespace", &namespace, "--wait=false"]).map(drop)
}

//! Node ports: every virtual cluster can use the same manifest, although the host has each port only once.

use anyhow::{Context, ensure};
use atoll_tests::{Kubectl, Route, VirtualSite};
use serde_json::{Value, json};

use super::{BEIJING, HANGZHOU, namespace};

/// How a Service is created, and the requested port.
const WAYS: [(&str, &[&str], u16); 3] = [
    ("created", &["create", "-f", "-"], 30011),
    ("applied", &["apply", "-f", "-"], 30012),
    ("by-server", &["apply", "--server-side", "-f", "-"], 30013),
];

/// The annotation of the host with the requested port.
const REQUESTED: &str = "atoll.dev/asked-node-port.80.tcp";
const SHOWN: &str = "atoll.dev/node-ports";

fn service(of: &str, name: &str, ports: &[(u16, u16)]) -> Value {
    let port = |&(port, node): &(u16, u16)| json!({"name": format!("p{port}"), "port": port, "nodePort": node});
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": of, "annotations": {"a": "b"}},
        "spec": {"type": "NodePort", "selector": {"app": "web"}, "ports": ports.iter().map(port).collect::<Vec<_>>()},
    })
}

fn read(kubectl: &Kubectl, of: &str, name: &str) -> anyhow::Result<Value> {
    let text = kubectl.ok(&["get", "service", name, "-n", of, "-o", "json", "--show-managed-fields"])?;
    Ok(serde_json::from_str(&text)?)
}

fn node_port(service: &Value) -> Option<u64> {
    service["spec"]["ports"][0]["nodePort"].as_u64()
}

/// The requested ports in the annotation of the host.
fn asked_for(service: &Value) -> Option<u64> {
    service["metadata"]["annotations"][REQUESTED].as_str()?.parse().ok()
}

/// Both clusters with a new namespace.
fn both(site: &VirtualSite, of: &str) -> anyhow::Result<[Kubectl; 2]> {
    let clusters = [site.administrator(BEIJING, Route::Proxy)?, site.administrator(HANGZHOU, Route::Proxy)?];
    for kubectl in &clusters {
        kubectl.ok_with(&["create", "-f", "-"], &namespace(of))?;
    }
    Ok(clusters)
}

pub(super) fn are_shown_as_asked(site: &VirtualSite) -> anyhow::Result<()> {
    let [beijing, hangzhou] = both(site, "ports")?;
    let host = site.host().kubectl();
    for (name, way, port) in WAYS {
        let manifest = service("ports", name, &[(80, port)]).to_string();
        beijing.ok_with(way, &manifest)?;
        let second = hangzhou.run_with(way, &manifest)?;
        let stored = read(&host, "ports-ke-hangzhou", name)?;
        let real = node_port(&stored).context("the Service has no port on the host")?;
        ensure!(second.code == 0, "{name}: {second:?}");
        ensure!(node_port(&read(&host, "ports-ke-beijing", name)?) == Some(port.into()), "{name}");
        ensure!(real != u64::from(port) && asked_for(&stored) == Some(port.into()), "{stored}");
        let warning = format!("node port {port} is in use on the host cluster: its nodes listen on {real} instead");
        ensure!(second.stderr.contains(&warning), "{second:?}");

        let first = read(&beijing, "ports", name)?;
        ensure!(node_port(&first) == Some(port.into()) && first["metadata"]["annotations"].get(SHOWN).is_none());
        let second = read(&hangzhou, "ports", name)?;
        ensure!(node_port(&second) == Some(port.into()), "{second}");
        ensure!(second["metadata"]["annotations"][SHOWN] == format!("{port}={real}"), "{second}");
        ensure!(!second.to_string().contains("asked-node-port"), "{second}");
        let listed = hangzhou.ok(&["get", "services", "-A", "-o", "json"])?;
        ensure!(!listed.contains("asked-node-port") && listed.contains(&format!("{port}={real}")), "{listed}");
        // Tables contain the actual port.
        let table = hangzhou.ok(&["get", "services", "-n", "ports"])?;
        ensure!(table.contains(&format!("80:{real}/TCP")), "{table}");

        keeps_its_port(&hangzhou, &host, name, way, &manifest, real)?;
        // The Service keeps its port after the deletion of the other one.
        beijing.ok(&["delete", "service", name, "-n", "ports"])?;
        keeps_its_port(&hangzhou, &host, name, way, &manifest, real)?;
    }
    Ok(())
}

/// Identical writes change nothing, and other writes keep the port.
fn keeps_its_port(
    kubectl: &Kubectl,
    host: &Kubectl,
    name: &str,
    way: &[&str],
    manifest: &str,
    real: u64,
) -> anyhow::Result<()> {
    let before = read(host, "ports-ke-hangzhou", name)?;
    let get = ["get", "service", name, "-n", "ports", "-o", "json"];
    let again = if way[0] == "create" { &["replace", "-f", "-"] } else { way };
    let written = if way[0] == "create" { kubectl.ok(&get)? } else { manifest.to_owned() };
    for _ in 0..2 {
        kubectl.ok_with(again, &written)?;
    }
    let after = read(host, "ports-ke-hangzhou", name)?;
    ensure!(after == before, "{again:?} changed {before} to {after}");

    let patch = |kind: &str, patch: &Value| {
        let words = ["patch", "service", name, "-n", "ports", "--type", kind, "-p", &patch.to_string()];
        kubectl.ok(&words)
    };
    let asked = node_port(&serde_json::from_str(&kubectl.ok(&get)?)?).context("the Service shows no port")?;
    let target = |target: u16| json!({"port": 80, "targetPort": target, "nodePort": asked, "name": "p80"});
    patch("strategic", &json!({"spec": {"ports": [target(8081)]}}))?;
    patch("merge", &json!({"spec": {"ports": [target(8082)]}}))?;
    patch("json", &json!([{"op": "replace", "path": "/spec/ports/0/targetPort", "value": 8083}]))?;
    patch("json", &json!([{"op": "replace", "path": "/spec/ports/0", "value": target(8084)}]))?;
    patch("merge", &json!({"metadata": {"annotations": {REQUESTED: "1", SHOWN: null}}}))?;
    kubectl.ok(&["label", "service", name, "-n", "ports", "--overwrite", "tier=front"])?;
    let changed = read(host, "ports-ke-hangzhou", name)?;
    ensure!(changed["spec"]["ports"][0]["targetPort"] == 8084 && node_port(&changed) == Some(real), "{changed}");
    ensure!(asked_for(&changed) == Some(asked), "{changed}");
    // The port is unchanged.
    patch("json", &json!([{"op": "replace", "path": "/spec/ports/0/targetPort", "value": 80}]))?;
    Ok(())
}

/// A cluster that already uses a port gets the error of an API server.
pub(super) fn of_its_own_are_taken(site: &VirtualSite) -> anyhow::Result<()> {
    let [beijing, hangzhou] = both(site, "own-ports")?;
    let manifest = service("own-ports", "one", &[(80, 30021), (81, 30022)]).to_string();
    let other = service("own-ports", "two", &[(80, 30021)]).to_string();
    for kubectl in [&beijing, &hangzhou] {
        kubectl.ok_with(&["create", "-f", "-"], &manifest)?;
        let refused = kubectl.run_with(&["create", "-f", "-"], &other)?;
        let expected = "spec.ports[0].nodePort: Invalid value: 30021: provided port is already allocated";
        ensure!(refused.stderr.contains(expected), "{refused:?}");
        ensure!(kubectl.ok(&["get", "services", "-n", "own-ports", "-o", "name"])? == "service/one\n");
    }
    let shown = read(&hangzhou, "own-ports", "one")?;
    let ports: Vec<_> = shown["spec"]["ports"].as_array().into_iter().flatten().map(|port| &port["nodePort"]).collect();
    ensure!(ports == [30021, 30022], "{shown}");
    // The actual port is hidden, so another Service can request this number, and gets another actual port.
    let stored = read(&site.host().kubectl(), "own-ports-ke-hangzhou", "one")?;
    let got = u16::try_from(node_port(&stored).context("no port")?)?;
    hangzhou.ok_with(&["create", "-f", "-"], &service("own-ports", "three", &[(80, got)]).to_string())?;
    ensure!(node_port(&read(&hangzhou, "own-ports", "three")?) == Some(got.into()));
    // A Service that requests another free port gets it, and the annotation is removed.
    let moved = service("own-ports", "one", &[(80, 30023), (81, 30022)]).to_string();
    hangzhou.ok_with(&["replace", "-f", "-"], &moved)?;
    let stored = read(&site.host().kubectl(), "own-ports-ke-hangzhou", "one")?;
    ensure!(
        node_port(&stored) == Some(30023) && stored["metadata"]["annotations"].get(REQUESTED).is_none(),
        "{stored}"
    );
    Ok(())
}

/// The health check port is a node port too. Typed clients write protobuf.
pub(super) fn of_every_sort(site: &VirtualSite) -> anyhow::Result<()> {
    let [beijing, hangzhou] = both(site, "sorts")?;
    let mut balanced = service("sorts", "balanced", &[(80, 30031)]);
    let spec = &mut balanced["spec"];
    spec["type"] = "LoadBalancer".into();
    spec["externalTrafficPolicy"] = "Local".into();
    spec["healthCheckNodePort"] = 30032.into();
    for kubectl in [&beijing, &hangzhou] {
        kubectl.ok_with(&["apply", "-f", "-"], &balanced.to_string())?;
        kubectl.ok_with(&["apply", "-f", "-"], &balanced.to_string())?;
        let shown = read(kubectl, "sorts", "balanced")?;
        ensure!(node_port(&shown) == Some(30031) && shown["spec"]["healthCheckNodePort"] == 30032, "{shown}");
        let typed = ["create", "service", "nodeport", "typed", "--tcp=80", "--node-port=30033", "-n", "sorts"];
        kubectl.ok(&typed)?;
        ensure!(node_port(&read(kubectl, "sorts", "typed")?) == Some(30033));
        // A client that removes all annotations removes only visible ones.
        let all = r#"{"metadata":{"annotations":null}}"#;
        kubectl.ok(&["patch", "service", "balanced", "-n", "sorts", "--type=merge", "-p", all])?;
        ensure!(read(kubectl, "sorts", "balanced")?["spec"] == shown["spec"]);
        // A dry run gets the same response.
        let dry =
            ["create", "service", "nodeport", "dry", "--tcp=80", "-n", "default", "--dry-run=server", "-o", "json"];
        let other: Value = serde_json::from_str(&kubectl.ok(&[&dry[..], &["--node-port=30034"]].concat())?)?;
        ensure!(node_port(&other) == Some(30034), "{other}");
        kubectl.fails(&[&dry[..], &["--node-port=30031"]].concat())?;
    }
    let stored = read(&site.host().kubectl(), "sorts-ke-hangzhou", "balanced")?;
    ensure!(stored["spec"]["healthCheckNodePort"] != 30032 && node_port(&stored) != Some(30031), "{stored}");
    Ok(())
}

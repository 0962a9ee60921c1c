//! Cluster-scoped custom resources: every virtual cluster of a host can have an object with the same name.

use std::io::{BufRead, BufReader};
use std::time::Duration;

use anyhow::{Context, ensure};
use atoll_tests::kubectl::{CONDITION_TIMEOUT, end};
use atoll_tests::{Kubectl, Route, VirtualSite, eventually};
use serde_json::{Value, json};

use super::{BEIJING, HANGZHOU, namespace};

/// The time limit until the garbage collector of the host knows a new kind, and then a deleted owner.
const COLLECTED: Duration = Duration::from_secs(120);

/// A custom kind of the operator of the host, with names from `singular`.
fn definition(singular: &str) -> String {
    let (plural, kind) = (format!("{singular}s"), format!("{}{}", singular[..1].to_uppercase(), &singular[1..]));
    let scale = json!({"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"});
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version = json!({
        "name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}, "scale": scale},
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.custom.example.com")},
        "spec": {
            "group": "custom.example.com", "scope": "Cluster", "versions": [version],
            "names": {"plural": plural, "singular": singular, "kind": kind, "listKind": format!("{kind}List")},
        },
    })
    .to_string()
}

fn define(site: &VirtualSite, singular: &str) -> anyhow::Result<()> {
    let host = site.host().kubectl();
    host.ok_with(&["apply", "-f", "-"], &definition(singular))?;
    let name = format!("crd/{singular}s.custom.example.com");
    // A new definition has no conditions, which is an error for `kubectl wait`.
    eventually(CONDITION_TIMEOUT, || host.ok(&["wait", "--for=condition=Established", &name, "--timeout=30s"]))?;
    Ok(())
}

fn object(kind: &str, name: &str, size: u32) -> String {
    json!({
        "apiVersion": "custom.example.com/v1", "kind": kind, "metadata": {"name": name, "labels": {"tier": "front"}},
        "spec": {"size": size, "replicas": 1, "name": "sprocket.ke-beijing"},
    })
    .to_string()
}

fn read(kubectl: &Kubectl, of: &str, name: &str) -> anyhow::Result<Value> {
    Ok(serde_json::from_str(&kubectl.ok(&["get", of, name, "-o", "json", "--show-managed-fields"])?)?)
}

/// Both clusters, after the discovery of a new kind.
fn both(site: &VirtualSite, singular: &str) -> anyhow::Result<[Kubectl; 2]> {
    define(site, singular)?;
    let clusters = [site.administrator(BEIJING, Route::Proxy)?, site.administrator(HANGZHOU, Route::Proxy)?];
    for kubectl in &clusters {
        eventually(CONDITION_TIMEOUT, || kubectl.ok(&["get", &format!("{singular}s.custom.example.com")]))?;
    }
    Ok(clusters)
}

pub(super) fn the_same_goes_to_all(site: &VirtualSite) -> anyhow::Result<()> {
    let clusters = both(site, "sprocket")?;
    let host = site.host().kubectl();
    for (number, (kubectl, cluster)) in clusters.iter().zip([BEIJING, HANGZHOU]).enumerate() {
        let size = u32::try_from(number)?;
        kubectl.ok_with(&["create", "-f", "-"], &object("Sprocket", "one", size))?;
        let again = kubectl.run_with(&["create", "-f", "-"], &object("Sprocket", "one", size))?;
        ensure!(again.stderr.contains("sprockets.custom.example.com \"one\" already exists"), "{again:?}");
        kubectl.ok_with(&["apply", "-f", "-"], &object("Sprocket", "two", size))?;
        kubectl.ok_with(&["apply", "--server-side", "-f", "-"], &object("Sprocket", "three", size))?;
        // Again, with a generated name.
        let path = "/apis/custom.example.com/v1/sprockets/three?fieldManager=kubectl";
        let mut bare: Value = serde_json::from_str(&object("Sprocket", "three", size))?;
        bare["metadata"] = json!({"labels": {"tier": "front"}});
        let apply = "application/apply-patch+yaml";
        let response = site.curl(cluster, Route::Proxy)?.send_as("PATCH", path, apply, &bare.to_string())?;
        ensure!(response.code == 200, "{} {}", response.code, response.body);
        let kept = read(&host, "sprockets", &format!("three.{cluster}"))?;
        ensure!(kept["metadata"]["labels"]["atoll.dev/virtual-cluster"] == *cluster, "{kept}");
        let stored = read(&host, "sprockets", &format!("one.{cluster}"))?;
        ensure!(stored["metadata"]["labels"]["atoll.dev/virtual-cluster"] == *cluster, "{stored}");
    }
    for (number, (kubectl, cluster)) in clusters.iter().zip([BEIJING, HANGZHOU]).enumerate() {
        ensure!(kubectl.ok(&["get", "sprockets", "-o", "name"])?.lines().count() == 3);
        for name in ["one", "two", "three"] {
            let shown = read(kubectl, "sprockets", name)?;
            ensure!(shown["metadata"]["name"] == name && shown["spec"]["size"] == number, "{shown}");
            // A value that is not a name stays, even if it looks like one.
            ensure!(shown["spec"]["name"] == "sprocket.ke-beijing", "{shown}");
            let metadata = shown["metadata"].to_string().replace("sprocket.ke-beijing", "");
            ensure!(!metadata.contains("atoll.dev") && !metadata.contains(cluster), "{metadata}");
        }
        let table = kubectl.ok(&["get", "sprockets", "--show-labels"])?;
        ensure!(table.contains("one ") && table.contains("tier=front"), "{table}");
        ensure!(!table.contains(cluster) && !table.contains("atoll"), "{table}");
        let chosen = ["get", "sprockets", "-o", "name"];
        let by = |selector: &str| kubectl.ok(&[&chosen[..], &[selector]].concat());
        ensure!(by("--field-selector=metadata.name=two")? == "sprocket.custom.example.com/two\n");
        ensure!(by("-ltier=front")?.lines().count() == 3 && by("-ltier=back")?.is_empty());
        round(kubectl)?;
    }
    // No cluster sees objects of the other one, or those of the operator.
    host.ok_with(&["create", "-f", "-"], &object("Sprocket", "plain", 7))?;
    host.ok_with(&["create", "-f", "-"], &object("Sprocket", "claimed.ke-beijing", 7))?;
    let [beijing, hangzhou] = &clusters;
    for name in ["plain", "claimed", "one.ke-hangzhou"] {
        let refused = beijing.fails(&["get", "sprocket", name])?;
        ensure!(refused.contains(&format!("sprockets.custom.example.com \"{name}\" not found")), "{refused}");
        let refused = beijing.fails(&["delete", "sprocket", name])?;
        ensure!(refused.contains("not found"), "{refused}");
    }
    let taken = beijing.run_with(&["create", "-f", "-"], &object("Sprocket", "claimed", 1))?;
    ensure!(taken.stderr.contains("Conflict") && taken.stderr.contains("is taken on the host"), "{taken:?}");
    beijing.ok(&["delete", "sprockets", "--all"])?;
    ensure!(hangzhou.ok(&["get", "sprockets", "-o", "name"])?.lines().count() == 3);
    // The agent has the right to write it only because of this ClusterRole.
    let role = host.ok(&["get", "clusterrole", "atoll:custom:sprockets.custom.example.com", "-o=jsonpath={.rules}"])?;
    ensure!(role.contains("custom.example.com") && !role.contains('*'), "{role}");
    let agent = "--as=system:serviceaccount:atoll-system:proxy-agent";
    for (kind, wanted) in [("sprockets.custom.example.com", "yes"), ("configmaps", "no"), ("nodes", "no")] {
        let output = host.run(&["auth", "can-i", "update", kind, agent])?;
        ensure!(output.stdout.trim() == wanted, "update {kind}: {}", output.stdout);
    }
    hangzhou.ok(&["delete", "--raw", "/apis/custom.example.com/v1/sprockets?labelSelector=tier%3Dfront"])?;
    let left = host.ok(&["get", "sprockets", "-o", "name"])?;
    ensure!(left.lines().count() == 2 && left.contains("plain") && left.contains("claimed.ke-beijing"), "{left}");
    Ok(())
}

/// Tests one object with kubectl commands.
fn round(kubectl: &Kubectl) -> anyhow::Result<()> {
    let version = || anyhow::Ok(read(kubectl, "sprockets", "two")?["metadata"]["resourceVersion"].clone());
    let size = read(kubectl, "sprockets", "two")?["spec"]["size"].as_u64().context("no size")?;
    let before = version()?;
    for _ in 0..2 {
        kubectl.ok_with(&["apply", "-f", "-"], &object("Sprocket", "two", u32::try_from(size)?))?;
    }
    ensure!(version()? == before, "the object still changes");
    kubectl.ok(&["label", "sprocket", "two", "color=red"])?;
    kubectl.ok(&["annotate", "sprocket", "two", "note=a"])?;
    kubectl.ok(&["patch", "sprocket", "two", "--type=merge", "-p", r#"{"spec":{"teeth":12}}"#])?;
    let json =
        r#"[{"op":"replace","path":"/spec/teeth","value":13},{"op":"add","path":"/metadata/labels/a","value":"b"}]"#;
    kubectl.ok(&["patch", "sprocket", "two", "--type=json", "-p", json])?;
    kubectl.ok(&["patch", "sprocket", "two", "--type=merge", "-p", r#"{"metadata":{"labels":null}}"#])?;
    let status = r#"{"status":{"replicas":3,"conditions":[{"type":"Ready","status":"True"}]}}"#;
    kubectl.ok(&["patch", "sprocket", "two", "--subresource=status", "--type=merge", "-p", status])?;
    kubectl.ok(&["wait", "sprocket", "two", "--for=condition=Ready", "--timeout=20s"])?;
    kubectl.ok(&["scale", "sprocket", "two", "--replicas=4"])?;
    let after = read(kubectl, "sprockets", "two")?;
    ensure!(after["spec"]["teeth"] == 13 && after["spec"]["replicas"] == 4, "{after}");
    ensure!(after["metadata"]["labels"].is_null() && after["metadata"]["annotations"]["note"] == "a", "{after}");
    let written = kubectl.ok(&["get", "sprocket", "two", "-o", "json"])?;
    kubectl.ok_with(&["replace", "-f", "-"], &written)?;
    kubectl.ok(&["label", "sprocket", "two", "tier=front"])?;
    for forged in [
        r#"{"metadata":{"labels":{"atoll.dev/virtual-cluster":"x"}}}"#,
        r#"{"metadata":{"labels":{"atoll.dev/virtual-cluster":null}}}"#,
    ] {
        let refused = kubectl.fails(&["patch", "sprocket", "two", "--type=merge", "-p", forged])?;
        ensure!(refused.contains("managed by the operator of the host cluster"), "{refused}");
    }
    let missing = kubectl.fails(&["patch", "sprocket", "none", "--type=merge", "-p", "{}"])?;
    ensure!(missing.contains("sprockets.custom.example.com \"none\" not found"), "{missing}");
    Ok(())
}

pub(super) fn owns_what_it_has(site: &VirtualSite) -> anyhow::Result<()> {
    let [beijing, hangzhou] = &both(site, "wheel")?;
    hangzhou.ok_with(&["create", "-f", "-"], &object("Wheel", "theirs", 1))?;
    for name in ["mine", "also"] {
        beijing.ok_with(&["create", "-f", "-"], &object("Wheel", name, 1))?;
        // Owner references have the virtual name.
        let owner = read(beijing, "wheels", name)?;
        let reference = json!({
            "apiVersion": "custom.example.com/v1", "kind": "Wheel", "name": name, "uid": owner["metadata"]["uid"],
        });
        let of = format!("wheels-{name}");
        beijing.ok_with(&["create", "-f", "-"], &namespace(&of))?;
        let map = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "owned", "namespace": of, "ownerReferences": [reference]},
        });
        beijing.ok_with(&["create", "-f", "-"], &map.to_string())?;
        let path = ["get", "configmap", "owned", "-o", "jsonpath={.metadata.ownerReferences[0].name}", "-n"];
        ensure!(beijing.ok(&[&path[..], &[&of]].concat())? == name);
        let stored = site.host().kubectl().ok(&[&path[..], &[&format!("{of}-ke-beijing")]].concat())?;
        ensure!(stored == format!("{name}.ke-beijing"), "{stored}");
        beijing.ok(&["delete", "wheel", name])?;
        // The garbage collector of the host finds the owner, and later that it is gone. It looks for new kinds every 30
        // s (`Sync` in kube-controller-manager's `garbagecollector.go`).
        eventually(COLLECTED, || beijing.fails(&["get", "configmap", "owned", "-n", &of]))?;
    }
    Ok(())
}

/// Kinds of the operator whose controller uses the names of objects: all clusters see the objects, and write them if
/// the configuration allows it.
pub(super) fn keeps_its_name(site: &VirtualSite) -> anyhow::Result<()> {
    let [beijing, hangzhou] = &both(site, "lever")?;
    let host = site.host().kubectl();
    host.ok_with(&["create", "-f", "-"], &object("Lever", "plain", 7))?;
    for kubectl in [beijing, hangzhou] {
        ensure!(kubectl.ok(&["get", "levers", "-o=name"])? == "lever.custom.example.com/plain\n");
        ensure!(read(kubectl, "lever", "plain")?["spec"]["size"] == 7);
        let output = kubectl.run_with(&["create", "-f", "-"], &object("Lever", "own", 1))?;
        ensure!(
            output.stderr.contains("(Forbidden)") && output.stderr.contains("whose operator can change it"),
            "{output:?}"
        );
        let output = kubectl.fails(&["delete", "lever", "plain"])?;
        ensure!(output.contains("(Forbidden)"), "{output}");
        ensure!(kubectl.run(&["auth", "can-i", "create", "levers.custom.example.com"])?.stdout.starts_with("no"));
        ensure!(kubectl.run(&["auth", "can-i", "list", "levers.custom.example.com"])?.stdout.starts_with("yes"));
    }

    let [beijing, hangzhou] = &both(site, "pulley")?;
    host.ok_with(&["create", "-f", "-"], &object("Pulley", "plain", 7))?;
    let output = beijing.run_with(&["apply", "-f", "-"], &object("Pulley", "plain", 8))?;
    ensure!(output.code != 0 && output.stderr.contains("only its labels and annotations"), "{output:?}");
    let output = beijing.fails(&["delete", "pulley", "plain"])?;
    ensure!(output.contains("created it for all virtual clusters"), "{output}");
    beijing.ok_with(&["apply", "-f", "-"], &object("Pulley", "own", 1))?;
    ensure!(
        hangzhou.fails(&["get", "pulley", "own"])?.contains("(NotFound)"),
        "the cluster can read an object of another cluster"
    );
    let output = hangzhou.run_with(&["create", "-f", "-"], &object("Pulley", "own", 2))?;
    ensure!(output.stderr.contains("created it with a different specification"), "{output:?}");
    hangzhou.ok_with(&["apply", "--server-side", "-f", "-"], &object("Pulley", "own", 1))?;
    hangzhou.ok(&["label", "pulley", "own", "of=hangzhou"])?;
    ensure!(beijing.ok(&["get", "pulleys", "-o=name", "-lof=hangzhou"])?.is_empty(), "the clusters share labels");
    for kubectl in [beijing, hangzhou] {
        let shown = read(kubectl, "pulley", "own")?;
        ensure!(shown["spec"]["size"] == 1 && !shown.to_string().contains("atoll"), "{shown}");
        kubectl.ok(&["delete", "pulley", "own"])?;
    }
    ensure!(host.ok(&["get", "pulleys", "-o=name"])? == "pulley.custom.example.com/plain\n");
    Ok(())
}

pub(super) fn is_watched(site: &VirtualSite) -> anyhow::Result<()> {
    let [beijing, hangzhou] = both(site, "chain")?;
    beijing.ok_with(&["create", "-f", "-"], &object("Chain", "first", 1))?;
    let mut watch = beijing.start(&["get", "chains", "--watch", "--output-watch-events", "--no-headers"])?;
    let mut lines = BufReader::new(watch.stdout.take().context("no output")?).lines();
    let mut next = || anyhow::Ok(lines.next().context("the watch ended")??);
    ensure!(next()?.starts_with("ADDED"), "the watch does not begin with the existing objects");
    hangzhou.ok_with(&["create", "-f", "-"], &object("Chain", "theirs", 1))?;
    beijing.ok_with(&["create", "-f", "-"], &object("Chain", "second", 1))?;
    beijing.ok(&["label", "chain", "second", "color=red"])?;
    beijing.ok(&["delete", "chain", "second"])?;
    for event in ["ADDED", "MODIFIED", "DELETED"] {
        let line = next()?;
        let words: Vec<_> = line.split_whitespace().take(2).collect();
        ensure!(words == [event, "second"], "{line}");
    }
    end(watch)?;
    Ok(())
}

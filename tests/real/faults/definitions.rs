//! Kinds that are deleted and defined again while the hub serves their watches.

use std::sync::Arc;

use anyhow::{Context, ensure};
use atoll_tests::kubectl::CONDITION_TIMEOUT;
use atoll_tests::{HostCluster, Kubectl, eventually};
use serde_json::{Value, json};

use super::pair::{Pair, STATE, Watch};

const GROUP: &str = "defined.example.com";
const PATH: &str = "/apis/defined.example.com/v1/valves";
const NAMESPACED: &str = "/apis/defined.example.com/v1/namespaces/default/valves";
const CRD: &str = "crd/valves.defined.example.com";

/// The definition of the kind, as both clusters create it. Only the second one limits the field.
fn definition(scope: &str, sizes: &Value) -> Value {
    let spec = json!({"type": "object", "properties": {"size": sizes}});
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("valves.{GROUP}")},
        "spec": {
            "group": GROUP, "scope": scope, "versions": [version],
            "names": {"plural": "valves", "singular": "valve", "kind": "Valve"},
        },
    })
}

fn valve(name: &str, size: &Value) -> Value {
    json!({"apiVersion": "defined.example.com/v1", "kind": "Valve", "metadata": {"name": name}, "spec": {"size": size}})
}

/// Sends POST to this path, because kubectl itself remembers the former scope of the kind.
fn create(kubectl: &Kubectl, path: &str, object: &Value) -> anyhow::Result<Value> {
    Ok(serde_json::from_str(&kubectl.ok_with(&["create", "--raw", path, "-f", "-"], &object.to_string())?)?)
}

/// The site, and what its users have.
struct World {
    pair: Pair,
    clusters: [Kubectl; 2],
    operator: Kubectl,
}

/// The same watches, through the hub and directly at the host.
struct Watches {
    clusters: [Watch; 2],
    host: Watch,
}

/// Clients see what a client of the host sees, when the kind is deleted, and when it is defined again with another scope and
/// another schema. They see no old objects, and none of the other cluster.
pub(super) fn can_be_deleted_and_created_again(host: Arc<HostCluster>) -> anyhow::Result<()> {
    let pair = Pair::start(host, "defined")?;
    let world = World { clusters: pair.kubectls()?, operator: pair.site.host().kubectl(), pair };
    let any = json!({"type": "string"});
    let small = json!({"type": "integer", "maximum": 9});

    world.define(&definition("Namespaced", &small))?;
    let mut watches = world.watch(&world.create(NAMESPACED, "one", &json!(1))?)?;
    ensure!(watches.initial()? == ["ADDED one"]);
    world.create(NAMESPACED, "two", &json!(2))?;
    ensure!(watches.change()? == "ADDED two");
    world.delete()?;
    ensure!(watches.rest()? == ["DELETED one", "DELETED two", "END"]);
    world.is_missing()?;

    world.define(&definition("Cluster", &any))?;
    let mut watches = world.watch(&world.create(PATH, "three", &json!("large"))?)?;
    ensure!(watches.initial()? == ["ADDED three"]);
    // The agent is stopped while the host begins to serve the kind anew, so it cannot continue its watch.
    world.pair.site.agent().pause()?;
    let missed = world.serve_anew(watches.host, "four");
    world.pair.site.agent().resume()?;
    missed?;
    for watch in &mut watches.clusters {
        let rest = [watch.change()?, watch.change()?];
        ensure!(rest == ["ERROR 410", "END"], "{rest:?}");
    }
    let mut watches = world.watch(&world.create(PATH, "five", &json!("5"))?)?;
    ensure!(watches.initial()? == ["ADDED five", "ADDED four", "ADDED three"]);
    world.delete()?;
    ensure!(watches.rest()? == ["DELETED five", "DELETED four", "DELETED three", "END"]);
    world.is_missing()
}

// === impl World ===

impl World {
    fn define(&self, definition: &Value) -> anyhow::Result<()> {
        for kubectl in &self.clusters {
            kubectl.ok_with(&["create", "-f", "-"], &definition.to_string())?;
        }
        for kubectl in &self.clusters {
            eventually(CONDITION_TIMEOUT, || kubectl.ok(&["get", "--raw", PATH]))?;
        }
        Ok(())
    }

    /// An object in each cluster. Returns the version of the newest one.
    fn create(&self, path: &str, name: &str, size: &Value) -> anyhow::Result<String> {
        let mut version = String::new();
        for kubectl in &self.clusters {
            // The first request after the definition can be too early.
            let created = eventually(CONDITION_TIMEOUT, || create(kubectl, path, &valve(name, size)))?;
            created["metadata"]["resourceVersion"].as_str().context("no version")?.clone_into(&mut version);
        }
        Ok(version)
    }

    /// Watches from a state that has this version.
    fn watch(&self, version: &str) -> anyhow::Result<Watches> {
        self.pair.shares(PATH)?;
        let host = Watch::start(&self.operator, PATH, &format!("{STATE}&resourceVersion={version}"))?;
        Ok(Watches { clusters: self.pair.watches(PATH, version)?, host })
    }

    fn delete(&self) -> anyhow::Result<()> {
        for kubectl in &self.clusters {
            kubectl.ok(&["delete", CRD, "--timeout=40s"])?;
        }
        eventually(CONDITION_TIMEOUT, || self.operator.fails(&["get", CRD]).map(drop))
    }

    /// Changes the schema at the host, which ends all watches, and then creates an object in each cluster.
    fn serve_anew(&self, mut watch: Watch, name: &str) -> anyhow::Result<()> {
        let path = "/spec/versions/0/schema/openAPIV3Schema/description";
        let patch = json!([{"op": "add", "path": path, "value": "A valve."}]);
        // As another manager, the operator would take the kind from the clusters.
        let manager = "--field-manager=atoll:proxy-agent";
        self.operator.ok(&["patch", CRD, manager, "--type=json", "-p", &patch.to_string()])?;
        while watch.change()? != "END" {}
        for cluster in &self.pair.names {
            let mut valve = valve(&format!("{name}.{cluster}"), &json!("4"));
            valve["metadata"]["labels"] = json!({"atoll.dev/virtual-cluster": cluster});
            create(&self.operator, PATH, &valve)?;
        }
        Ok(())
    }

    /// The kind does not exist, as at the host.
    fn is_missing(&self) -> anyhow::Result<()> {
        for kubectl in self.clusters.iter().chain([&self.operator]) {
            eventually(CONDITION_TIMEOUT, || {
                let output = kubectl.fails(&["get", "--raw", &format!("{PATH}?watch=1&timeoutSeconds=1")])?;
                ensure!(output.contains("NotFound"), "{output}");
                Ok(())
            })?;
        }
        Ok(())
    }
}

// === impl Watches ===

impl Watches {
    /// The initial events, which are the same in both clusters, and those of both at the host.
    fn initial(&mut self) -> anyhow::Result<Vec<String>> {
        let [a, b] = &mut self.clusters;
        let (shown, of_other, of_host) = (a.initial()?, b.initial()?, self.host.initial()?);
        ensure!(shown == of_other && of_host.len() == 2 * shown.len(), "{shown:?}, {of_other:?}, {of_host:?}");
        Ok(shown)
    }

    /// The next event.
    fn change(&mut self) -> anyhow::Result<String> {
        let [a, b] = &mut self.clusters;
        let (shown, of_other) = (a.change()?, b.change()?);
        ensure!(shown == of_other, "{shown}, {of_other}");
        let of_host = [self.host.change()?, self.host.change()?];
        ensure!(of_host.iter().all(|event| event.starts_with(&shown)), "{shown}, {of_host:?}");
        Ok(shown)
    }

    /// The events until the end of the watch, sorted.
    fn rest(mut self) -> anyhow::Result<Vec<String>> {
        let [mut a, mut b] = self.clusters;
        let (shown, of_other, of_host) = (rest(&mut a)?, rest(&mut b)?, rest(&mut self.host)?);
        let events = |events: &[String]| events.len() - 1;
        ensure!(shown == of_other && events(&of_host) == 2 * events(&shown), "{shown:?}, {of_other:?}, {of_host:?}");
        Ok(shown)
    }
}

fn rest(watch: &mut Watch) -> anyhow::Result<Vec<String>> {
    let mut events = Vec::new();
    loop {
        let event = watch.change()?;
        if event == "END" {
            events.sort();
            events.push(event);
            return Ok(events);
        }
        events.push(event);
    }
}

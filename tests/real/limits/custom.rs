//! What a virtual cluster stores as custom objects is limited, even if the host does not show all of it, and outside of namespaces, too.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{bail, ensure};
use atoll_tests::kubectl::CONDITION_TIMEOUT;
use atoll_tests::{Curl, HostCluster, Route, eventually, pause};
use serde_json::{Value, json};

use super::limited::Limited;

/// The limit for bytes, in MiB.
const MIB: usize = 4;
/// The length of a large object.
const LARGE: usize = 300_000;
/// More large objects than the limit allows.
const MOST: usize = 40;
/// The number of small objects that a virtual cluster may have.
const SMALL: usize = 6;
/// The time in which an agent has read all objects again after a change of their definition.
const READ_AGAIN: Duration = Duration::from_secs(12);

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const MERGE_PATCH: &str = "application/merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// A version that stores all fields, or shows only metadata.
fn version(name: &str, is_stored: bool, shows_all: bool, is_served: bool) -> Value {
    let mut schema = json!({"type": "object"});
    if shows_all {
        schema["x-kubernetes-preserve-unknown-fields"] = true.into();
    }
    json!({"name": name, "served": is_served, "storage": is_stored, "schema": {"openAPIV3Schema": schema}})
}

fn definition(plural: &str, group: &str, scope: &str, versions: &[Value]) -> String {
    let (singular, name) = (plural.trim_end_matches('s'), format!("{plural}.{group}"));
    let kind = format!("{}{}", singular[..1].to_uppercase(), &singular[1..]);
    let names = json!({"plural": plural, "singular": singular, "kind": kind});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": name},
        "spec": {"group": group, "scope": scope, "names": names, "versions": versions}})
    .to_string()
}

fn object(kind: &str, api_version: &str, name: &str, length: usize) -> String {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "text": "x".repeat(length)}).to_string()
}

/// Creates large objects until the host has no room for another one.
fn fill(curl: &Curl, collection: &str, kind: &str, api_version: &str) -> anyhow::Result<()> {
    for number in 0..MOST {
        let sent = object(kind, api_version, &format!("large-{number}"), LARGE);
        // The definition is new, so its objects are not served at once.
        let response = eventually(CONDITION_TIMEOUT, || {
            let response = curl.send("POST", collection, &sent)?;
            ensure!(response.code != 404, "{response:?}");
            Ok(response)
        })?;
        if response.code != 201 {
            ensure!(number * LARGE > (MIB << 20) / 2, "{number} objects, and then {response:?}");
            response.refused(403, "Forbidden", "exceeded quota: atoll, requested: storage=300")?;
            return Ok(());
        }
    }
    bail!("{collection}: bytes are not limited")
}

/// Nothing becomes free while the agent reads the objects again.
fn stays_full(curl: &Curl, why: &str) -> anyhow::Result<()> {
    let large = object("ConfigMap", "v1", "large", 0).replace("\"text\":\"\"", "\"data\":{\"text\":\"TEXT\"}");
    let large = large.replace("TEXT", &"x".repeat(LARGE));
    for _ in 0..READ_AGAIN.as_secs() {
        let response = curl.send("POST", "/api/v1/namespaces/default/configmaps", &large)?;
        ensure!(response.code == 403, "{why}: {response:?}");
        pause(Duration::from_secs(1));
    }
    Ok(())
}

/// The definition shows less and less of the objects. etcd still stores them.
pub(super) fn hidden_fields_count(host: Arc<HostCluster>) -> anyhow::Result<()> {
    let limited = Limited::start(host, "hidden", &format!("storageMiB: {MIB}"))?;
    let curl = limited.site.curl_like(&limited.admin, &limited.cluster, Route::Path)?;
    let (group, all) = ("hidden.example.com", [version("v2", false, false, true), version("v1", true, true, true)]);
    let created = curl.send("POST", DEFINITIONS, &definition("gears", group, "Namespaced", &all))?;
    ensure!(created.code == 201, "{created:?}");
    // Discovery lists v2 first. It shows only the metadata.
    let collection = |version: &str| format!("/apis/{group}/{version}/namespaces/default/gears");
    fill(&curl, &collection("v1"), "Gear", &format!("{group}/v1"))?;

    let path = format!("{DEFINITIONS}/gears.{group}");
    let redefine = |versions: &[Value]| {
        let changed =
            curl.send_as("PATCH", &path, MERGE_PATCH, &json!({"spec": {"versions": versions}}).to_string())?;
        ensure!(changed.code == 200, "{changed:?}");
        anyhow::Ok(())
    };
    redefine(&[version("v2", false, false, true), version("v1", true, false, true)])?;
    eventually(CONDITION_TIMEOUT, || {
        let shown = curl.get(&format!("{}/large-0", collection("v1")))?;
        ensure!(shown.code == 200 && shown.body.len() < LARGE, "{} bytes", shown.body.len());
        Ok(())
    })?;
    stays_full(&curl, "the stored version hides a field")?;
    redefine(&[version("v2", false, false, true), version("v1", true, false, false)])?;
    stays_full(&curl, "the stored version is not served")?;
    redefine(&[version("v2", false, false, false), version("v1", true, false, false)])?;
    stays_full(&curl, "no version is served")?;

    limited.admin.ok(&["delete", "crd", &format!("gears.{group}")])?;
    eventually(CONDITION_TIMEOUT, || limited.admin.ok(&["create", "configmap", "small", "-n", "default"]))?;
    Ok(())
}

/// The limits hold for cluster-scoped objects, too.
pub(super) fn cluster_scoped_objects_are_limited(host: Arc<HostCluster>) -> anyhow::Result<()> {
    let group = "outside.example.com";
    let objects = format!("{{customresourcedefinitions.apiextensions.k8s.io: 2, cogs.{group}: {SMALL}}}");
    let limited = Limited::start(host, "outside", &format!("storageMiB: {MIB}, objectsOf: {objects}"))?;
    let curl = limited.site.curl_like(&limited.admin, &limited.cluster, Route::Path)?;
    let versions = [version("v1", true, true, true)];
    let define = |plural: &str| curl.send("POST", DEFINITIONS, &definition(plural, group, "Cluster", &versions));
    for plural in ["gears", "cogs"] {
        let created = define(plural)?;
        ensure!(created.code == 201, "{created:?}");
    }
    eventually(CONDITION_TIMEOUT, || {
        let words = "exceeded quota: atoll, requested: count/customresourcedefinitions.apiextensions.k8s.io=1, \
                     used: count/customresourcedefinitions.apiextensions.k8s.io=2";
        let refused =
            curl.send("POST", &format!("{DEFINITIONS}?dryRun=All"), &definition("axles", group, "Cluster", &versions))?;
        refused.refused(403, "Forbidden", words)
    })?;

    // The number of objects. An apply also creates an object.
    let cogs = format!("/apis/{group}/v1/cogs");
    let cog = |name: &str| object("Cog", &format!("{group}/v1"), name, 10);
    let apply = |name: &str, query: &str| {
        curl.send_as("PATCH", &format!("{cogs}/{name}?fieldManager=trial{query}"), APPLY, &cog(name))
    };
    for number in 0..SMALL {
        eventually(CONDITION_TIMEOUT, || {
            let created = curl.send("POST", &cogs, &cog(&format!("cog-{number}")))?;
            ensure!(created.code == 201, "{created:?}");
            Ok(())
        })?;
    }
    let words = format!("exceeded quota: atoll, requested: count/cogs.{group}=1, used: count/cogs.{group}={SMALL}");
    eventually(CONDITION_TIMEOUT, || {
        apply("another", "&dryRun=All")?.refused(403, "Forbidden", &words)?;
        curl.send("POST", &format!("{cogs}?dryRun=All"), &cog("another"))?.refused(403, "Forbidden", &words)
    })?;
    let applied = apply("cog-0", "&force=true")?;
    ensure!(applied.code == 200, "an existing object: {applied:?}");

    // The bytes. Nothing can grow when they are used up, and another virtual cluster is not affected.
    let gears = format!("/apis/{group}/v1/gears");
    fill(&curl, &gears, "Gear", &format!("{group}/v1"))?;
    let grown = json!({"text": "x".repeat(3 * LARGE)}).to_string();
    let grow = |name: &str| curl.send_as("PATCH", &format!("{gears}/{name}"), MERGE_PATCH, &grown);
    ensure!(grow("large-0")?.code == 200, "there is room for a part of it");
    eventually(CONDITION_TIMEOUT, || {
        let words = "exceeded quota: atoll, requested: storage=900";
        grow("large-1")?.refused(403, "Forbidden", words)?;
        limited.admin.fails(&["create", "namespace", "third", "--dry-run=server"])?;
        limited.admin.fails(&["annotate", "namespace", "second", "a=b", "--dry-run=server"])?;
        limited.admin.fails(&["annotate", "crd", &format!("gears.{group}"), "a=b", "--dry-run=server"])
    })?;
    let other = limited.site.administrator(&limited.other, Route::Path)?;
    other.ok(&["create", "namespace", "third"])?;
    let other = limited.site.curl_like(&other, &limited.other, Route::Path)?;
    let joined = other.send("POST", DEFINITIONS, &definition("gears", group, "Cluster", &versions))?;
    ensure!(joined.code == 201, "{joined:?}");

    // An object that is being deleted can lose its finalizer, and makes room.
    limited.admin.ok(&["delete", "gears", "--all"])?;
    eventually(CONDITION_TIMEOUT, || limited.admin.ok(&["annotate", "namespace", "second", "a=b"]))?;
    ensure!(grow("cog-0")?.code == 404, "there is no such gear");
    Ok(())
}

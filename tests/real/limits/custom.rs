//! What a virtual cluster stores as custom objects is limited, also outside of namespaces, and even if the host hides a part of it.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
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
/// An agent normally reads all objects again within this time after a change of their definition. On a slower machine, the trial
/// checks less, but does not fail.
const READ_AGAIN: Duration = Duration::from_secs(8);

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const MERGE_PATCH: &str = "application/merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// A version of a definition.
struct Version {
    name: &'static str,
    is_stored: bool,
    /// Otherwise, it shows only metadata.
    shows_all: bool,
    is_served: bool,
}

// === impl Version ===

impl Version {
    const V1: Self = Self { name: "v1", is_stored: true, shows_all: true, is_served: true };
    const NARROW_V1: Self = Self { shows_all: false, ..Self::V1 };
    /// Discovery lists it before the first one.
    const V2: Self = Self { name: "v2", is_stored: false, shows_all: false, is_served: true };

    fn json(&self) -> Value {
        let mut schema = json!({"type": "object"});
        if self.shows_all {
            schema["x-kubernetes-preserve-unknown-fields"] = true.into();
        }
        let schema = json!({"openAPIV3Schema": schema});
        json!({"name": self.name, "served": self.is_served, "storage": self.is_stored, "schema": schema})
    }
}

fn specification(versions: &[Version]) -> Value {
    json!({"versions": versions.iter().map(Version::json).collect::<Vec<_>>()})
}

fn definition(plural: &str, group: &str, scope: &str, versions: &[Version]) -> String {
    let (singular, name) = (plural.trim_end_matches('s'), format!("{plural}.{group}"));
    let kind = format!("{}{}", singular[..1].to_uppercase(), &singular[1..]);
    let mut spec = specification(versions);
    spec["group"] = group.into();
    spec["scope"] = scope.into();
    spec["names"] = json!({"plural": plural, "singular": singular, "kind": kind});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": name}, "spec": spec})
        .to_string()
}

fn object(kind: &str, group: &str, name: &str, length: usize) -> String {
    let api_version = format!("{group}/v1");
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "text": "x".repeat(length)}).to_string()
}

fn large_config_map() -> String {
    let data = json!({"text": "x".repeat(LARGE)});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "large"}, "data": data}).to_string()
}

fn define(curl: &Curl, plural: &str, group: &str, scope: &str, versions: &[Version]) -> anyhow::Result<()> {
    let created = curl.send("POST", DEFINITIONS, &definition(plural, group, scope, versions))?;
    ensure!(created.code == 201, "{created:?}");
    Ok(())
}

/// Creates an object of a new definition. The host may not serve it yet, and the agent may not have the right to write it yet.
fn first(curl: &Curl, collection: &str, object: &str) -> anyhow::Result<()> {
    eventually(CONDITION_TIMEOUT, || {
        let created = curl.send("POST", collection, object)?;
        ensure!(created.code == 201, "{created:?}");
        Ok(())
    })
}

/// Creates large objects until the virtual cluster has no room for another one.
fn fill(curl: &Curl, collection: &str, group: &str) -> anyhow::Result<()> {
    first(curl, collection, &object("Gear", group, "large-0", LARGE))?;
    for number in 1..MOST {
        let response = curl.send("POST", collection, &object("Gear", group, &format!("large-{number}"), LARGE))?;
        if response.code != 201 {
            ensure!(number * LARGE > (MIB << 20) / 2, "{number} objects, and then {response:?}");
            return response.refused(403, "Forbidden", "exceeded quota: atoll, requested: storage=300").map(drop);
        }
    }
    bail!("{collection}: bytes are not limited")
}

/// Nothing becomes free while the agent reads the objects again.
fn stays_full(curl: &Curl, why: &'static str) -> anyhow::Result<()> {
    for _ in 0..READ_AGAIN.as_secs() {
        let refused = curl.send("POST", "/api/v1/namespaces/default/configmaps", &large_config_map())?;
        refused.refused(403, "Forbidden", "exceeded quota: atoll, requested: storage=300").context(why)?;
        pause(Duration::from_secs(1));
    }
    Ok(())
}

/// Changes the versions of a definition.
fn redefine(curl: &Curl, name: &str, versions: &[Version]) -> anyhow::Result<()> {
    let patch = json!({"spec": specification(versions)}).to_string();
    eventually(CONDITION_TIMEOUT, || {
        let changed = curl.send_as("PATCH", &format!("{DEFINITIONS}/{name}"), MERGE_PATCH, &patch)?;
        ensure!(changed.code == 200, "{changed:?}");
        Ok(())
    })
}

/// The definition shows less and less of the objects. etcd still stores them.
pub(super) fn hidden_fields_count(host: Arc<HostCluster>) -> anyhow::Result<()> {
    let limited = Limited::start(host, "hidden", &format!("storageMiB: {MIB}"))?;
    let curl = limited.site.curl_like(&limited.admin, &limited.cluster, Route::Path)?;
    let (group, name) = ("hidden.example.com", "gears.hidden.example.com");
    define(&curl, "gears", group, "Namespaced", &[Version::V2, Version::V1])?;
    let collection = format!("/apis/{group}/v1/namespaces/default/gears");
    fill(&curl, &collection, group)?;

    redefine(&curl, name, &[Version::V2, Version::NARROW_V1])?;
    eventually(CONDITION_TIMEOUT, || {
        let shown = curl.get(&format!("{collection}/large-0"))?;
        ensure!(shown.code == 200 && shown.body.len() < LARGE, "{} bytes", shown.body.len());
        Ok(())
    })?;
    stays_full(&curl, "the stored version hides a field")?;
    let unserved = || Version { is_served: false, ..Version::NARROW_V1 };
    redefine(&curl, name, &[Version::V2, unserved()])?;
    stays_full(&curl, "the stored version is not served")?;
    redefine(&curl, name, &[Version { is_served: false, ..Version::V2 }, unserved()])?;
    stays_full(&curl, "no version is served")?;

    limited.admin.ok(&["delete", "crd", name])?;
    first(&curl, "/api/v1/namespaces/default/configmaps", &large_config_map())
}

/// The definition shows the objects only for a moment.
pub(super) fn briefly_shown_fields_count(host: Arc<HostCluster>) -> anyhow::Result<()> {
    let limited = Limited::start(host, "briefly", &format!("storageMiB: {MIB}"))?;
    let curl = limited.site.curl_like(&limited.admin, &limited.cluster, Route::Path)?;
    let (group, name) = ("briefly.example.com", "gears.briefly.example.com");
    define(&curl, "gears", group, "Namespaced", &[Version::NARROW_V1])?;
    let collection = format!("/apis/{group}/v1/namespaces/default/gears");
    first(&curl, &collection, &object("Gear", group, "small", 10))?;
    // As long as a request is in progress, the host keeps watches that hide the field.
    let slow = directly(&limited)?.with(&["--max-time", "20"]);
    let on_host = format!("/apis/{group}/v1/namespaces/{}/gears", limited.on_host("default"));
    let slow = std::thread::spawn(move || slow.send_head("POST", &on_host));
    pause(Duration::from_secs(1));
    ensure!(!slow.is_finished(), "the host does not wait for the body: {:?}", slow.join());

    redefine(&curl, name, &[Version::V1])?;
    // The host serves the new schema.
    eventually(CONDITION_TIMEOUT, || {
        let dry_run = curl.send("POST", &format!("{collection}?dryRun=All"), &object("Gear", group, "dry", 10))?;
        ensure!(dry_run.code == 201 && dry_run.body.contains("\"text\""), "{dry_run:?}");
        Ok(())
    })?;
    for number in 0..MOST {
        if curl.send("POST", &collection, &object("Gear", group, &format!("large-{number}"), LARGE))?.code != 201 {
            break;
        }
    }
    redefine(&curl, name, &[Version::NARROW_V1])?;
    stays_full(&curl, "the version showed the field for a moment")?;
    // curl gives up after 20 s.
    let _ = slow.join();
    Ok(())
}

/// curl for the host, with the token of the service account.
fn directly(limited: &Limited) -> anyhow::Result<Curl> {
    let host = limited.site.host();
    let address = host.api_servers()?.into_iter().next().context("no API server")?;
    let token = limited.admin.ok(&["create", "token", "direct", "-n", "default"])?;
    Ok(Curl::directly(&address, &host.dir().join("pki/ca.crt")).with_token(token.trim()))
}

/// The limits hold for cluster-scoped objects, too.
pub(super) fn cluster_scoped_objects_are_limited(host: Arc<HostCluster>) -> anyhow::Result<()> {
    let group = "outside.example.com";
    let objects = format!("{{customresourcedefinitions.apiextensions.k8s.io: 2, cogs.{group}: {SMALL}}}");
    let limited = Limited::start(host, "outside", &format!("storageMiB: {MIB}, objectsOf: {objects}"))?;
    let curl = limited.site.curl_like(&limited.admin, &limited.cluster, Route::Path)?;
    for plural in ["gears", "cogs"] {
        define(&curl, plural, group, "Cluster", &[Version::V1])?;
    }
    eventually(CONDITION_TIMEOUT, || {
        let words = "exceeded quota: atoll, requested: count/customresourcedefinitions.apiextensions.k8s.io=1, \
                     used: count/customresourcedefinitions.apiextensions.k8s.io=2";
        let third = definition("axles", group, "Cluster", &[Version::V1]);
        curl.send("POST", &format!("{DEFINITIONS}?dryRun=All"), &third)?.refused(403, "Forbidden", words)
    })?;

    // The number of objects. An apply also creates an object.
    let cogs = format!("/apis/{group}/v1/cogs");
    let cog = |name: &str| object("Cog", group, name, 10);
    let apply = |name: &str, query: &str| {
        curl.send_as("PATCH", &format!("{cogs}/{name}?fieldManager=trial{query}"), APPLY, &cog(name))
    };
    for number in 0..SMALL {
        first(&curl, &cogs, &cog(&format!("cog-{number}")))?;
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
    fill(&curl, &gears, group)?;
    // Room for a part of a larger object, even if the agent has counted the last creation late.
    limited.admin.ok(&["delete", "gears", "large-2"])?;
    let grown = json!({"metadata": {"finalizers": ["example.com/trial"]}, "text": "x".repeat(4 * LARGE)}).to_string();
    let grow = |name: &str| curl.send_as("PATCH", &format!("{gears}/{name}"), MERGE_PATCH, &grown);
    eventually(CONDITION_TIMEOUT, || {
        let grown = grow("large-0")?;
        ensure!(grown.code == 200, "{grown:?}");
        Ok(())
    })?;
    eventually(CONDITION_TIMEOUT, || {
        grow("large-1")?.refused(403, "Forbidden", "exceeded quota: atoll, requested: storage=1200")
    })?;
    for args in [
        &["create", "namespace", "third", "--dry-run=server"][..],
        &["annotate", "namespace", "second", "a=b", "--dry-run=server"],
    ] {
        let refused = limited.admin.fails(args)?;
        ensure!(refused.contains("exceeded quota: atoll"), "{args:?}: {refused}");
    }
    // What does not grow is not refused.
    let applied =
        limited.admin.run_with(&["apply", "-f", "-"], &definition("gears", group, "Cluster", &[Version::V1]))?;
    ensure!(applied.code == 0, "{applied:?}");
    let other = limited.site.administrator(&limited.other, Route::Path)?;
    other.ok(&["create", "namespace", "third"])?;
    let other = limited.site.curl_like(&other, &limited.other, Route::Path)?;
    define(&other, "gears", group, "Cluster", &[Version::V1])?;

    // An object that is being deleted can lose its finalizer. `grown` has set it.
    limited.admin.ok(&["delete", "gears", "large-0", "--wait=false"])?;
    let released = json!({"metadata": {"finalizers": null}}).to_string();
    let released = curl.send_as("PATCH", &format!("{gears}/large-0"), MERGE_PATCH, &released)?;
    ensure!(released.code == 200, "{released:?}");
    limited.admin.ok(&["delete", "gears", "--all"])?;
    eventually(CONDITION_TIMEOUT, || limited.admin.ok(&["annotate", "namespace", "second", "a=b"]))?;
    Ok(())
}

/// Short patches of a large object store its whole versions, and so do annotations of shared objects.
pub(super) fn cluster_scoped_versions_are_limited(host: Arc<HostCluster>) -> anyhow::Result<()> {
    let group = "often.example.com";
    let own = format!("/apis/{group}/v1/gears/large-0");
    let shared = format!("{DEFINITIONS}/gears.{group}");
    let hosts = [Arc::clone(&host), host];
    for (host, (name, path, length)) in hosts.into_iter().zip([("patches", own, 10), ("overlays", shared, 200_000)]) {
        let limited = Limited::start(host, name, &format!("writtenMiB: {MIB}"))?;
        let curl = limited.site.curl_like(&limited.admin, &limited.cluster, Route::Path)?;
        define(&curl, "gears", group, "Cluster", &[Version::V1])?;
        first(&curl, &format!("/apis/{group}/v1/gears"), &object("Gear", group, "large-0", LARGE))?;
        let mut number = 0;
        let refused = loop {
            let annotation = format!("{number}{}", "x".repeat(length));
            let patch = json!({"metadata": {"annotations": {"a": annotation}}}).to_string();
            let response = curl.send_as("PATCH", &path, MERGE_PATCH, &patch)?;
            if response.code != 200 {
                break response;
            }
            number += 1;
            // The agent counts a version a moment after it was written.
            ensure!(number < 10 * MOST, "{name}: versions are not limited");
        };
        refused.refused(403, "Forbidden", "exceeded quota: atoll, requested: written=")?;
        limited.admin.ok(&["delete", "crd", &format!("gears.{group}")])?;
    }
    Ok(())
}

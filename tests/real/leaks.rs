//! No response contains data of another virtual cluster, or names of the host.
//!
//! The test creates objects of every kind with unique names in two virtual clusters. Then it requests all resources of
//! each cluster in every format, and searches the responses for forbidden names and for uids of other clusters. It uses a
//! separate site, because other tests write such names on purpose.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, bail, ensure};
use atoll_tests::host::everywhere_kubeedge;
use atoll_tests::kubectl::CONDITION_TIMEOUT;
use atoll_tests::{HostCluster, Kubectl, Route, VirtualSite, eventually, paths, site};
use libtest_mimic::Trial;
use serde_json::json;

/// The number of virtual clusters, unless this environment variable says otherwise.
const CLUSTERS: (&str, usize) = ("ATOLL_TEST_CLUSTERS", 2);

/// The locations that have nodes on every host.
const LOCATIONS: [&str; 2] = ["beijing", "hangzhou"];

/// The number of clusters whose responses are searched at the same time.
const AT_ONCE: usize = 4;

/// The time limit for one of two clusters that are searched at the same time, in seconds.
const SECONDS: usize = 240;

/// The objects of both clusters. `OWN` is a unique word of each cluster.
const OBJECTS: &str = include_str!("leaks/objects.yaml");

/// Kinds whose objects the test does not create.
const OF_THE_HOST: [&str; 3] =
    ["v1/persistentvolumes", "storage.k8s.io/v1/volumeattachments", "storage.k8s.io/v1/csinodes"];

/// The minimum number of responses. The actual number depends on the controllers, and is about 4,000 to 4,500.
const ANSWERS: u32 = 3000;

pub(crate) fn trial() -> Trial {
    crate::trial::trial("leaks::no_response_contains_foreign_data", no_response_contains_foreign_data)
}

fn no_response_contains_foreign_data() -> anyhow::Result<()> {
    let count = std::env::var(CLUSTERS.0).ok().and_then(|count| count.parse().ok()).unwrap_or(CLUSTERS.1);
    let locations: Vec<&'static str> = (0..count).map(location).collect();
    let of_the_host = HostCluster::up(1)?;
    let more: Vec<_> =
        locations.iter().enumerate().skip(LOCATIONS.len()).map(|(number, name)| node(number, name)).collect();
    if !more.is_empty() {
        ensure!(!everywhere_kubeedge(), "{} works only with hosts without KubeEdge", CLUSTERS.0);
        let list = json!({"apiVersion": "v1", "kind": "List", "items": more}).to_string();
        of_the_host.kubectl().ok_with(&["create", "-f", "-"], &list)?;
    }
    let names: Vec<String> = locations.iter().map(|location| format!("ke-{location}")).collect();
    let pairs: Vec<_> = names.iter().map(String::as_str).zip(locations.iter().copied()).collect();
    let site = VirtualSite::on(of_the_host, &pairs)?;
    let host = site.host().kubectl();
    host.ok_with(&["create", "-f", "-"], &widgets())?;
    host.ok(&["wait", "--for=condition=Established", "crd/widgets.leaks.example.com"])?;
    let mut clusters = Vec::new();
    for location in &locations {
        let cluster = site.administrator(&format!("ke-{location}"), Route::Path)?;
        host.ok_with(&["create", "-f", "-"], &of_the_operator(location))?;
        // Discovery contains the kind only some time after it is established.
        eventually(CONDITION_TIMEOUT, || cluster.ok(&["get", "widgets", "--all-namespaces"]))?;
        let objects = objects().collect::<Vec<_>>().join("\n---\n");
        cluster.ok_with(&["create", "-f", "-"], &objects.replace("OWN", &format!("own-{location}")))?;
        clusters.push((cluster, *location));
    }
    let uids = uids(&host, &locations)?;
    let waiting = Mutex::new(clusters.iter());
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
    let crawls = || -> anyhow::Result<()> {
        while let Some((cluster, location)) = next() {
            let foreign: Vec<&str> = locations.iter().copied().filter(|other| other != location).collect();
            let file = cluster.kubeconfig().with_extension("uids");
            let of_others = uids.iter().filter(|(of, _)| of != location).map(|(_, uid)| uid.as_str());
            std::fs::write(&file, of_others.collect::<Vec<_>>().join("\n"))?;
            crawl(cluster, location, &foreign.join("|"), &file, SECONDS * AT_ONCE.min(count) / 2)?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..AT_ONCE.min(count)).map(|_| scope.spawn(crawls)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().ok().context("a thread panicked")?)
    })?;
    if site::shares_watches() {
        let served = site.metric("atoll_hub_answers_total{answer=\"watch\"}")?;
        let kinds = site.metric("atoll_hub_feeds")?;
        ensure!(kinds > made().len() as u64 / 2, "the hub watches only {kinds} resources");
        ensure!(served > kinds * count as u64, "the hub has served only {served} watches of {kinds} resources");
    }
    Ok(())
}

/// The location of the nodes of a cluster.
fn location(number: usize) -> &'static str {
    LOCATIONS.get(number).copied().unwrap_or_else(|| format!("district-{number:02}").leak())
}

/// A node for a location that has none.
fn node(number: usize, location: &str) -> serde_json::Value {
    let name = format!("{location}-1");
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {
            "location": location, "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
        }},
        "spec": {"podCIDR": format!("10.245.{number}.0/24"), "podCIDRs": [format!("10.245.{number}.0/24")]},
        "status": {"addresses": [
            {"type": "InternalIP", "address": format!("198.51.100.{}", number + 1)}, {"type": "Hostname", "address": name},
        ]},
    })
}

/// The uids of objects on the host, each with the location whose cluster may see it.
fn uids(host: &Kubectl, locations: &[&'static str]) -> anyhow::Result<Vec<(&'static str, String)>> {
    let kinds = host.ok(&["api-resources", "--verbs=list", "--output=name"])?;
    let kinds = kinds.lines().collect::<Vec<_>>().join(",");
    let fields = ["namespace", "name", "labels.own", "labels.location"].map(|field| format!("{{.metadata.{field}}} "));
    let template = format!("-o=jsonpath={{range .items[*]}}{}{{.metadata.uid}}{{\"\\n\"}}{{end}}", fields.concat());
    let objects = host.ok(&["get", &kinds, "--all-namespaces", &template])?;
    let mut uids = Vec::new();
    for object in objects.lines() {
        let (names, uid) = object.rsplit_once(' ').context("no uid")?;
        match locations.iter().filter(|location| names.contains(**location)).collect::<Vec<_>>()[..] {
            [] => {}
            [location] => uids.push((*location, uid.to_owned())),
            _ => bail!("{names} is of several clusters"),
        }
    }
    ensure!(uids.len() > made().len() * locations.len(), "only {} uids", uids.len());
    Ok(uids)
}

fn crawl(cluster: &Kubectl, location: &str, foreign: &str, uids: &Path, seconds: usize) -> anyhow::Result<()> {
    // Names of the host: namespaces, root namespaces, users and mirrors; and the labels that assign a namespace to a
    // cluster.
    let forbidden = format!(r"[a-z0-9]-ke-{location}|atoll-root|atoll\.dev|atoll-system|vc:ke|atoll:crb");
    let output = Command::new("timeout")
        .arg(seconds.to_string())
        .arg(paths::component("atoll-crawl"))
        .args(["--kubeconfig".as_ref(), cluster.kubeconfig().as_os_str()])
        .args(["--uids".as_ref(), uids.as_os_str()])
        .args(["--own", &format!("own-{location}"), "--forbid", &forbidden, "--foreign", foreign])
        .env_remove("HTTPS_PROXY")
        .env_remove("https_proxy")
        .output()?;
    let (seen, problems) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "ke-{location}: {seen}{problems}");
    let own: HashMap<&str, u32> = seen
        .lines()
        .filter_map(|line| line.strip_prefix("own ")?.split_once(' '))
        .filter_map(|(kind, number)| Some((kind, number.parse().ok()?)))
        .collect();
    for kind in made().iter().map(String::as_str).chain(OF_THE_HOST) {
        ensure!(own.get(kind).is_some_and(|number| *number > 0), "ke-{location} shows no {kind}: {seen}");
    }
    let responses = seen.lines().last().and_then(|line| line.split(' ').next()?.parse::<u32>().ok());
    ensure!(responses.is_some_and(|responses| responses >= ANSWERS), "{responses:?} responses: {seen}");
    Ok(())
}

/// The objects of [`OBJECTS`] whose kind the host serves. `resource.k8s.io/v1` exists since Kubernetes 1.34.
fn objects() -> impl Iterator<Item = &'static str> {
    let is_known = |object: &&str| !(everywhere_kubeedge() && object.contains("apiVersion: resource.k8s.io/v1\n"));
    OBJECTS.split("\n---\n").filter(is_known)
}

/// Their kinds, as group, version and resource.
fn made() -> Vec<String> {
    let value = |object: &str, key: &str| {
        object.lines().find_map(|line| line.strip_prefix(key)).map(|value| value.trim().to_owned())
    };
    objects()
        .filter_map(|object| {
            let kind = value(object, "kind:")?.to_lowercase();
            let resource = match kind.strip_suffix('y') {
                Some(stem) => format!("{stem}ies"),
                None if kind == "endpoints" => kind,
                None if kind.ends_with('s') => format!("{kind}es"),
                None => format!("{kind}s"),
            };
            Some(format!("{}/{resource}", value(object, "apiVersion:")?))
        })
        .collect()
}

/// A custom kind, created by the operator of the host.
fn widgets() -> String {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.leaks.example.com"},
        "spec": {
            "group": "leaks.example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
            "versions": [
                {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}},
            ],
        },
    })
    .to_string()
}

/// A volume for the claim of the cluster, its VolumeAttachment, and the CSINode of the node.
fn of_the_operator(location: &str) -> String {
    let (own, node) = (format!("own-{location}"), format!("{location}-1"));
    let labels = json!({"own": own});
    let metadata = |name: &str| json!({"name": name, "labels": labels});
    let claim = json!({"name": format!("{own}-claim"), "namespace": format!("{own}-space-ke-{location}")});
    let items = json!([
        {
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata(&format!("{own}-volume")),
            "spec": {
                "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "claimRef": claim,
                "csi": {"driver": "none.example.com", "volumeHandle": own},
            },
        },
        {
            "apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": metadata(&format!("{own}-attached")),
            "spec": {
                "attacher": "none.example.com", "nodeName": node,
                "source": {"persistentVolumeName": format!("{own}-volume")},
            },
        },
        {
            "apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": metadata(&node),
            "spec": {"drivers": [{"name": "none.example.com", "nodeID": own}]},
        },
    ]);
    json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()
}

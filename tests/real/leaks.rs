//! No response contains data of another virtual cluster, or names of the host.
//!
//! The test creates objects of every kind with unique names in two virtual clusters. Then it requests all resources of
//! each cluster in every format, and searches the responses for forbidden names. It uses a separate site, because other
//! tests write such names on purpose.

use std::collections::HashMap;
use std::process::Command;

use anyhow::{Context, ensure};
use atoll_tests::host::everywhere_kubeedge;
use atoll_tests::kubectl::CONDITION_TIMEOUT;
use atoll_tests::{Kubectl, Route, VirtualSite, eventually, paths};
use libtest_mimic::Trial;
use serde_json::json;

/// Two clusters, by the location of their nodes, each with its neighbor.
const NEIGHBOURS: [(&str, &str); 2] = [("beijing", "hangzhou"), ("hangzhou", "beijing")];

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
    let site = VirtualSite::start(&[("ke-beijing", "beijing"), ("ke-hangzhou", "hangzhou")])?;
    let host = site.host().kubectl();
    host.ok_with(&["create", "-f", "-"], &widgets())?;
    host.ok(&["wait", "--for=condition=Established", "crd/widgets.leaks.example.com"])?;
    let mut clusters = Vec::new();
    for (location, neighbour) in NEIGHBOURS {
        let cluster = site.administrator(&format!("ke-{location}"), Route::Path)?;
        host.ok_with(&["create", "-f", "-"], &of_the_host(location))?;
        // Discovery contains the kind only some time after it is established.
        eventually(CONDITION_TIMEOUT, || cluster.ok(&["get", "widgets", "--all-namespaces"]))?;
        let objects = objects().collect::<Vec<_>>().join("\n---\n");
        cluster.ok_with(&["create", "-f", "-"], &objects.replace("OWN", &format!("own-{location}")))?;
        clusters.push((cluster, location, neighbour));
    }
    let crawls = clusters.iter().map(|(cluster, location, neighbour)| {
        let (cluster, location, neighbour) = (cluster.clone(), *location, *neighbour);
        std::thread::spawn(move || crawl(&cluster, location, neighbour))
    });
    let crawls: Vec<_> = crawls.collect();
    crawls.into_iter().try_for_each(|crawl| crawl.join().ok().context("a thread panicked")?)
}

fn crawl(cluster: &Kubectl, location: &str, neighbour: &str) -> anyhow::Result<()> {
    // Names of the host: namespaces, root namespaces, users and mirrors; and the labels that assign a namespace to a
    // cluster.
    let forbidden = format!(r"[a-z0-9]-ke-{location}|atoll-root|atoll\.dev|atoll-system|vc:ke|atoll:crb");
    let output = Command::new("timeout")
        .arg("240")
        .arg(paths::component("atoll-crawl"))
        .args(["--kubeconfig".as_ref(), cluster.kubeconfig().as_os_str()])
        .args(["--own", &format!("own-{location}"), "--forbid", &forbidden, "--foreign", neighbour])
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
fn of_the_host(location: &str) -> String {
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

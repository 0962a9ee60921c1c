//! Large labels and annotations of virtual clusters on shared objects: they do not reduce the space of others.

use anyhow::ensure;
use atoll_tests::kubectl::CONDITION_TIMEOUT;
use atoll_tests::{Kubectl, Route, VirtualSite, eventually};
use serde_json::{Value, json};

use super::{BEIJING, HANGZHOU, Listed};

pub(super) const TRIALS: [Listed; 2] = [
    ("overlays_leave_room_for_the_operator", leave_room_for_the_operator),
    ("overlays_leave_room_for_each_other", leave_room_for_each_other),
];

const PATH: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// More than half of the maximum size of all annotations of an object.
const LARGE: usize = 140_000;

/// A definition of namespaced objects, with a description of this length.
fn definition(group: &str, length: usize) -> Value {
    let schema = json!({"type": "object", "description": "x".repeat(length)});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("gears.{group}"), "labels": {"of": group}},
        "spec": {"group": group, "names": {"kind": "Gear", "plural": "gears"}, "scope": "Namespaced", "versions": [version]},
    })
}

fn apply(kubectl: &Kubectl, how: &[&str], object: &Value) -> anyhow::Result<String> {
    kubectl.ok_with(&[&["apply", "-f", "-"], how].concat(), &object.to_string())
}

/// The length of the annotation `large` in a cluster.
fn large(kubectl: &Kubectl, crd: &str) -> anyhow::Result<usize> {
    Ok(kubectl.ok(&["get", crd, "-o=jsonpath={.metadata.annotations.large}"])?.len())
}

/// The number of objects that store overlays of an object.
fn stored(host: &Kubectl, cluster: &str, crd: &str) -> anyhow::Result<usize> {
    let all = ["get", "cm", "-n", &format!("atoll-root-{cluster}"), "-l", "atoll.dev/overlay", "-o=json"];
    let all: Value = serde_json::from_str(&host.ok(&all)?)?;
    let name = crd.trim_start_matches("crd/");
    let of = format!("{PATH}/{name}");
    let items = all["items"].as_array().into_iter().flatten();
    Ok(items.filter(|item| item["metadata"]["annotations"]["atoll.dev/overlay-of"] == of.as_str()).count())
}

fn leave_room_for_the_operator(site: &VirtualSite) -> anyhow::Result<()> {
    let host = site.host().kubectl();
    let (beijing, hangzhou) = (site.administrator(BEIJING, Route::Proxy)?, site.administrator(HANGZHOU, Route::Path)?);
    let group = "room.example.com";
    let crd = format!("crd/gears.{group}");
    let mut operators = definition(group, 1);
    apply(&host, &["--server-side"], &operators)?;
    let own = |cluster: &str, length: usize| {
        let mut own = definition(group, 1);
        own["metadata"]["labels"]["cluster"] = json!(cluster);
        own["metadata"]["annotations"] = json!({"large": "x".repeat(length)});
        own
    };
    for length in [LARGE, 250_000] {
        apply(&beijing, &["--server-side"], &own(BEIJING, length))?;
    }
    // The operator can use the maximum size of the API server.
    operators["metadata"]["annotations"] = json!({"operators": "y".repeat(LARGE)});
    apply(&host, &["--server-side"], &operators)?;
    let shown =
        apply(&hangzhou, &["--server-side", "-o=jsonpath={.metadata.annotations.large}"], &own(HANGZHOU, 100_000))?;
    ensure!(shown.len() == 100_000, "{}", shown.len());
    operators["metadata"]["annotations"] = json!({"operators": "y".repeat(LARGE + 1)});
    apply(&host, &["--server-side"], &operators)?;

    ensure!(large(&beijing, &crd)? == 250_000 && large(&hangzhou, &crd)? == 100_000, "the applied annotations");
    for cluster in [BEIJING, HANGZHOU] {
        ensure!(stored(&host, cluster, &crd)? == 1, "{cluster}: what was replaced is still there");
    }
    let watch = format!("fieldSelector=metadata.name%3Dgears.{group}&watch=true&timeoutSeconds=1");
    let watched = site.curl(BEIJING, Route::Path)?.get(&format!("{PATH}?{watch}"))?.body;
    ensure!(watched.contains(&"x".repeat(250_000)) && !watched.contains("stored:"), "{} bytes", watched.len());
    let seen = host.ok(&["get", &crd, "-o=json"])?;
    ensure!(!seen.contains("xxxx"), "the object on the host contains an overlay");
    let listed = |kubectl: &Kubectl, selector: &str| kubectl.ok(&["get", "crd", "-o=name", "-l", selector]);
    ensure!(
        listed(&beijing, &format!("of={group},cluster={BEIJING}"))?.contains("gears"),
        "the selector does not match"
    );
    ensure!(
        listed(&beijing, &format!("of={group},cluster={HANGZHOU}"))?.is_empty(),
        "a label of another cluster matches"
    );

    // A dry run stores nothing, and shows the result. Changes of other fields keep the overlay.
    let shown = ["--server-side", "--dry-run=server", "-o=jsonpath={.metadata.annotations.large}"];
    let shown = apply(&hangzhou, &shown, &own(HANGZHOU, 50_000))?;
    ensure!(shown.len() == 50_000 && large(&hangzhou, &crd)? == 100_000, "after a dry run");
    hangzhou.ok(&["label", &crd, "more=yes"])?;
    ensure!(large(&hangzhou, &crd)? == 100_000 && stored(&host, HANGZHOU, &crd)? == 1, "after a change");
    hangzhou.ok(&["annotate", &crd, "large-"])?;
    ensure!(large(&hangzhou, &crd)? == 0 && large(&beijing, &crd)? == 250_000, "after a removal");
    beijing.ok(&["delete", &crd])?;
    ensure!(large(&beijing, &crd)? == 0 && stored(&host, BEIJING, &crd)? == 0, "after the apply without it");
    host.ok(&["delete", &crd])?;
    Ok(())
}

/// `kubectl apply` stores the applied object in an annotation. Every cluster applies the same large definition.
fn leave_room_for_each_other(site: &VirtualSite) -> anyhow::Result<()> {
    let group = "each.example.com";
    let crd = format!("crd/gears.{group}");
    let clusters = [site.administrator(BEIJING, Route::Proxy)?, site.administrator(HANGZHOU, Route::Path)?];
    for kubectl in &clusters {
        let mut own = definition(group, LARGE);
        own["metadata"]["labels"]["more"] = json!("yes");
        apply(kubectl, &[], &own)?;
    }
    for kubectl in &clusters {
        // An apply removes fields of the previous one.
        apply(kubectl, &[], &definition(group, LARGE))?;
        let labels = kubectl.ok(&["get", &crd, "-o=jsonpath={.metadata.labels}"])?;
        ensure!(labels == format!(r#"{{"of":"{group}"}}"#), "{labels}");
    }
    for kubectl in &clusters {
        kubectl.ok(&["delete", &crd])?;
    }
    eventually(CONDITION_TIMEOUT, || site.host().kubectl().fails(&["get", &crd]))?;
    Ok(())
}

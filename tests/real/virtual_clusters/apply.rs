//! Server-side apply: `nodeSelector` is an atomic field, and no visible manager owns the guard in it.

use anyhow::ensure;
use atoll_tests::{Kubectl, Route, VirtualSite};
use serde_json::{Value, json};

use super::guard::{stored, workload};
use super::{BEIJING, namespace};

const APPLY: &str = "application/apply-patch+yaml";

fn apply(kubectl: &Kubectl, manager: &str, manifest: &str) -> anyhow::Result<()> {
    let manager = format!("--field-manager={manager}");
    kubectl.ok_with(&["apply", "--server-side", &manager, "-f", "-"], manifest)?;
    Ok(())
}

pub(super) fn appliers_share_a_template(site: &VirtualSite) -> anyhow::Result<()> {
    let kubectl = site.administrator(BEIJING, Route::Proxy)?;
    kubectl.ok_with(&["create", "-f", "-"], &namespace("shared"))?;
    for (name, selector, expected) in [
        ("plain", Value::Null, json!({"location": "beijing"})),
        ("chosen", json!({"disk": "ssd"}), json!({"disk": "ssd", "location": "beijing"})),
    ] {
        let manifest = workload("Deployment", "shared", name, &selector);
        for manager in ["one", "two", "one", "three", "two"] {
            apply(&kubectl, manager, &manifest)?;
            ensure!(stored(site, "shared", name)? == expected, "{name}, {manager}");
        }
        let shown = kubectl.ok(&["get", "deployment", name, "-n", "shared", "-o", "yaml", "--show-managed-fields"])?;
        ensure!(!shown.contains("location"), "{shown}");
        ensure!(shown.contains("nodeSelector") != selector.is_null(), "{shown}");
    }
    Ok(())
}

pub(super) fn an_applier_keeps_its_selector(site: &VirtualSite) -> anyhow::Result<()> {
    let kubectl = site.administrator(BEIJING, Route::Proxy)?;
    kubectl.ok_with(&["create", "-f", "-"], &namespace("owned"))?;
    let chosen = workload("Deployment", "owned", "web", &json!({"disk": "ssd"}));
    let plain = workload("Deployment", "owned", "web", &Value::Null);
    let both = json!({"disk": "ssd", "location": "beijing"});
    apply(&kubectl, "owner", &chosen)?;
    ensure!(stored(site, "owned", "web")? == both);
    apply(&kubectl, "other", &plain)?;
    ensure!(stored(site, "owned", "web")? == both, "the other manager owns it");
    apply(&kubectl, "owner", &chosen)?;
    ensure!(stored(site, "owned", "web")? == both, "the apply owns it");
    // The owner removes the field, and only the guard is left.
    apply(&kubectl, "owner", &plain)?;
    let left = stored(site, "owned", "web")?;
    ensure!(left == json!({"location": "beijing"}), "{left}");
    // This also holds for an owner that forced a conflict, and then applies no pod template.
    let taken =
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "owned"}});
    let mut taking = taken.clone();
    taking["spec"] = json!({"template": {"spec": {"nodeSelector": {"disk": "tape"}}}});
    let force = ["apply", "--server-side", "--field-manager=taker", "--force-conflicts", "-f", "-"];
    kubectl.ok_with(&force, &taking.to_string())?;
    ensure!(stored(site, "owned", "web")? == json!({"disk": "tape", "location": "beijing"}));
    apply(&kubectl, "taker", &taken.to_string())?;
    let left = stored(site, "owned", "web")?;
    ensure!(left == json!({"location": "beijing"}), "the guard was removed: {left}");
    let shown = kubectl.ok(&["get", "deployment", "web", "-n", "owned", "-o", "yaml", "--show-managed-fields"])?;
    ensure!(!shown.contains("nodeSelector") && !shown.contains("location"), "{shown}");
    Ok(())
}

pub(super) fn who_cannot_see_the_guard_has_no_conflict_over_it(site: &VirtualSite) -> anyhow::Result<()> {
    let kubectl = site.administrator(BEIJING, Route::Proxy)?;
    kubectl.ok_with(&["create", "-f", "-"], &namespace("taken"))?;
    let plain = workload("Deployment", "taken", "web", &Value::Null);
    let chosen = workload("Deployment", "taken", "web", &json!({"disk": "ssd"}));
    apply(&kubectl, "one", &plain)?;
    apply(&kubectl, "two", &chosen)?;
    let both = json!({"disk": "ssd", "location": "beijing"});
    ensure!(stored(site, "taken", "web")? == both);
    apply(&kubectl, "one", &plain)?;
    ensure!(stored(site, "taken", "web")? == both, "a manager without the field has removed it");
    // A visible field causes a conflict, as on any cluster.
    let other = workload("Deployment", "taken", "web", &json!({"disk": "tape"}));
    let manifest = ["apply", "--server-side", "--field-manager=three", "-f", "-"];
    let refused = kubectl.run_with(&manifest, &other)?;
    ensure!(refused.stderr.contains("conflict with \"two\": .spec.template.spec.nodeSelector"), "{refused:?}");
    Ok(())
}

/// An annotation with the name of the selector does not own the selector. The agent does not forward fields that only
/// the host could read.
pub(super) fn the_selector_stays_whatever_is_called_like_it(site: &VirtualSite) -> anyhow::Result<()> {
    let kubectl = site.administrator(BEIJING, Route::Proxy)?;
    kubectl.ok_with(&["create", "-f", "-"], &namespace("likeness"))?;
    let plain = workload("Deployment", "likeness", "web", &Value::Null);
    apply(&kubectl, "one", &plain)?;
    kubectl.ok(&["annotate", "deployment", "web", "-n", "likeness", "nodeSelector=x"])?;
    apply(&kubectl, "one", &plain)?;
    let guard = json!({"location": "beijing"});
    let left = stored(site, "likeness", "web")?;
    ensure!(left == guard, "an annotation has removed it: {left}");
    let path = "/apis/apps/v1/namespaces/likeness/deployments/web?fieldManager=one&force=true";
    for annotation in ["1e999".to_owned(), format!("{}{}", "[".repeat(200), "]".repeat(200))] {
        let unread = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"annotations": {"a": 1}}});
        let unread = unread.to_string().replace("{\"a\":1}", &format!("{{\"a\":{annotation}}}"));
        let response = site.curl(BEIJING, Route::Proxy)?.send_as("PATCH", path, APPLY, &unread)?;
        ensure!(response.code == 400, "{}: {}", response.code, response.body);
        ensure!(stored(site, "likeness", "web")? == guard, "an apply with an unreadable field has removed it");
    }
    Ok(())
}

/// The label of a custom object names its virtual cluster. The manager that created the object owns the label.
pub(super) fn an_apply_need_not_have_metadata(site: &VirtualSite) -> anyhow::Result<()> {
    let (kubectl, host) = (site.administrator(BEIJING, Route::Proxy)?, site.host().kubectl());
    let curl = site.curl(BEIJING, Route::Proxy)?;
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "rules": []});
    let path = "/apis/rbac.authorization.k8s.io/v1/clusterroles/bare?fieldManager=one";
    let mut named = role.clone();
    named["metadata"] = json!({"name": "bare"});
    apply(&kubectl, "one", &named.to_string())?;
    for metadata in [Some(Value::Null), Some(json!({})), None] {
        let mut role = role.clone();
        if let Some(metadata) = &metadata {
            role["metadata"] = metadata.clone();
        }
        let response = curl.send_as("PATCH", path, APPLY, &role.to_string())?;
        ensure!(response.code == 200, "{metadata:?}: {}", response.body);
        let jsonpath = "jsonpath={.metadata.labels.atoll\\.dev/virtual-cluster}";
        let cluster = host.ok(&["get", "clusterrole", &format!("vc:{BEIJING}:bare"), "-o", jsonpath])?;
        ensure!(cluster == BEIJING, "{metadata:?}: {cluster:?}");
        kubectl.ok(&["get", "clusterrole", "bare"])?;
    }
    Ok(())
}

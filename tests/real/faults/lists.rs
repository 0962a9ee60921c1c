//! Lists of any version (`resourceVersion=0`), which the hub answers.

use std::sync::Arc;

use anyhow::{Context, ensure};
use atoll_tests::kubectl::CONDITION_TIMEOUT;
use atoll_tests::{Curl, HostCluster, eventually};
use serde_json::Value;

use super::pair::{MAPS, Pair};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// Lists that the hub answers have the same objects as lists that the host answers.
pub(super) fn of_any_version_equal_those_of_the_host(host: Arc<HostCluster>) -> anyhow::Result<()> {
    let pair = Pair::start(host, "lists")?;
    for kubectl in pair.kubectls()? {
        for name in ["kept", "changed", "deleted"] {
            kubectl.ok(&["create", "configmap", name, "--from-literal=a=b"])?;
        }
        kubectl.ok(&["label", "configmap", "changed", "app=x"])?;
        kubectl.ok(&["delete", "configmap", "deleted"])?;
        kubectl.ok(&["create", "rolebinding", "reader", "--clusterrole=view", "--user=jane"])?;
        kubectl.ok(&["create", "deployment", "none", "--image=none", "--replicas=0"])?;
    }
    for (path, selector) in [
        (MAPS, ""),
        (MAPS, "&labelSelector=app%3Dx"),
        (MAPS, "&fieldSelector=metadata.name%3Dkept"),
        ("/api/v1/namespaces", ""),
        ("/api/v1/nodes", ""),
        ("/apis/apps/v1/deployments", ""),
        (&format!("{RBAC}/rolebindings"), ""),
        (&format!("{RBAC}/clusterrolebindings"), ""),
    ] {
        pair.shares(path)?;
        for admin in &pair.admins {
            eventually(CONDITION_TIMEOUT, || {
                let before = answered(&pair)?;
                let any = list(admin, &format!("{path}?resourceVersion=0&limit=500{selector}"))?;
                ensure!(answered(&pair)? == before + 1, "the host answers {path}{selector}");
                let newest = list(admin, &format!("{path}?limit=500{selector}"))?;
                // The hub can be older.
                ensure!(any == newest, "{path}{selector}: {any:#} instead of {newest:#}");
                Ok(())
            })?;
        }
    }
    Ok(())
}

/// The number of lists that the hub has answered.
fn answered(pair: &Pair) -> anyhow::Result<u64> {
    pair.site.metric("atoll_hub_answers_total{answer=\"list\"}")
}

/// A list, sorted and without its version.
fn list(admin: &Curl, path: &str) -> anyhow::Result<Value> {
    let mut list = admin.get(path)?.json()?;
    let metadata = list["metadata"].as_object_mut().context("no metadata")?;
    ensure!(metadata.remove("resourceVersion").is_some() && metadata.is_empty(), "{metadata:?}");
    list["items"].as_array_mut().context("no items")?.sort_by_key(Value::to_string);
    Ok(list)
}

//! What the chart renders, as the API server would store it, compared to the manifests of `configs/kubernetes`.

use std::collections::BTreeMap;

use anyhow::{Context, ensure};
use atoll_tests::{Kubectl, paths};
use serde_json::{Map, Value};

use super::{AGENT, Admin, SERVER, chart, sets, text, values_of};

/// Objects by kind, namespace and name.
type Objects = BTreeMap<String, Value>;

/// The values of `ci/` that equal the manifests.
const COMPARED: [&str; 4] = [AGENT, SERVER, "karmada-rights", MONITORED];
const MONITORED: &str = "monitored";

/// The objects equal those that the documentation applies without Helm. The API server accepts them without a warning.
pub(super) fn equal_the_manifests(admin: &Admin) -> anyhow::Result<()> {
    let folder = |folder: &str| {
        let folder = paths::workspace().join("configs/kubernetes").join(folder);
        admin.kubectl.ok(&["kustomize", text(&folder)?])
    };
    let rights = std::fs::read_to_string(paths::workspace().join("configs/kubernetes/server/karmada-rbac.yaml"))?;
    let monitors = ["proxy-agent", "proxy-server"].map(|program| {
        let file = format!("configs/observability/service-monitor/{program}.yaml");
        std::fs::read_to_string(paths::workspace().join(file))
    });
    let [of_agent, of_server] = monitors;
    let monitors = [of_agent?, of_server?].join("---\n");
    for (set, manifests) in COMPARED.into_iter().zip([folder("")?, folder("server")?, rights, monitors]) {
        let mut expected = effective(&admin.kubectl, &manifests)?;
        // Helm does not create the namespace of a release (`--create-namespace` does).
        expected.remove("Namespace - atoll-system");
        // The chart defines no kinds, because Helm would not update them.
        expected.retain(|name, _| !name.starts_with("CustomResourceDefinition "));
        // The chart renders these only with `kubeconfigNamespace`.
        expected.retain(|name, _| !name.ends_with(" atoll-proxy-agent-kubeconfigs"));
        let mut found = effective(&admin.kubectl, &rendered(admin, set)?)?;
        if set == MONITORED {
            // The values of AGENT and SERVER have shown the other objects.
            found.retain(|name, _| expected.contains_key(name));
        }
        let names = |objects: &Objects| objects.keys().cloned().collect::<Vec<_>>();
        ensure!(names(&found) == names(&expected), "{set}: {:?} instead of {:?}", names(&found), names(&expected));
        for (name, object) in found {
            let expected = &expected[&name];
            ensure!(object == *expected, "{set}: {name} is\n{object:#}\ninstead of\n{expected:#}");
        }
    }
    Ok(())
}

/// The API server also accepts the objects of all other values in `ci/`, without a warning.
pub(super) fn of_other_values_are_valid(admin: &Admin) -> anyhow::Result<()> {
    for set in sets()?.iter().filter(|set| !COMPARED.contains(&set.as_str())) {
        let objects = effective(&admin.kubectl, &rendered(admin, set)?).with_context(|| set.clone())?;
        ensure!(!objects.is_empty(), "{set} renders nothing");
    }
    Ok(())
}

fn rendered(admin: &Admin, set: &str) -> anyhow::Result<String> {
    let chart = chart();
    admin.helm(&["template", "atoll", text(&chart)?, "-f", &values_of(&chart, set)?])
}

/// The objects as the API server would store them, without what it or Helm adds.
fn effective(kubectl: &Kubectl, yaml: &str) -> anyhow::Result<Objects> {
    let strictly = ["--server-side", "--force-conflicts", "--validate=strict", "--warnings-as-errors"];
    let printed =
        kubectl.ok_with(&[&["apply", "-f", "-", "--dry-run=server", "-o", "json"][..], &strictly].concat(), yaml)?;
    let mut objects = Objects::new();
    for document in serde_json::Deserializer::from_str(&printed).into_iter::<Value>() {
        let mut document = document?;
        let items = match document["items"].take() {
            Value::Array(items) => items,
            _ => vec![document],
        };
        for mut object in items {
            let metadata = &object["metadata"];
            let words = [&object["kind"], &metadata["namespace"], &metadata["name"]];
            let name = words.map(|word| word.as_str().unwrap_or("-")).join(" ");
            normalise(kubectl, &mut object).with_context(|| name.clone())?;
            ensure!(objects.insert(name.clone(), object).is_none(), "two objects are called {name}");
        }
    }
    Ok(objects)
}

/// Removes what must differ between two installations, and between Helm and kustomize.
fn normalise(kubectl: &Kubectl, object: &mut Value) -> anyhow::Result<()> {
    let metadata = object["metadata"].as_object_mut().context("no metadata")?;
    metadata.retain(|key, _| ["annotations", "labels", "name", "namespace"].contains(&key.as_str()));
    without(metadata, "labels", &["app.kubernetes.io/", "helm.sh/"]);
    without(metadata, "annotations", &["helm.sh/resource-policy", "kubectl.kubernetes.io/", "meta.helm.sh/"]);
    object.as_object_mut().context("no object")?.remove("status");
    match object["kind"].as_str().unwrap_or_default() {
        "ConfigMap" => {
            for config in object["data"].as_object_mut().context("no data")?.values_mut() {
                *config = parsed(kubectl, config.as_str().context("data are strings")?)?;
            }
        }
        "Deployment" => {
            let template = &mut object["spec"]["template"];
            let metadata = template["metadata"].as_object_mut().context("pods without labels")?;
            without(metadata, "annotations", &["checksum/config"]);
            let ports = template["spec"]["containers"][0]["ports"].as_array_mut().context("no ports")?;
            ports.sort_by_key(|port| port["containerPort"].as_u64());
        }
        "Service" => {
            let spec = object["spec"].as_object_mut().context("no spec")?;
            // The dry run allocates addresses and ports.
            if spec["clusterIP"] != "None" {
                spec.retain(|key, _| !["clusterIP", "clusterIPs", "healthCheckNodePort"].contains(&key.as_str()));
                for port in spec["ports"].as_array_mut().context("no ports")? {
                    port.as_object_mut().context("no port")?.remove("nodePort");
                }
            }
        }
        _ => {}
    }
    Ok(())
}

/// Removes labels or annotations that begin in one of these ways.
fn without(metadata: &mut Map<String, Value>, kind: &str, beginnings: &[&str]) {
    let Some(pairs) = metadata.get_mut(kind).and_then(Value::as_object_mut) else { return };
    pairs.retain(|key, _| !beginnings.iter().any(|beginning| key.starts_with(beginning)));
    if pairs.is_empty() {
        metadata.remove(kind);
    }
}

/// A configuration as JSON. An empty list means the same as none.
fn parsed(kubectl: &Kubectl, yaml: &str) -> anyhow::Result<Value> {
    // This command prints any YAML as JSON, without an API server.
    let json = kubectl.ok_with(&["annotate", "--local", "-f", "-", "-o", "json", "parsed=yes"], yaml)?;
    let mut config: Map<String, Value> = serde_json::from_str(&json)?;
    config.remove("metadata");
    config.retain(|_, value| value.as_array().is_none_or(|list| !list.is_empty()));
    Ok(config.into())
}

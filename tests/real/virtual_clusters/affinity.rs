//! Anti-affinity of a pod affects only pods of its virtual cluster.

use anyhow::{Context, ensure};
use atoll_tests::{Nodes, Route, VirtualSite, eventually, kubectl::CONDITION_TIMEOUT};
use serde_json::{Value, json};

use super::admission_policies::{direct_user, pod, says};
use super::{BEIJING, HANGZHOU, Listed};

pub(super) const TRIALS: [Listed; 1] = [("affinity_selects_the_own_pods", selects_the_own_pods)];

const POLICY: &str = "pods.atoll.dev";
const NAME: &str = "affinity";
const LABEL: &str = "atoll.dev/virtual-cluster";

fn selects_the_own_pods(site: &VirtualSite) -> anyhow::Result<()> {
    let direct = direct_user(site, NAME)?;
    let administrator = site.administrator(BEIJING, Route::Proxy)?;
    let host = format!("{NAME}-{BEIJING}");
    let own = json!(Nodes::Location("beijing").selector());
    let pod = |namespace: &str, number: usize, affinity: &Value| {
        pod(namespace, &format!("terms-{number}"), &json!({"nodeSelector": own, "affinity": affinity}))
    };
    let requires = |operator: &str, values: &[&str]| json!({"namespaceSelector": {"matchExpressions": [{"key": LABEL, "operator": operator, "values": values}]}});
    let foreign = [
        json!({"namespaceSelector": {}}),
        json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}}),
        requires("NotIn", &[BEIJING]),
        requires("In", &[BEIJING, HANGZHOU]),
        json!({"namespaces": [host, format!("default-{HANGZHOU}")]}),
    ];
    for (number, term) in foreign.iter().enumerate() {
        for affinity in everywhere(term) {
            let output = direct.run_with(&["create", "-f", "-"], &pod(&host, number, &affinity))?;
            says(&output, POLICY).with_context(|| affinity.to_string())?;
        }
    }
    let confined = [json!({}), requires("In", &[BEIJING]), json!({"namespaces": [host, format!("default-{BEIJING}")]})];
    for (number, term) in confined.iter().enumerate() {
        for affinity in everywhere(term) {
            direct.ok_with(&["create", "--dry-run=server", "-f", "-"], &pod(&host, number, &affinity))?;
        }
    }
    // The agent restricts the term to the virtual cluster.
    for (number, term) in [foreign[0].clone(), json!({"namespaces": [NAME, "default"]})].iter().enumerate() {
        for affinity in everywhere(term) {
            administrator.ok_with(&["create", "--dry-run=server", "-f", "-"], &pod(NAME, number, &affinity))?;
        }
    }

    // The host accepts the template, and refuses the pods that the controller creates.
    let [.., hard] = everywhere(&foreign[0]);
    direct.ok_with(&["create", "-f", "-"], &deployment("foreign", &host, &hard))?;
    eventually(CONDITION_TIMEOUT, || {
        let events = direct.ok(&["get", "events", "-n", &host, "-o", "jsonpath={.items[*].message}"])?;
        ensure!(events.contains(POLICY), "{events}");
        Ok(())
    })?;
    administrator.ok_with(&["create", "-f", "-"], &deployment("own", NAME, &hard))?;
    administrator.ok(&["rollout", "status", "deployment/own", "-n", NAME, "--timeout=30s"])?;
    administrator.ok(&["delete", "namespace", NAME, "--wait=false"])?;
    Ok(())
}

/// A pod with this term in every list of terms.
fn everywhere(term: &Value) -> [Value; 4] {
    let mut term = term.clone();
    term["topologyKey"] = json!("kubernetes.io/hostname");
    term["labelSelector"] = json!({"matchLabels": {"app": "terms"}});
    let weighted = json!([{"weight": 1, "podAffinityTerm": term}]);
    [
        json!({"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": weighted}}),
        json!({"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}),
        json!({"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": weighted}}),
        json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}),
    ]
}

fn deployment(name: &str, namespace: &str, affinity: &Value) -> String {
    let labels = json!({"app": name});
    let spec = json!({
        "affinity": affinity, "nodeSelector": Nodes::Location("beijing").selector(),
        "containers": [{"name": "main", "image": "image:1"}],
    });
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}},
    })
    .to_string()
}

//! ControllerRevisions, from which the StatefulSet controller creates pods with its own rights.

use anyhow::{Context, ensure};
use atoll_tests::{Route, VirtualSite};
use serde_json::{Value, json};

use super::admission_policies::{direct_user, says};
use super::{BEIJING, Listed};

pub(super) const TRIALS: [Listed; 1] = [("revisions_are_of_their_namespace", are_of_their_namespace)];

const POLICY: &str = "revisions.atoll.dev";
const NAME: &str = "revisions";

fn are_of_their_namespace(site: &VirtualSite) -> anyhow::Result<()> {
    let direct = direct_user(site, NAME)?;
    let administrator = site.administrator(BEIJING, Route::Proxy)?;
    let host = format!("{NAME}-{BEIJING}");
    for (key, data) in [
        ("metadata.namespace", json!({"metadata": {"namespace": "kube-system"}})),
        ("Metadata", json!({"Metadata": {"namespace": "kube-system"}})),
        ("metadata.namE\u{17f}pace", json!({"metadata": {"namE\u{17f}pace": "kube-system"}})),
        ("SPEC", json!({"SPEC": {"template": {"spec": {"nodeName": "hangzhou-1"}}}})),
        ("spec.Template", json!({"spec": {"Template": {"spec": {"nodeName": "hangzhou-1"}}}})),
        ("spec.template.\u{17f}pec", json!({"spec": {"template": {"\u{17f}pec": {"nodeName": "hangzhou-1"}}}})),
        ("spec.template.spec.NodeName", json!({"spec": {"template": {"spec": {"NodeName": "hangzhou-1"}}}})),
    ] {
        let create = ["create", "-f", "-"];
        says(&direct.run_with(&create, &revision(&host, key, &data))?, POLICY).context(key)?;
        let output = administrator.run_with(&create, &revision(NAME, key, &data))?;
        if key == "metadata.namespace" {
            // The agent maps the name of the namespace, which would be another one on the host.
            says(&output, POLICY).context("through the endpoint")?;
        } else {
            ensure!(
                output.code != 0 && output.stderr.contains("the StatefulSet controller reads keys in any case"),
                "{key}: {output:?}"
            );
        }
    }

    // ControllerRevisions like those of the built-in controllers, and those of other controllers.
    let template = json!({"metadata": {"labels": {"app": "a"}, "creationTimestamp": null}, "spec": {"containers": []}});
    let of_controller = json!({"spec": {"template": template}});
    let of_another = |namespace: &str| json!({"kind": "Widget", "metadata": {"name": "a", "namespace": namespace}});
    for (kubectl, namespace) in [(&direct, &host[..]), (&administrator, NAME)] {
        let of_none = json!({"metadata": null, "spec": "a"});
        for (name, data) in [("set", of_controller.clone()), ("widget", of_another(namespace)), ("none", of_none)] {
            let name = format!("{name}-{namespace}");
            kubectl.ok_with(&["create", "-f", "-"], &revision(namespace, &name, &data))?;
            kubectl.ok(&["label", "controllerrevision", &name, "mine=yes", "-n", namespace])?;
        }
    }
    let path = "jsonpath={.data.metadata.namespace}";
    let shown = administrator.ok(&["get", "controllerrevision", &format!("widget-{host}"), "-n", NAME, "-o", path])?;
    ensure!(shown == NAME, "{shown}");
    administrator.ok(&["delete", "namespace", NAME, "--wait=false"])?;
    Ok(())
}

fn revision(namespace: &str, name: &str, data: &Value) -> String {
    let name = name.to_ascii_lowercase().replace('\u{17f}', "s");
    json!({
        "apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {"name": name, "namespace": namespace},
        "revision": 1, "data": data,
    })
    .to_string()
}

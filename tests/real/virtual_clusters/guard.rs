//! The guard: the node selector that keeps pods on the nodes of their virtual cluster. Clients do not see it.

use std::collections::BTreeSet;

use anyhow::{Context, ensure};
use atoll_tests::{Curl, Kubectl, Nodes, Route, VirtualSite, eventually, kubectl::CONDITION_TIMEOUT};
use serde_json::{Map, Value, json};

use super::{BEIJING, namespace};

/// The kinds with pod templates: group, version, plural, kind, and the path of the pod spec.
const TEMPLATES: [(&str, &str, &str, &[&str]); 9] = [
    ("v1", "pods", "Pod", &["spec"]),
    ("v1", "replicationcontrollers", "ReplicationController", &["spec", "template", "spec"]),
    ("v1", "podtemplates", "PodTemplate", &["template", "spec"]),
    ("apps/v1", "deployments", "Deployment", &["spec", "template", "spec"]),
    ("apps/v1", "replicasets", "ReplicaSet", &["spec", "template", "spec"]),
    ("apps/v1", "statefulsets", "StatefulSet", &["spec", "template", "spec"]),
    ("apps/v1", "daemonsets", "DaemonSet", &["spec", "template", "spec"]),
    ("batch/v1", "jobs", "Job", &["spec", "template", "spec"]),
    ("batch/v1", "cronjobs", "CronJob", &["spec", "jobTemplate", "spec", "template", "spec"]),
];

/// A workload with this node selector in its template, unless it is null.
pub(super) fn workload(kind: &str, namespace: &str, name: &str, node_selector: &Value) -> String {
    let mut pod = json!({"containers": [{"name": "main", "image": "image:1"}]});
    if !node_selector.is_null() {
        pod["nodeSelector"] = node_selector.clone();
    }
    let workload = json!({
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": pod},
        },
    });
    workload.to_string()
}

/// The node selector of a Deployment on the host, without other parts of the guard.
pub(super) fn stored(site: &VirtualSite, namespace: &str, name: &str) -> anyhow::Result<Value> {
    let namespace = format!("{namespace}-{BEIJING}");
    let path = "jsonpath={.spec.template.spec.nodeSelector}";
    let stored = site.host().kubectl().ok(&["get", "deployment", name, "-n", &namespace, "-o", path])?;
    let mut stored: Map<String, Value> = serde_json::from_str(&stored)?;
    for (key, value) in Nodes::Location("beijing").selector() {
        ensure!(stored.get(key).is_some_and(|held| held == value), "{key}={value} is missing: {stored:?}");
        if key != "location" {
            stored.remove(key);
        }
    }
    Ok(stored.into())
}

pub(super) fn daemon_sets_stay_on_their_nodes(site: &VirtualSite) -> anyhow::Result<()> {
    let kubectl = site.administrator(BEIJING, Route::Proxy)?;
    kubectl.ok_with(&["create", "-f", "-"], &namespace("daemons"))?;
    kubectl.ok_with(&["apply", "-f", "-"], &workload("DaemonSet", "daemons", "agent", &Value::Null))?;
    kubectl.ok(&["rollout", "status", "daemonset/agent", "-n", "daemons", "--timeout=40s"])?;
    let desired = "jsonpath={.status.desiredNumberScheduled}";
    ensure!(kubectl.ok(&["get", "daemonset/agent", "-n", "daemons", "-o", desired])? == "2");
    let nodes = r#"jsonpath={range .items[*]}{.spec.nodeName}{"\n"}{end}"#;
    let nodes = site.host().kubectl().ok(&["get", "pods", "-n", "daemons-ke-beijing", "-o", nodes])?;
    ensure!(nodes.lines().collect::<BTreeSet<_>>() == BTreeSet::from(["beijing-1", "beijing-2"]), "{nodes}");
    Ok(())
}

pub(super) fn another_location_is_refused(site: &VirtualSite) -> anyhow::Result<()> {
    let kubectl = site.administrator(BEIJING, Route::Proxy)?;
    let curl = site.curl(BEIJING, Route::Path)?;
    kubectl.ok_with(&["create", "-f", "-"], &namespace("elsewhere"))?;
    for (version, plural, kind, path) in TEMPLATES {
        let prefix = if version == "v1" { "/api" } else { "/apis" };
        let url = format!("{prefix}/{version}/namespaces/elsewhere/{plural}");
        let field = format!("{}.nodeSelector[location]", path.join("."));
        let mut object = json!({"apiVersion": version, "kind": kind, "metadata": {"name": "x"}});
        let pod = path.iter().fold(&mut object, |at, step| &mut at[*step]);
        *pod = json!({"containers": [{"name": "a", "image": "a"}], "nodeSelector": {"location": "hangzhou"}});
        names_the_field(&curl.send("POST", &url, &object.to_string())?.refused(422, "Invalid", &field)?, &field)
            .with_context(|| format!("a new {kind}"))?;
    }

    let url = "/apis/apps/v1/namespaces/elsewhere/deployments/fine";
    kubectl.ok_with(&["apply", "-f", "-"], &workload("Deployment", "elsewhere", "fine", &Value::Null))?;
    let field = "spec.template.spec.nodeSelector[location]";
    let merge = json!({"spec": {"template": {"spec": {"nodeSelector": {"location": "hangzhou"}}}}});
    let pointer = "/spec/template/spec/nodeSelector";
    let add = json!([{"op": "add", "path": pointer, "value": {"location": "hangzhou"}}]);
    let fine = workload("Deployment", "elsewhere", "fine", &json!({"location": "hangzhou"}));
    for (method, url, media_type, body) in [
        ("PATCH", url.to_owned(), "application/merge-patch+json", merge.to_string()),
        ("PATCH", url.to_owned(), "application/strategic-merge-patch+json", merge.to_string()),
        ("PATCH", url.to_owned(), "application/json-patch+json", add.to_string()),
        ("PATCH", format!("{url}?fieldManager=x&force=true"), "application/apply-patch+yaml", fine.clone()),
        ("PUT", url.to_owned(), "application/json", fine),
    ] {
        let response = curl.send_as(method, &url, media_type, &body)?;
        let status = response.refused(422, "Invalid", field).with_context(|| format!("{method} {media_type}"))?;
        names_the_field(&status, field)?;
    }
    ensure!(stored(site, "elsewhere", "fine")? == json!({"location": "beijing"}));
    Ok(())
}

fn names_the_field(status: &Value, field: &str) -> anyhow::Result<()> {
    ensure!(status["details"]["causes"][0]["field"] == field, "{status} has no cause at {field}");
    Ok(())
}

pub(super) fn no_patch_removes_the_guard(site: &VirtualSite) -> anyhow::Result<()> {
    let kubectl = site.administrator(BEIJING, Route::Proxy)?;
    let curl = site.curl(BEIJING, Route::Path)?;
    kubectl.ok_with(&["create", "-f", "-"], &namespace("patched"))?;
    let manifest = |selector: &Value| workload("Deployment", "patched", "kept", selector);
    kubectl.ok_with(&["apply", "-f", "-"], &manifest(&json!({"disk": "ssd"})))?;
    let url = "/apis/apps/v1/namespaces/patched/deployments/kept";
    // Patches of the pod spec, the kind of the patch, and the node selector that the client must see.
    let container = r#""containers":[{"name":"main","image":"image:1"}]"#;
    let selector = "/spec/template/spec/nodeSelector";
    let json_patches = [
        (format!(r#"[{{"op":"remove","path":"{selector}"}}]"#), Value::Null),
        (format!(r#"[{{"op":"add","path":"{selector}","value":{{"disk":"ssd"}}}}]"#), json!({"disk": "ssd"})),
        (format!(r#"[{{"op":"replace","path":"{selector}","value":{{}}}}]"#), Value::Null),
        (format!(r#"[{{"op":"replace","path":"/spec/template/spec","value":{{{container}}}}}]"#), Value::Null),
    ];
    let merges = [
        // A directive has no effect if the client sees no map.
        ("strategic-merge", r#"{"nodeSelector":{"disk":"ssd","$patch":"replace"}}"#.to_owned(), Value::Null),
        ("strategic-merge", r#"{"nodeSelector":{"a":"b"}}"#.to_owned(), json!({"a": "b"})),
        ("strategic-merge", r#"{"nodeSelector":{"disk":"ssd","$patch":"replace"}}"#.to_owned(), json!({"disk": "ssd"})),
        ("strategic-merge", r#"{"nodeSelector":{"$patch":"replace"}}"#.to_owned(), Value::Null),
        ("strategic-merge", format!(r#"{{"$patch":"replace",{container}}}"#), Value::Null),
        ("strategic-merge", format!(r#"{{"$retainKeys":["containers"],{container}}}"#), Value::Null),
        ("strategic-merge", r#"{"nodeSelector":{"$patch":"delete"}}"#.to_owned(), Value::Null),
        ("strategic-merge", r#"{"nodeSelector":null}"#.to_owned(), Value::Null),
        ("merge", r#"{"nodeSelector":{"disk":"ssd"}}"#.to_owned(), json!({"disk": "ssd"})),
        ("merge", r#"{"nodeSelector":{"location":null}}"#.to_owned(), json!({"disk": "ssd"})),
        ("merge", r#"{"nodeSelector":null}"#.to_owned(), Value::Null),
    ];
    let merges = merges
        .into_iter()
        .map(|(kind, patch, shown)| (kind, format!(r#"{{"spec":{{"template":{{"spec":{patch}}}}}}}"#), shown));
    let patches = json_patches.into_iter().map(|(patch, shown)| ("json", patch, shown)).chain(merges);
    for (kind, patch, shown) in patches {
        let media_type = format!("application/{kind}-patch+json");
        let response = curl.send_as("PATCH", url, &media_type, &patch)?;
        ensure!(response.code == 200, "{kind} {patch}: {} {}", response.code, response.body);
        holds(site, &response.json()?, &shown).with_context(|| format!("{kind} {patch}"))?;
    }
    // A PUT without the key replaces an object with it.
    for selector in [json!({"disk": "ssd"}), Value::Null] {
        // The controller of the host may have written a status since kubectl has read the object.
        eventually(CONDITION_TIMEOUT, || kubectl.ok_with(&["replace", "-f", "-"], &manifest(&selector)).map(drop))?;
    }
    holds(site, &curl.get(url)?.json()?, &Value::Null).context("with PUT")
}

/// The client sees `shown`. The host also has the location.
fn holds(site: &VirtualSite, seen: &Value, shown: &Value) -> anyhow::Result<()> {
    let seen = &seen["spec"]["template"]["spec"]["nodeSelector"];
    ensure!(seen == shown, "{seen} is shown instead of {shown}");
    let mut expected = if shown.is_null() { json!({}) } else { shown.clone() };
    expected["location"] = "beijing".into();
    let stored = stored(site, "patched", "kept")?;
    ensure!(stored == expected, "{stored} is stored instead of {expected}");
    Ok(())
}

pub(super) fn objects_can_be_written_back(site: &VirtualSite) -> anyhow::Result<()> {
    let kubectl = site.administrator(BEIJING, Route::Proxy)?;
    kubectl.ok_with(&["create", "-f", "-"], &namespace("put-back"))?;
    for (kind, plural) in [("Deployment", "deployments"), ("DaemonSet", "daemonsets")] {
        kubectl.ok_with(&["apply", "-f", "-"], &workload(kind, "put-back", "same", &Value::Null))?;
        let rollout = format!("{kind}/same");
        kubectl.ok(&["rollout", "status", &rollout, "-n", "put-back", "--timeout=40s"])?;
        let url = format!("/apis/apps/v1/namespaces/put-back/{plural}/same");
        // A controller may still write its status.
        eventually(CONDITION_TIMEOUT, || {
            let read = kubectl.ok(&["get", "--raw", &url])?;
            let put = kubectl.ok_with(&["replace", "--raw", &url, "-f", "-"], &read)?;
            let version = |text: &str| {
                let object: Value = serde_json::from_str(text)?;
                anyhow::Ok((object["metadata"]["resourceVersion"].clone(), object["metadata"]["generation"].clone()))
            };
            let (read, put) = (version(&read)?, version(&put)?);
            ensure!(read == put, "{read:?} became {put:?}");
            Ok(())
        })?;
    }
    Ok(())
}

pub(super) fn pods_and_jobs_can_be_updated(site: &VirtualSite) -> anyhow::Result<()> {
    let kubectl = site.administrator(BEIJING, Route::Proxy)?;
    let curl = site.curl(BEIJING, Route::Path)?;
    kubectl.ok_with(&["create", "-f", "-"], &namespace("updated"))?;
    let pod = json!({"containers": [{"name": "main", "image": "image:1"}], "restartPolicy": "Never"});
    let metadata = json!({"name": "x", "namespace": "updated"});
    let objects = [
        ("/api/v1", "pods", json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod})),
        (
            "/apis/batch/v1",
            "jobs",
            json!({
                "apiVersion": "batch/v1", "kind": "Job", "metadata": metadata,
                "spec": {"template": {"metadata": {"annotations": {"tests.atoll.dev/run-forever": "true"}}, "spec": pod}},
            }),
        ),
    ];
    for (prefix, plural, object) in objects {
        kubectl.ok_with(&["create", "-f", "-"], &object.to_string())?;
        let url = format!("{prefix}/namespaces/updated/{plural}/x");
        updated_by_put(&curl, &url)?;
        for (kind, patch) in [
            ("merge", r#"{"metadata":{"labels":{"by":"merge"}}}"#),
            ("strategic-merge", r#"{"metadata":{"labels":{"by":"strategic"}}}"#),
            ("json", r#"[{"op":"add","path":"/metadata/labels/by","value":"json"}]"#),
        ] {
            let response = curl.send_as("PATCH", &url, &format!("application/{kind}-patch+json"), patch)?;
            ensure!(response.code == 200, "{kind} of {plural}: {}", response.body);
        }
    }
    runs_on_its_nodes(&site.host().kubectl(), "updated-ke-beijing")
}

/// Reads the object, adds a label and writes it. Repeats this after conflicts.
fn updated_by_put(curl: &Curl, url: &str) -> anyhow::Result<()> {
    eventually(CONDITION_TIMEOUT, || {
        let mut object = curl.get(url)?.json()?;
        object["metadata"]["labels"]["by"] = "put".into();
        let response = curl.send("PUT", url, &object.to_string())?;
        ensure!(response.code == 200, "PUT {url}: {} {}", response.code, response.body);
        Ok(())
    })
}

fn runs_on_its_nodes(host: &Kubectl, namespace: &str) -> anyhow::Result<()> {
    eventually(CONDITION_TIMEOUT, || {
        let nodes = host.ok(&["get", "pods", "-n", namespace, "-o", "jsonpath={.items[*].spec.nodeName}"])?;
        ensure!(nodes.split(' ').count() == 2 && nodes.split(' ').all(|node| node.starts_with("beijing-")), "{nodes}");
        Ok(())
    })
}

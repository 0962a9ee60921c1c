//! All kinds in discovery can be listed and watched, and responses contain only objects of the virtual cluster.

use std::sync::Mutex;
use std::thread;
use std::time::{Duration, SystemTime};

use anyhow::{Context, bail, ensure};
use atoll_tests::curl::{Curl, Response};
use atoll_tests::host::everywhere_kubeedge;
use atoll_tests::kubectl::CONDITION_TIMEOUT;
use atoll_tests::{Kubectl, Route, VirtualSite, eventually};
use serde_json::{Value, json};

use super::{BEIJING, HANGZHOU, namespace};

const DISCOVERY: &str = "Accept: application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io";
const TABLE: &str = "Accept: application/json;as=Table;v=v1;g=meta.k8s.io";
/// The Accept header of client-go's metadata client.
const METADATA: &str = "Accept: application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json";
const PROTOBUF: &str = "Accept: application/vnd.kubernetes.protobuf,application/json";
/// A watch with initial events, like that of client-go's reflector (KEP-3157). It lasts for two seconds.
const WATCH: &str =
    "watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=2";

/// The number of kinds that are tested concurrently.
const WORKERS: usize = 8;

/// A kind that can be listed.
#[derive(Clone, Debug)]
struct Listed {
    path: String,
    watched: bool,
}

/// An administrator lists and watches all resources, in every form that clients request.
pub(super) fn every_kind_can_be_read(site: &VirtualSite) -> anyhow::Result<()> {
    let admin = site.administrator(BEIJING, Route::Proxy)?;
    let curl = site.curl_like(&admin, BEIJING, Route::Proxy)?;
    let kinds = listed(&curl)?;
    ensure!(kinds.len() > 50, "{kinds:?}");
    let failures = Mutex::new(Vec::new());
    let queue = Mutex::new(kinds.into_iter());
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                loop {
                    let Some(kind) = queue.lock().ok().and_then(|mut queue| queue.next()) else { return };
                    if let (Err(error), Ok(mut failures)) = (can_be_read(&curl, &kind), failures.lock()) {
                        failures.push((kind.path, format!("{error:?}")));
                    }
                }
            });
        }
    });
    let mut failures = failures.into_inner().unwrap_or_default();
    // Other tests delete definitions.
    let still = listed(&curl)?;
    failures.retain(|(path, _)| still.iter().any(|kind| kind.path == *path));
    ensure!(failures.is_empty(), "{failures:#?}");

    // kubectl reports the same resources.
    eventually(CONDITION_TIMEOUT, || {
        let names = admin.ok(&["api-resources", "--verbs=list", "-o", "name"])?;
        let names: Vec<&str> = names.lines().collect();
        for kinds in names.chunks(16) {
            admin.ok(&["get", &kinds.join(","), "--all-namespaces", "-o", "name"])?;
        }
        Ok(())
    })
}

/// The content of discovery.
fn listed(curl: &Curl) -> anyhow::Result<Vec<Listed>> {
    let mut kinds = Vec::new();
    for root in ["/api", "/apis"] {
        let groups = curl.clone().with(&["--header", DISCOVERY]).get(root)?.json()?;
        for group in groups["items"].as_array().context("no groups")? {
            for version in group["versions"].as_array().into_iter().flatten() {
                let version_path = [Some(root), group["metadata"]["name"].as_str(), version["version"].as_str()];
                let version_path = version_path.into_iter().flatten().collect::<Vec<_>>().join("/");
                for resource in version["resources"].as_array().into_iter().flatten() {
                    let can = |verb: &str| {
                        resource["verbs"].as_array().is_some_and(|verbs| verbs.iter().any(|is| is == verb))
                    };
                    if let (true, Some(name)) = (can("list"), resource["resource"].as_str()) {
                        kinds.push(Listed { path: format!("{version_path}/{name}"), watched: can("watch") });
                    }
                }
            }
        }
    }
    Ok(kinds)
}

fn can_be_read(curl: &Curl, kind: &Listed) -> anyhow::Result<()> {
    let path = &kind.path;
    for accept in ["Accept: application/json", TABLE, METADATA, PROTOBUF] {
        let Response { code, body, .. } = curl.clone().with(&["--header", accept]).get(path)?;
        ensure!(code == 200, "{accept}: {code}: {body}");
    }
    let list = curl.get(path)?.json()?;
    let version = list["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    if !kind.watched {
        return Ok(());
    }
    ensure!(version.parse::<u64>().is_ok_and(|version| version > 0), "the list has no version: {list}");
    for accept in ["Accept: application/json", TABLE] {
        // Kubernetes 1.32 refuses Tables for a watch with initial events (406).
        if accept == TABLE && everywhere_kubeedge() {
            continue;
        }
        let began = SystemTime::now();
        let watch = curl.clone().with(&["--header", accept]).get(&format!("{path}?{WATCH}"))?;
        ensure!(watch.code == 200, "watch: {}: {}", watch.code, watch.body);
        let lasted = began.elapsed()?;
        ensure!(lasted > Duration::from_secs(1), "the watch ended after {lasted:?}: {}", watch.body);
        ensure!(marks_its_state(&watch)?, "the watch has no bookmark after the initial events: {}", watch.body);
    }
    // A watch continues from the version of the list.
    let watch = curl.get(&format!("{path}?watch=1&resourceVersion={version}&timeoutSeconds=1"))?;
    ensure!(watch.code == 200 && !watch.body.contains(r#""type":"ERROR""#), "{}: {}", watch.code, watch.body);
    Ok(())
}

/// Whether there is a bookmark with a resource version after the initial events.
fn marks_its_state(watch: &Response) -> anyhow::Result<bool> {
    for line in watch.body.lines() {
        let event: Value = serde_json::from_str(line).with_context(|| line.to_owned())?;
        ensure!(event["type"] != "ERROR", "{event}");
        let object = &event["object"];
        // In a Table, the row contains the object.
        for metadata in [&object["metadata"], &object["rows"][0]["object"]["metadata"]] {
            let version = metadata["resourceVersion"].as_str().and_then(|version| version.parse::<u64>().ok());
            if metadata["annotations"]["k8s.io/initial-events-end"] == "true"
                && version.is_some_and(|version| version > 0)
            {
                return Ok(event["type"] == "BOOKMARK");
            }
        }
    }
    Ok(false)
}

/// Resources that affect the whole host are not visible and not writable.
pub(super) fn what_acts_on_the_host_is_not_shown(site: &VirtualSite) -> anyhow::Result<()> {
    let host = site.host().kubectl();
    let admin = site.administrator(BEIJING, Route::Proxy)?;
    let jane = site.user(BEIJING, "jane")?;
    let rule =
        json!({"operations": ["CREATE"], "apiGroups": ["example.com"], "apiVersions": ["v1"], "resources": ["none"]});
    let webhook = json!({
        "name": "reads.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": "Ignore",
        "clientConfig": {"url": "https://127.0.0.1:1/"}, "objectSelector": {"matchLabels": {"reads": "no-such"}},
        "rules": [rule],
    });
    let schema = json!({
        "matchingPrecedence": 9000, "priorityLevelConfiguration": {"name": "global-default"},
        "rules": [{
            "subjects": [{"kind": "ServiceAccount", "serviceAccount": {"namespace": "of-the-host", "name": "reads"}}],
            "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/reads"]}],
        }],
    });
    let policy = json!({"validations": [{"expression": "true"}], "matchConstraints": {"resourceRules": [rule]}});
    let objects = [
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "reads.of-the-host"}, "webhooks": [webhook]}),
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration", "metadata": {"name": "reads.of-the-host"}, "webhooks": [webhook]}),
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "reads.of-the-host"}, "spec": policy}),
        json!({"apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema", "metadata": {"name": "reads.of-the-host"}, "spec": schema}),
    ];
    for object in &objects {
        host.ok_with(&["create", "-f", "-"], &object.to_string())?;
    }
    let shown = not_shown(&admin, &jane, &objects);
    for object in &objects {
        host.ok_with(&["delete", "-f", "-"], &object.to_string())?;
    }
    shown
}

fn not_shown(admin: &Kubectl, jane: &Kubectl, objects: &[Value]) -> anyhow::Result<()> {
    for object in objects {
        let kind = object["kind"].as_str().unwrap_or_default().to_lowercase();
        for form in ["name", "wide", "json"] {
            let listed = admin.ok(&["get", &kind, "-o", form])?;
            ensure!(!listed.contains("of-the-host") && !listed.contains("atoll"), "{kind}: {listed}");
        }
        let missing = admin.fails(&["get", &kind, "reads.of-the-host"])?;
        ensure!(missing.contains("(NotFound)"), "{missing}");
        for verb in ["create", "replace", "delete"] {
            let refused = admin.run_with(&[verb, "-f", "-"], &object.to_string())?;
            ensure!(refused.code != 0 && refused.stderr.contains("orbidden"), "{verb} {kind}: {refused:?}");
        }
        ensure!(admin.ok(&["auth", "can-i", "list", &kind])?.trim() == "yes", "{kind} cannot be listed");
        ensure!(admin.fails(&["auth", "can-i", "create", &kind])?.contains("no"), "{kind} can be created");
        let refused = jane.fails(&["get", &kind])?;
        ensure!(refused.contains(r#"User "jane" cannot list resource"#), "{refused}");
    }
    // Objects that Kubernetes creates are the same in every cluster.
    for (kind, names) in [
        ("flowschemas", &["catch-all", "exempt", "system-leader-election"][..]),
        ("prioritylevelconfigurations", &["catch-all", "exempt", "workload-high"]),
        ("apiservices", &["v1.", "v1.apps", "v1.rbac.authorization.k8s.io"]),
    ] {
        for form in ["name", "wide"] {
            let listed = admin.ok(&["get", kind, "-o", form])?;
            ensure!(names.iter().all(|name| listed.contains(name)), "{kind}: {listed}");
            let got = admin.ok(&["get", kind, names[0], "-o", form])?;
            ensure!(got.contains(names[0]), "{kind}: {got}");
        }
        let refused = admin.fails(&["delete", kind, names[1]])?;
        ensure!(refused.contains("(Forbidden)") && refused.contains("the operator of the host cluster"), "{refused}");
    }
    Ok(())
}

/// Clusters see IPAddresses of their Services, and ResourceSlices of their nodes. Kubernetes 1.32 has neither kind.
pub(super) fn what_belongs_to_the_cluster_is_shown(site: &VirtualSite) -> anyhow::Result<()> {
    if everywhere_kubeedge() {
        return Ok(());
    }
    let host = site.host().kubectl();
    let own = site.administrator(BEIJING, Route::Proxy)?;
    let neighbour = site.administrator(HANGZHOU, Route::Proxy)?;
    let mut addresses = Vec::new();
    for cluster in [&own, &neighbour] {
        cluster.ok_with(&["create", "-f", "-"], &namespace("addressed"))?;
        cluster.ok(&["create", "service", "clusterip", "edge", "--tcp=80", "-n", "addressed"])?;
        addresses.push(cluster.ok(&[
            "get",
            "service",
            "edge",
            "-n",
            "addressed",
            "-o",
            "jsonpath={.spec.clusterIP}",
        ])?);
    }
    let [mine, foreign] = &addresses[..] else { bail!("{addresses:?}") };
    // The host creates one before the other.
    eventually(CONDITION_TIMEOUT, || host.ok(&["get", "ipaddress", mine, foreign]))?;
    for (form, parent) in [("name", ""), ("wide", "services/addressed/edge"), ("json", r#""namespace": "addressed""#)] {
        let listed = own.ok(&["get", "ipaddresses", "-o", form])?;
        ensure!(listed.contains(mine) && !listed.contains(foreign) && listed.contains(parent), "{listed}");
        ensure!(!listed.contains("ke-beijing"), "{listed}");
        let got = own.ok(&["get", "ipaddress", mine, "-o", form])?;
        ensure!(got.contains(mine) && got.contains(parent) && !got.contains("ke-beijing"), "{got}");
    }
    let service = own.ok(&["get", "service", "kubernetes", "-o", "jsonpath={.spec.clusterIP}"])?;
    let parent =
        own.ok(&["get", "ipaddress", &service, "-o", "jsonpath={.spec.parentRef.namespace}/{.spec.parentRef.name}"])?;
    ensure!(parent == "default/kubernetes", "{parent}");
    ensure!(
        own.ok(&["get", "ipaddresses"])?.contains("services/default/kubernetes"),
        "the table does not contain {service}"
    );
    let missing = own.fails(&["get", "ipaddress", foreign])?;
    ensure!(missing.contains("(NotFound)"), "{missing}");
    let refused = own.fails(&["delete", "ipaddress", mine])?;
    ensure!(refused.contains("(Forbidden)") && refused.contains("spec.clusterIPs"), "{refused}");

    for node in ["beijing-1", "hangzhou-1"] {
        let slice = json!({
            "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": format!("reads-{node}")},
            "spec": {
                "driver": "reads.example.com", "nodeName": node, "devices": [{"name": "a"}],
                "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            },
        });
        host.ok_with(&["create", "-f", "-"], &slice.to_string())?;
    }
    for form in ["name", "wide", "json"] {
        let listed = own.ok(&["get", "resourceslices", "-o", form])?;
        ensure!(listed.contains("reads-beijing-1") && !listed.contains("hangzhou"), "{listed}");
    }
    let missing = own.fails(&["get", "resourceslice", "reads-hangzhou-1"])?;
    ensure!(missing.contains("(NotFound)"), "{missing}");
    host.ok(&["delete", "resourceslices", "reads-beijing-1", "reads-hangzhou-1"])?;
    Ok(())
}

//! Cluster-scoped resources and lists of all namespaces: a virtual cluster responds like any cluster.

use std::io::{BufRead, BufReader};

use anyhow::{Context, ensure};
use atoll_tests::kubectl::end;
use atoll_tests::{Kubectl, Route, VirtualSite};
use serde_json::{Value, json};

use super::{BEIJING, HANGZHOU, namespace};

/// Access reviews.
fn questions() -> Vec<(&'static str, Value)> {
    let pods = json!({"verb": "list", "resource": "pods"});
    let masters = json!(["dev", "system:masters", "system:authenticated"]);
    vec![
        ("SelfSubjectAccessReview", json!({"resourceAttributes": pods})),
        ("SelfSubjectAccessReview", json!({"resourceAttributes": {"namespace": "", "verb": "*", "resource": "*"}})),
        (
            "SelfSubjectAccessReview",
            json!({"resourceAttributes": {
                "namespace": "kube-system", "verb": "get", "resource": "pods", "subresource": "log", "name": "a"
            }}),
        ),
        ("SelfSubjectAccessReview", json!({"resourceAttributes": {"namespace": "*", "verb": "x", "resource": "pods"}})),
        ("SelfSubjectAccessReview", json!({"nonResourceAttributes": {"path": "/healthz", "verb": "get"}})),
        ("SelfSubjectAccessReview", json!({"nonResourceAttributes": {"path": "/openid/v1/jwks", "verb": "get"}})),
        ("SubjectAccessReview", json!({"user": "nobody", "resourceAttributes": pods})),
        (
            "SubjectAccessReview",
            json!({"user": "a", "groups": masters, "extra": {"k": ["v"]}, "resourceAttributes": pods}),
        ),
        (
            "SubjectAccessReview",
            json!({"user": "system:serviceaccount:kube-system:x", "uid": "u", "resourceAttributes": {
                "namespace": "no-such", "verb": "get", "resource": "namespaces", "name": "default"
            }}),
        ),
        ("SubjectAccessReview", json!({"user": "a", "nonResourceAttributes": {"path": "/api", "verb": "get"}})),
        (
            "SubjectAccessReview",
            json!({"groups": ["system:authenticated"], "nonResourceAttributes": {"path": "/api", "verb": "get"}}),
        ),
        (
            "LocalSubjectAccessReview",
            json!({"groups": masters, "resourceAttributes": {"namespace": "default", "verb": "get", "resource": "pods"}}),
        ),
    ]
}

/// An API server ignores a query with more than 10,000 parameters, and so would ignore a selector that the agent adds.
pub(super) fn queries_without_end_are_refused(site: &VirtualSite) -> anyhow::Result<()> {
    let admin = site.administrator(BEIJING, Route::Proxy)?;
    let curl = site.curl_like(&admin, BEIJING, Route::Proxy)?;
    let nodes = |parameters: usize| curl.get(&format!("/api/v1/nodes?{}", "&".repeat(parameters - 1)));
    let of_all = nodes(1)?.json()?["items"].as_array().map(Vec::len);
    ensure!(nodes(5_000)?.json()?["items"].as_array().map(Vec::len) == of_all, "5,000 parameters are refused");
    nodes(10_001)?.refused(400, "BadRequest", "query parameters")?;
    Ok(())
}

/// The responses equal those of the host, including managed fields, except for the reasons of the authorizer.
pub(super) fn reviews_equal_those_of_the_host(site: &VirtualSite) -> anyhow::Result<()> {
    let cluster = site.administrator(BEIJING, Route::Proxy)?;
    let host = site.host().kubectl();
    for (kind, spec) in questions() {
        let response = |kubectl: &Kubectl| {
            let mut response = create_review(kubectl, "authorization.k8s.io", kind, &spec)?;
            if let Some(field) = response.pointer_mut("/metadata/managedFields/0/time") {
                field.take();
            }
            if let Some(status) = response["status"].as_object_mut() {
                status.remove("reason");
            }
            anyhow::Ok(response)
        };
        let (plain, own) = (response(&host)?, response(&cluster)?);
        ensure!(plain == own, "{kind} {spec}: the host responses\n{plain}\nand the virtual cluster\n{own}");
    }
    Ok(())
}

pub(super) fn reviews_match_authorization(site: &VirtualSite) -> anyhow::Result<()> {
    let admin = site.administrator(BEIJING, Route::Proxy)?;
    let jane = site.user(BEIJING, "jane")?;
    let neighbour = site.administrator(HANGZHOU, Route::Proxy)?;
    for cluster in [&admin, &neighbour] {
        cluster.ok_with(&["create", "-f", "-"], &namespace("reviewed"))?;
    }
    admin.ok(&["create", "rolebinding", "judged", "--clusterrole=view", "--user=judged", "-n", "reviewed"])?;
    let review = |kubectl: &Kubectl, user: &str, namespace: &str| {
        let attributes = json!({"verb": "list", "resource": "pods", "namespace": namespace});
        let spec = json!({"user": user, "groups": [user], "resourceAttributes": attributes});
        create_review(kubectl, "authorization.k8s.io", "SubjectAccessReview", &spec)
            .map(|mut response| response["status"].take())
    };
    let by = |binding: &str, role: &str, whom: &str| json!({"allowed": true, "reason": format!("RBAC: allowed by {binding} of ClusterRole \"{role}\" to {whom}")});
    for (kubectl, user, namespace, expected) in [
        (&admin, "judged", "reviewed", by("RoleBinding \"judged/reviewed\"", "view", "User \"judged\"")),
        (&admin, "judged", "default", json!({"allowed": false})),
        (&admin, "judged", "", json!({"allowed": false})),
        (&neighbour, "judged", "reviewed", json!({"allowed": false})),
        (&admin, "vc:ke-hangzhou:judged", "reviewed", json!({"allowed": false})),
    ] {
        let status = review(kubectl, user, namespace)?;
        ensure!(status == expected, "{user} in {namespace:?}: {status}");
    }
    let of_cluster = by("ClusterRoleBinding \"cluster-admin\"", "cluster-admin", "Group \"system:masters\"");
    for namespace in ["", "reviewed", "no-such", "atoll-root"] {
        let status = review(&admin, "system:masters", namespace)?;
        ensure!(status == of_cluster, "{namespace:?}: {status}");
    }
    // A user without the right to create reviews gets 403.
    let refused = jane.run_with(
        &["create", "--validate=false", "-f", "-"],
        &manifest(
            "authorization.k8s.io",
            "SubjectAccessReview",
            &json!({"user": "judged", "resourceAttributes": {"verb": "get"}}),
        ),
    )?;
    ensure!(refused.stderr.contains("cannot create resource \"subjectaccessreviews\""), "{refused:?}");
    // The rules contain no rights that no role grants.
    for (args, why) in [
        (["create", "nodes"], "nodes belong to the operator of the host cluster"),
        (["get", "/metrics"], "shows the whole host cluster"),
    ] {
        let refused = admin.fails(&["auth", "can-i", args[0], args[1]])?;
        ensure!(refused.contains("no - ") && refused.contains(why), "{args:?}: {refused}");
    }
    Ok(())
}

pub(super) fn tokens_are_valid_in_their_cluster(site: &VirtualSite) -> anyhow::Result<()> {
    let admin = site.administrator(BEIJING, Route::Proxy)?;
    let neighbour = site.administrator(HANGZHOU, Route::Proxy)?;
    let review = |kubectl: &Kubectl| {
        let token = kubectl.ok(&["create", "token", "default", "-n", "kube-public"])?;
        let response = create_review(&admin, "authentication.k8s.io", "TokenReview", &json!({"token": token}))?;
        ensure!(response["spec"]["token"] == token, "{response}");
        Ok(response["status"].clone())
    };
    let status = review(&admin)?;
    let user = &status["user"];
    ensure!(status["authenticated"] == true, "{status}");
    ensure!(user["username"] == "system:serviceaccount:kube-public:default", "{status}");
    let groups = json!(["system:serviceaccounts", "system:serviceaccounts:kube-public", "system:authenticated"]);
    ensure!(user["groups"] == groups && user["uid"].is_string() && user["extra"].is_object(), "{status}");
    for stranger in [&neighbour, &site.host().kubectl()] {
        let status = review(stranger)?;
        ensure!(status == json!({"user": {}, "error": "invalid bearer token"}), "{status}");
    }
    Ok(())
}

fn manifest(group: &str, kind: &str, spec: &Value) -> String {
    // kubectl checks the namespace of created objects. For other requests, the API server ignores it.
    let metadata = if kind.starts_with("Local") { json!({"namespace": "default"}) } else { json!({}) };
    json!({"apiVersion": format!("{group}/v1"), "kind": kind, "metadata": metadata, "spec": spec}).to_string()
}

fn create_review(kubectl: &Kubectl, group: &str, kind: &str, spec: &Value) -> anyhow::Result<Value> {
    let args = ["create", "-f", "-", "-o", "json", "--show-managed-fields"];
    Ok(serde_json::from_str(&kubectl.ok_with(&args, &manifest(group, kind, spec))?)?)
}

pub(super) fn storage_shows_own_volumes(site: &VirtualSite) -> anyhow::Result<()> {
    let host = site.host().kubectl();
    let own = site.administrator(BEIJING, Route::Proxy)?;
    let neighbour = site.administrator(HANGZHOU, Route::Proxy)?;
    for cluster in [&own, &neighbour] {
        cluster.ok_with(&["create", "-f", "-"], &namespace("stored"))?;
    }
    for (cluster, node) in [(BEIJING, "beijing-1"), (HANGZHOU, "hangzhou-1")] {
        let volume = format!("of-{cluster}");
        let claim = json!({"namespace": format!("stored-{cluster}"), "name": "data", "kind": "PersistentVolumeClaim", "apiVersion": "v1"});
        let spec = json!({
            "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "manual",
            "persistentVolumeReclaimPolicy": "Retain", "hostPath": {"path": "/none"}, "claimRef": claim,
        });
        let attachment =
            json!({"attacher": "example.com", "nodeName": node, "source": {"persistentVolumeName": volume}});
        for object in [
            json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": volume}, "spec": spec}),
            json!({"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": {"name": volume}, "spec": attachment}),
            json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": node}, "spec": {"drivers": []}}),
        ] {
            host.ok_with(&["create", "-f", "-"], &object.to_string())?;
        }
    }
    for (kind, name, foreign) in [
        ("persistentvolume", "of-ke-beijing", "of-ke-hangzhou"),
        ("volumeattachment", "of-ke-beijing", "of-ke-hangzhou"),
        ("csinode", "beijing-1", "hangzhou-1"),
    ] {
        for form in ["name", "wide", "json"] {
            let listed = own.ok(&["get", kind, "-o", form])?;
            ensure!(listed.contains(name) && !listed.contains(foreign) && !listed.contains("stored-ke"), "{listed}");
            let got = own.ok(&["get", kind, name, "-o", form])?;
            ensure!(got.contains(name) && !got.contains("stored-ke"), "{got}");
        }
        let missing = own.fails(&["get", kind, foreign])?;
        ensure!(missing.contains("(NotFound)"), "{missing}");
        let refused = own.fails(&["delete", kind, name])?;
        ensure!(refused.contains("(Forbidden)") && refused.contains("operator of the host cluster"), "{refused}");
    }
    let claim = own.ok(&["get", "persistentvolume", "of-ke-beijing", "-o", "jsonpath={.spec.claimRef.namespace}"])?;
    ensure!(claim == "stored", "{claim}");
    // The watch also contains later objects of the cluster.
    let mut watch = own.start(&["get", "persistentvolumes", "--watch", "-o", "name"])?;
    let mut lines = BufReader::new(watch.stdout.take().context("no stdout")?).lines();
    let mut seen = vec![lines.next().context("the watch ended")??];
    for name in ["of-ke-hangzhou", "of-ke-beijing"] {
        host.ok(&["label", "persistentvolume", name, "seen=1"])?;
    }
    seen.push(lines.next().context("the watch ended")??);
    end(watch)?;
    ensure!(seen == ["persistentvolume/of-ke-beijing"; 2], "{seen:?}");
    for (kind, names) in
        [("persistentvolume", ["of-ke-beijing", "of-ke-hangzhou"]), ("csinode", ["beijing-1", "hangzhou-1"])]
    {
        host.ok(&["delete", kind, names[0], names[1]])?;
    }
    host.ok(&["delete", "volumeattachment", "of-ke-beijing", "of-ke-hangzhou"])?;
    Ok(())
}

pub(super) fn nodes_have_their_leases_and_events(site: &VirtualSite) -> anyhow::Result<()> {
    let own = site.administrator(BEIJING, Route::Proxy)?;
    let jane = site.user(BEIJING, "jane")?;
    for args in [&["get", "leases", "-n", "kube-node-lease"][..], &["get", "leases", "-A"]] {
        for form in ["name", "wide", "json"] {
            let listed = own.ok(&[args, &["-o", form]].concat())?;
            ensure!(listed.contains("beijing-1") && !listed.contains("hangzhou"), "{args:?}: {listed}");
        }
    }
    let lease = own.ok(&["get", "lease", "beijing-1", "-n", "kube-node-lease", "-o", "json"])?;
    let lease: Value = serde_json::from_str(&lease)?;
    ensure!(lease["metadata"]["namespace"] == "kube-node-lease", "{lease}");
    for (args, why) in [
        (&["get", "lease", "hangzhou-1", "-n", "kube-node-lease"][..], "(NotFound)"),
        (&["delete", "lease", "beijing-1", "-n", "kube-node-lease"], "is read-only here"),
    ] {
        let refused = own.fails(args)?;
        ensure!(refused.contains(why), "{args:?}: {refused}");
    }
    let refused = jane.fails(&["get", "leases", "-n", "kube-node-lease"])?;
    ensure!(refused.contains(r#"User "jane" cannot list resource "leases""#), "{refused}");

    // Events of the namespace and events of nodes are in one list and in one watch.
    let event = |name: &str, kind: &str, object: &str, namespace: &str| {
        json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": name, "namespace": namespace}, "reason": "Tried",
            "involvedObject": {"kind": kind, "name": object, "uid": object, "namespace": if kind == "Node" { "" } else { namespace }}})
        .to_string()
    };
    let host = site.host().kubectl();
    own.ok_with(&["create", "-f", "-"], &event("of-its-own", "Pod", "a", "default"))?;
    let mut watch = own.start(&["get", "events", "--watch", "-o", "name", "--field-selector", "reason=Tried"])?;
    let mut lines = BufReader::new(watch.stdout.take().context("no stdout")?).lines();
    let mut seen = vec![lines.next().context("the watch ended")??];
    for node in ["hangzhou-1", "beijing-1"] {
        host.ok_with(&["create", "-f", "-"], &event(&format!("{node}.tried"), "Node", node, "default"))?;
    }
    seen.push(lines.next().context("the watch ended")??);
    end(watch)?;
    ensure!(seen == ["event/of-its-own", "event/beijing-1.tried"], "{seen:?}");
    for args in [&["get", "events"][..], &["get", "events", "-A"], &["get", "events.events.k8s.io", "-A"]] {
        let listed = own.ok(&[args, &["-o", "name"]].concat())?;
        ensure!(listed.contains("of-its-own") && listed.contains("beijing-1.tried"), "{args:?}: {listed}");
        ensure!(!listed.contains("hangzhou"), "{args:?}: {listed}");
    }
    let table = own.ok(&["get", "events", "--field-selector", "reason=Tried"])?;
    ensure!(table.contains("node/beijing-1") && table.contains("pod/a") && table.lines().count() == 3, "{table}");
    own.ok(&["get", "event", "beijing-1.tried"])?;
    let missing = own.fails(&["get", "event", "hangzhou-1.tried"])?;
    ensure!(missing.contains("(NotFound)"), "{missing}");
    ensure!(own.ok(&["describe", "node", "beijing-1"])?.contains("Tried"));
    Ok(())
}

pub(super) fn every_cluster_has_the_service_kubernetes(site: &VirtualSite) -> anyhow::Result<()> {
    let own = site.administrator(BEIJING, Route::Proxy)?;
    own.ok(&["create", "service", "clusterip", "beside", "--tcp=80"])?;
    let names = |args: &[&str]| {
        let listed = own.ok(&[&["get", "services", "-o", "name"], args].concat())?;
        anyhow::Ok(listed.lines().map(str::to_owned).collect::<Vec<_>>())
    };
    for args in [&[][..], &["--chunk-size=1"], &["-A"], &["-A", "--chunk-size=1"]] {
        let listed = names(args)?;
        for (name, times) in [("service/kubernetes", 1), ("service/beside", 1)] {
            ensure!(listed.iter().filter(|listed| *listed == name).count() == times, "{args:?}: {listed:?}");
        }
    }
    ensure!(names(&["-n", "default"])?.len() == 2);
    ensure!(names(&["-n", "kube-system"])?.is_empty());
    let service =
        own.ok(&["get", "service", "kubernetes", "-o", "jsonpath={.metadata.namespace} {.spec.ports[0].port}"])?;
    ensure!(service == "default 443", "{service}");
    for (args, why) in [
        (&["delete", "service", "kubernetes"][..], "is read-only here"),
        (&["create", "service", "clusterip", "kubernetes", "--tcp=80"], "already exists"),
        (&["label", "service", "kubernetes", "a=b"], "is read-only here"),
    ] {
        let refused = own.fails(args)?;
        ensure!(refused.contains(why), "{args:?}: {refused}");
    }
    own.ok(&["delete", "service", "beside"])?;
    Ok(())
}

/// `kubectl describe service kubernetes` shows the addresses of the API server.
pub(super) fn the_service_kubernetes_has_endpoints(site: &VirtualSite) -> anyhow::Result<()> {
    let own = site.administrator(BEIJING, Route::Proxy)?;
    let host = site.host().kubectl();
    for (resource, addresses) in [
        ("endpoints", "{.subsets[*].addresses[*].ip}"),
        ("endpointslices.discovery.k8s.io", "{.endpoints[*].addresses[*]}"),
    ] {
        let read = ["get", resource, "kubernetes", "-n", "default", "-o", &format!("jsonpath={addresses}")];
        let (shown, there) = (own.ok(&read)?, host.ok(&read)?);
        ensure!(!shown.is_empty() && shown == there, "{resource}: {shown} is shown of {there}");
        for args in [&["-n", "default"][..], &["-A"]] {
            let selected = ["get", resource, "-o", "name", "--field-selector", "metadata.name=kubernetes"];
            let listed = own.ok(&[&selected[..], args].concat())?;
            ensure!(listed.lines().count() == 1, "{resource} {args:?}: {listed}");
        }
        let refused = own.fails(&["delete", resource, "kubernetes", "-n", "default"])?;
        ensure!(refused.contains("is read-only here"), "{resource}: {refused}");
    }
    Ok(())
}

/// Only another cluster writes. The client still gets bookmarks, earlier than those of the host.
pub(super) fn quiet_watches_learn_the_version(site: &VirtualSite) -> anyhow::Result<()> {
    let own = site.administrator(BEIJING, Route::Proxy)?;
    let neighbour = site.administrator(HANGZHOU, Route::Proxy)?;
    let path = "/apis/policy/v1/poddisruptionbudgets";
    let list: Value = serde_json::from_str(&own.ok(&["get", "--raw", path])?)?;
    let begun = list["metadata"]["resourceVersion"].as_str().context("no resourceVersion")?;
    let created = neighbour.ok(&["create", "pdb", "quiet", "--selector=a=b", "--min-available=1", "-o", "json"])?;
    let created: Value = serde_json::from_str(&created)?;
    // An API server sends a bookmark two seconds before the end (`cacheWatcher.nextBookmarkTime`).
    let query = format!("{path}?watch=1&allowWatchBookmarks=true&timeoutSeconds=19&resourceVersion={begun}");
    let watched = own.ok(&["get", "--raw", &query])?;
    let first: Value = serde_json::from_str(watched.lines().next().context("the watch has no bookmark")?)?;
    let version = first["object"]["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    let object =
        json!({"kind": "PodDisruptionBudget", "apiVersion": "policy/v1", "metadata": {"resourceVersion": version}});
    ensure!(first == json!({"type": "BOOKMARK", "object": object}), "{watched}");
    let number = |version: &str| version.parse::<u64>().context("the version is not a number");
    let written = created["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    ensure!(number(version)? >= number(written)? && number(written)? > number(begun)?, "{begun} {written} {watched}");
    ensure!(!watched.contains("quiet"), "{watched}");
    Ok(())
}

pub(super) fn namespaces_get_names(site: &VirtualSite) -> anyhow::Result<()> {
    let cluster = site.administrator(BEIJING, Route::Proxy)?;
    let manifest = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "run-"}}).to_string();
    let create = || {
        cluster.ok_with(&["create", "-f", "-", "-o", "jsonpath={.metadata.generateName} {.metadata.name}"], &manifest)
    };
    let (first, second) = (create()?, create()?);
    ensure!(first != second, "{first} twice");
    let name = first.strip_prefix("run- ").context("no generateName")?;
    ensure!(name.starts_with("run-") && name.len() == "run-".len() + 5, "{name}");
    cluster.ok(&["get", "namespace", name])?;
    cluster.ok(&["create", "configmap", "a", "-n", name])?;
    let host = site.host().kubectl();
    host.ok(&["get", "configmap", "a", "-n", &format!("{name}-{BEIJING}")])?;
    cluster.ok(&["delete", "namespace", name])?;
    Ok(())
}

pub(super) fn rules_name_namespaces(site: &VirtualSite) -> anyhow::Result<()> {
    let admin = site.administrator(BEIJING, Route::Proxy)?;
    let jane = site.user(BEIJING, "namer")?;
    admin.ok_with(&["create", "-f", "-"], &namespace("named"))?;
    jane.fails(&["get", "namespace", "named"])?;
    let role = |name: &str, resources: &[&str]| {
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": name, "namespace": "named"},
            "rules": [{"apiGroups": [""], "resources": resources, "resourceNames": ["named"], "verbs": ["get"]}]})
        .to_string()
    };
    admin.ok_with(&["apply", "-f", "-"], &role("namer", &["namespaces"]))?;
    admin.ok(&["create", "rolebinding", "namer", "--role=namer", "--user=namer", "-n", "named"])?;
    jane.ok(&["get", "namespace", "named"])?;
    let can = jane.ok(&["auth", "can-i", "get", "namespaces/named", "-n", "named"])?;
    ensure!(can.trim() == "yes", "{can}");
    for (kubectl, args) in [
        (&admin, &["get", "role", "namer", "-n", "named", "-o", "yaml"][..]),
        (&jane, &["auth", "can-i", "--list", "-n", "named"]),
    ] {
        let shown = kubectl.ok(args)?;
        ensure!(shown.contains("named") && !shown.contains("named-ke"), "{args:?}: {shown}");
    }
    // The stored object equals the applied one.
    let again = admin.ok_with(&["apply", "-f", "-"], &role("namer", &["namespaces"]))?;
    ensure!(again.contains("unchanged"), "{again}");
    let refused = admin.run_with(&["create", "-f", "-"], &role("mixed", &["namespaces", "pods"]))?;
    ensure!(refused.stderr.contains("need a rule of their own"), "{refused:?}");
    Ok(())
}

//! Namespaces: mapped by name.

use serde_json::{Value, json};
use test_host::{Reply, expect};

use crate::tests::agent::ClientRequest;
use crate::tests::scripted::{CONFIG, Scripted};

const USER: &str = "vc:ke:admin";
const PATH: &str = "/api/v1/namespaces";

/// The Namespace `edge` on the host, with more labels.
fn edge(labels: &Value) -> Value {
    let mut all = json!({"atoll.dev/virtual-cluster": "ke", "atoll.dev/namespace": "edge",
        "kubernetes.io/metadata.name": "edge-ke"});
    all.as_object_mut().unwrap().extend(labels.as_object().unwrap().clone());
    json!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "edge-ke", "uid": "u", "resourceVersion": "3",
        "labels": all}, "status": {"phase": "Active"}})
}

/// The same as a client sees it.
fn shown(labels: &Value) -> Value {
    let mut all = json!({"kubernetes.io/metadata.name": "edge"});
    all.as_object_mut().unwrap().extend(labels.as_object().unwrap().clone());
    json!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "edge", "uid": "u", "resourceVersion": "3",
        "labels": all}, "status": {"phase": "Active"}})
}

impl Scripted {
    /// The agent looks for an unknown namespace, because another agent may have created it.
    fn has_no_namespace(&self, host: &str) {
        let missing = Reply::status(404, "NotFound", "not found");
        self.on(expect("GET", &format!("{PATH}/{host}")).as_agent(), missing);
    }
}

#[tokio::test]
async fn reads_and_writes_of_one_are_the_callers() {
    let agent = Scripted::new().await;
    let host = format!("{PATH}/edge-ke");
    let none = json!({});
    let response = agent
        .exchange(
            ClientRequest::get(&format!("{PATH}/edge")),
            expect("GET", &host).as_user(USER),
            Reply::json(200, &edge(&none)),
        )
        .await;
    assert_eq!(response.expect(200).json(), shown(&none));
    // An update keeps the labels that are not the client's to write.
    let (label, kept) = (json!({"team": "a"}), json!({"team": "a", "kyverno.io/a": "operators"}));
    agent.on(expect("GET", &host).as_agent(), Reply::json(200, &edge(&json!({"kyverno.io/a": "operators"}))));
    let put = expect("PUT", &host).as_user(USER).with("/metadata/labels", edge(&kept)["metadata"]["labels"].clone());
    agent.on(put.with("/metadata/name", "edge-ke"), Reply::json(200, &edge(&label)));
    let response = agent.send(ClientRequest::put(&format!("{PATH}/edge"), &shown(&label))).await.expect(200);
    assert_eq!(response.json(), shown(&label));
    let patch = expect("PATCH", &host).as_user(USER).with("", json!({"metadata": {"labels": label}}));
    let request = ClientRequest::merge(&format!("{PATH}/edge"), &json!({"metadata": {"labels": label}}));
    agent.exchange(request, patch, Reply::json(200, &edge(&label))).await.expect(200);
    let gone = expect("DELETE", &host).as_user(USER);
    agent
        .exchange(ClientRequest::delete(&format!("{PATH}/edge")), gone, Reply::json(200, &edge(&none)))
        .await
        .expect(200);
}

#[tokio::test]
async fn lists_are_selected_by_the_label_of_the_cluster() {
    let agent = Scripted::new().await;
    let list = json!({"kind": "NamespaceList", "apiVersion": "v1", "metadata": {}, "items": [edge(&json!({}))]});
    let selected = "labelSelector=atoll.dev/virtual-cluster=ke,kubernetes.io/metadata.name=edge-ke";
    let request = ClientRequest::get(&format!("{PATH}?labelSelector=kubernetes.io/metadata.name%3Dedge"));
    let host = expect("GET", &format!("{PATH}?{selected}")).as_agent();
    let response = agent.exchange(request, host, Reply::json(200, &list)).await.expect(200);
    assert_eq!(response.json()["items"], json!([shown(&json!({}))]));
}

/// Labels of ours, and other protected ones, are not a client's to write.
#[tokio::test]
async fn protected_labels_are_refused() {
    let agent = Scripted::new().await;
    for label in ["atoll.dev/virtual-cluster", "kyverno.io/a", "resource.kubernetes.io/admin-access"] {
        let new = json!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "new", "labels": {label: "x"}}});
        let (code, _, message) = agent.send(ClientRequest::post(PATH, &new)).await.refusal();
        assert!(matches!(code, 400 | 422), "{label}: {code} {message}");
    }
    assert!(!agent.transcript().iter().any(|line| line.starts_with("POST")), "the host gets nothing");
}

/// An apply that would create a Namespace: the dry run, the creation, then the apply of the client's manager.
#[tokio::test(start_paused = true)]
async fn an_apply_creates_a_namespace_in_three_steps() {
    let agent = Scripted::new().await;
    let apply = json!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "new", "labels": {"team": "a"}}});
    let stored = json!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "new-ke", "uid": "n",
        "resourceVersion": "5", "labels": {"atoll.dev/virtual-cluster": "ke", "atoll.dev/namespace": "new", "team": "a"}}});
    let target = format!("{PATH}/new-ke?fieldManager=m");
    agent.has_no_namespace("new-ke");
    let tried = expect("PATCH", &format!("{target}&dryRun=All")).as_agent().with("/metadata/labels/team", "a");
    agent.on(tried, Reply::json(201, &stored));
    let labels = json!({"atoll.dev/virtual-cluster": "ke", "atoll.dev/namespace": "new"});
    agent.on(expect("POST", PATH).as_agent().with("/metadata/labels", labels), Reply::json(201, &stored));
    agent.on(expect("PATCH", &target).as_agent().with("/metadata/labels/team", "a"), Reply::json(200, &stored));
    agent.always(|received| {
        let is_mirror = received.method == "POST" && received.path().ends_with("/new-ke/rolebindings");
        is_mirror.then(|| Reply::json(201, &received.json()))
    });
    let response = agent.send(ClientRequest::apply(&format!("{PATH}/new?fieldManager=m"), &apply)).await.expect(201);
    assert_eq!(response.json()["metadata"]["name"], "new");
    let transcript = agent.transcript();
    assert_eq!(transcript.iter().filter(|line| line.contains("create namespaces")).count(), 1, "{transcript:?}");
}

/// The host has a namespace of that name, which is not the cluster's.
#[tokio::test(start_paused = true)]
async fn an_apply_takes_over_no_namespace() {
    let agent = Scripted::new().await;
    let apply = json!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "new"}});
    agent.has_no_namespace("new-ke");
    let tried = expect("PATCH", &format!("{PATH}/new-ke?fieldManager=m&dryRun=All")).as_agent();
    let request = ClientRequest::apply(&format!("{PATH}/new?fieldManager=m"), &apply);
    let (code, reason, _) = agent.exchange(request, tried, Reply::json(200, &apply)).await.refusal();
    assert_eq!((code, &*reason), (409, "Conflict"));
}

/// The host refuses the apply after the creation, so the agent deletes the namespace.
#[tokio::test(start_paused = true)]
async fn a_failed_apply_leaves_nothing_behind() {
    let agent = Scripted::new().await;
    let apply = json!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "new"}});
    let stored = json!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "new-ke", "uid": "n"}});
    let target = format!("{PATH}/new-ke?fieldManager=m");
    agent.has_no_namespace("new-ke");
    agent.on(expect("PATCH", &format!("{target}&dryRun=All")), Reply::json(201, &stored));
    agent.on(expect("POST", PATH), Reply::json(201, &stored));
    agent.on(expect("PATCH", &target), Reply::status(422, "Invalid", "no"));
    let gone = expect("DELETE", &format!("{PATH}/new-ke")).as_agent().with("/preconditions/uid", "n");
    agent.on(gone, Reply::json(200, &stored));
    assert_eq!(agent.send(ClientRequest::apply(&format!("{PATH}/new?fieldManager=m"), &apply)).await.code, 422);
}

#[tokio::test]
async fn no_api_server_deletes_the_immortal_ones() {
    let agent = Scripted::new().await;
    for name in ["default", "kube-system", "kube-public"] {
        let (code, _, message) = agent.send(ClientRequest::delete(&format!("{PATH}/{name}"))).await.refusal();
        assert_eq!(
            (code, message),
            (403, format!("namespaces \"{name}\" is forbidden: this namespace may not be deleted"))
        );
    }
    let host = expect("DELETE", &format!("{PATH}/kube-node-lease-ke")).as_user(USER);
    let gone = json!({"metadata": {"name": "kube-node-lease-ke", "labels": {"atoll.dev/virtual-cluster": "ke", "atoll.dev/namespace": "kube-node-lease"}}});
    let request = ClientRequest::delete(&format!("{PATH}/kube-node-lease"));
    assert_eq!(
        agent.exchange(request, host, Reply::json(200, &gone)).await.expect(200).json()["metadata"]["name"],
        "kube-node-lease"
    );
}

/// The host enforces the stricter level. The client sees the level that it requested, and a warning.
#[tokio::test(start_paused = true)]
async fn the_configured_pod_security_is_enforced() {
    let config = CONFIG.replace("{location: beijing}}", "{location: beijing}, podSecurity: {enforce: baseline}}");
    let agent = Scripted::configured(&config).await;
    let enforce = "pod-security.kubernetes.io/enforce";
    let new = json!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "new", "labels": {enforce: "privileged"}}});
    agent.always(|received| {
        let is_creation = received.method == "POST" && received.path() == PATH;
        let is_mirror = received.method == "POST" && received.path().ends_with("/rolebindings");
        (is_creation || is_mirror).then(|| {
            let mut object = received.json();
            object["metadata"]["uid"] = "n".into();
            Reply::json(201, &object)
        })
    });
    let response = agent.send(ClientRequest::post(PATH, &new)).await.expect(201);
    let received = agent.take_received();
    let sent = received.iter().find(|received| received.path() == PATH && received.method == "POST").unwrap();
    assert_eq!(sent.json()["metadata"]["labels"][enforce], "baseline", "{}", sent.json());
    assert_eq!(response.json()["metadata"]["labels"][enforce], "privileged");
    assert!(response.warnings().iter().any(|warning| warning.contains("baseline")), "{:?}", response.warnings());
}

/// The index must know a new namespace before the client gets the response, in any form.
#[tokio::test]
async fn a_namespace_that_is_created_as_a_table_is_known_at_once() {
    const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";
    let agent = Scripted::new().await;
    let labels = json!({"atoll.dev/virtual-cluster": "ke", "atoll.dev/namespace": "new"});
    let object = json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
        "metadata": {"name": "new-ke", "uid": "n", "resourceVersion": "5", "labels": labels}});
    let table = json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {},
        "columnDefinitions": [{"name": "Name"}], "rows": [{"cells": ["new-ke"], "object": object}]});
    let new = json!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "new"}});
    agent.always(|received| {
        let is_mirror = received.method == "POST" && received.path().ends_with("/new-ke/rolebindings");
        is_mirror.then(|| Reply::json(201, &received.json()))
    });
    let created = expect("POST", PATH).with_header("accept", TABLE);
    let response = agent
        .exchange(ClientRequest::post(PATH, &new).header("accept", TABLE), created, Reply::json(201, &table))
        .await
        .expect(201);
    assert_eq!(response.json()["rows"][0]["object"]["metadata"]["name"], "new");
    assert!(agent.namespaces.member(&"new-ke".parse().unwrap()).is_some());
}

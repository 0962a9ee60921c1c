//! Objects in namespaces: the host gets the requests as the caller.

use serde_json::{Value, json};
use test_host::{Reply, expect};

use crate::tests::agent::ClientRequest;
use crate::tests::scripted::Scripted;

const MAPS: &str = "/api/v1/namespaces/edge/configmaps";
const HOST_MAPS: &str = "/api/v1/namespaces/edge-ke/configmaps";
const USER: &str = "vc:ke:admin";

/// A ConfigMap in a namespace, with a value.
fn map(namespace: &str, value: &str) -> Value {
    json!({
        "kind": "ConfigMap", "apiVersion": "v1",
        "metadata": {"name": "a", "namespace": namespace, "resourceVersion": "7"}, "data": {"key": value},
    })
}

fn maps(items: &[Value]) -> Value {
    json!({"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": "9"}, "items": items})
}

#[tokio::test]
async fn reads_go_to_the_host_namespace_as_the_caller() {
    let agent = Scripted::new().await;
    let groups = ["system:authenticated", "vc:ke:system:authenticated", "vc:ke:system:masters"];
    let host = expect("GET", &format!("{HOST_MAPS}/a")).as_user(USER).in_groups(&groups).bodiless();
    let host = host.with_header("user-agent", "kubectl/v1").without_header("x-atoll-user");
    let request = ClientRequest::get(&format!("{MAPS}/a")).header("x-remote-user", "root").header("cookie", "a=b");
    let host = host.without_header("x-remote-user").without_header("cookie").without_header("x-atoll-cluster");
    let response = agent.exchange(request, host, Reply::json(200, &map("edge-ke", "x"))).await.expect(200);
    assert_eq!(response.json(), map("edge", "x"));
    assert_eq!(agent.transcript(), [format!("GET {HOST_MAPS}/a as {USER}")], "a read needs no review");
}

/// However the host cuts its response.
#[tokio::test]
async fn lists_are_mapped_while_they_stream() {
    let agent = Scripted::new().await;
    let list = maps(&[map("edge-ke", "x"), map("edge-ke", "y")]);
    for length in [1, 7, 4096] {
        let host =
            expect("GET", &format!("{HOST_MAPS}?limit=2&fieldSelector=metadata.namespace=edge-ke")).as_user(USER);
        let request = ClientRequest::get(&format!("{MAPS}?limit=2&fieldSelector=metadata.namespace%3Dedge"));
        let response = agent.exchange(request, host, Reply::json(200, &list).in_chunks(length)).await.expect(200);
        assert_eq!(response.json(), maps(&[map("edge", "x"), map("edge", "y")]));
    }
}

/// A list that breaks must not look complete.
#[tokio::test]
async fn a_list_that_breaks_is_reset() {
    let agent = Scripted::new().await;
    agent.on(expect("GET", HOST_MAPS), Reply::json(200, &maps(&[map("edge-ke", "x")])).broken());
    let error = agent.agent.try_send(ClientRequest::get(MAPS)).await.unwrap_err();
    assert!(error.is_reset(), "{error}");
}

#[tokio::test(start_paused = true)]
async fn events_of_a_watch_are_mapped_one_by_one() {
    let agent = Scripted::new().await;
    let bookmark = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"resourceVersion": "8"}});
    let events = [("ADDED", map("edge-ke", "x")), ("DELETED", map("edge-ke", "y")), ("BOOKMARK", bookmark.clone())];
    let host = expect("GET", &format!("{HOST_MAPS}?watch=1&resourceVersion=7&allowWatchBookmarks=true"));
    agent.on(host.as_user(USER), Reply::watch(&events));
    let mut watch = agent
        .agent
        .open(ClientRequest::get(&format!("{MAPS}?watch=1&resourceVersion=7&allowWatchBookmarks=true")))
        .await;
    assert_eq!(watch.code, 200);
    for (kind, object) in [("ADDED", map("edge", "x")), ("DELETED", map("edge", "y")), ("BOOKMARK", bookmark)] {
        assert_eq!(watch.line().await, json!({"type": kind, "object": object}));
    }
}

#[tokio::test]
async fn writes_are_reviewed_and_mapped() {
    let agent = Scripted::new().await;
    let one = format!("{HOST_MAPS}/a");
    for (request, host, review) in [
        (ClientRequest::post(MAPS, &map("edge", "x")), expect("POST", HOST_MAPS), "create"),
        (ClientRequest::put(&format!("{MAPS}/a"), &map("edge", "x")), expect("PUT", &one), "update"),
    ] {
        let host = host.as_user(USER).with("", map("edge-ke", "x"));
        let response = agent.exchange(request, host, Reply::json(200, &map("edge-ke", "x"))).await.expect(200);
        assert_eq!(response.json(), map("edge", "x"));
        assert_eq!(agent.transcript()[0], format!("review {USER}: {review} configmaps in edge-ke"));
    }
}

#[tokio::test]
async fn patches_that_touch_nothing_hidden_stay_what_they_are() {
    let agent = Scripted::new().await;
    let values = json!({"metadata": {"namespace": "edge"}, "data": {"key": "y"}});
    let operations = json!([{"op": "replace", "path": "/data/key", "value": "y"}]);
    let apply = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a", "namespace": "edge"}});
    let (of, host) = (format!("{MAPS}/a?fieldManager=m"), format!("{HOST_MAPS}/a?fieldManager=m"));
    for (request, media_type, pointer, value) in [
        (ClientRequest::merge(&of, &values), "application/merge-patch+json", "/metadata/namespace", json!("edge-ke")),
        (ClientRequest::strategic(&of, &values), "application/strategic-merge-patch+json", "/data/key", json!("y")),
        (ClientRequest::operations(&of, &operations), "application/json-patch+json", "", operations.clone()),
        (ClientRequest::apply(&of, &apply), "application/apply-patch+yaml", "/metadata/namespace", json!("edge-ke")),
    ] {
        let expected =
            expect("PATCH", &host).as_user(USER).with_header("content-type", media_type).with(pointer, value);
        let response = agent.exchange(request, expected, Reply::json(200, &map("edge-ke", "y"))).await.expect(200);
        assert_eq!(response.json(), map("edge", "y"));
        assert_eq!(
            agent.transcript().len(),
            1 + usize::from(media_type.contains("merge-patch+json") && !media_type.contains("strategic"))
        );
    }
}

#[tokio::test]
async fn deletions_keep_their_options() {
    let agent = Scripted::new().await;
    let options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": "u"}});
    let host = expect("DELETE", &format!("{HOST_MAPS}/a")).as_user(USER).with("", options.clone());
    let gone = json!({"kind": "Status", "apiVersion": "v1", "status": "Success", "details": {"name": "a", "uid": "u"}});
    let request = ClientRequest::delete(&format!("{MAPS}/a")).json(&options);
    assert_eq!(agent.exchange(request, host, Reply::json(200, &gone)).await.expect(200).json(), gone);
    let host = expect("DELETE", &format!("{HOST_MAPS}?labelSelector=a=b")).as_user(USER);
    let request = ClientRequest::delete(&format!("{MAPS}?labelSelector=a%3Db"));
    let response = agent.exchange(request, host, Reply::json(200, &maps(&[map("edge-ke", "x")]))).await.expect(200);
    assert_eq!(response.json(), maps(&[map("edge", "x")]));
}

/// The selector is added to each pod template, and hidden.
#[tokio::test]
async fn pods_get_the_guard_and_do_not_show_it() {
    let agent = Scripted::new().await;
    let pod = |namespace: &str, selector: Value| {
        let mut pod = json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a", "namespace": namespace},
            "spec": {"containers": []}});
        if !selector.is_null() {
            pod["spec"]["nodeSelector"] = selector;
        }
        pod
    };
    for (requested, stored) in [
        (Value::Null, json!({"location": "beijing"})),
        (json!({"disk": "ssd"}), json!({"disk": "ssd", "location": "beijing"})),
    ] {
        let host =
            expect("POST", "/api/v1/namespaces/edge-ke/pods").as_user(USER).with("/spec/nodeSelector", stored.clone());
        let request = ClientRequest::post("/api/v1/namespaces/edge/pods", &pod("edge", requested.clone()));
        let response = agent.exchange(request, host, Reply::json(201, &pod("edge-ke", stored))).await.expect(201);
        assert_eq!(response.json(), pod("edge", requested));
    }
    // A merge patch that would remove the guard: the host resolves it in a dry run.
    let remove = json!({"spec": {"nodeSelector": null}});
    let path = "/api/v1/namespaces/edge-ke/pods/a";
    agent.on(
        expect("PATCH", &format!("{path}?dryRun=All")).as_user(USER),
        Reply::json(200, &pod("edge-ke", Value::Null)),
    );
    let put = expect("PUT", path).as_user(USER).with("/spec/nodeSelector", json!({"location": "beijing"}));
    agent.on(put, Reply::json(200, &pod("edge-ke", json!({"location": "beijing"}))));
    let response = agent.send(ClientRequest::merge("/api/v1/namespaces/edge/pods/a", &remove)).await.expect(200);
    assert_eq!(response.json(), pod("edge", Value::Null));
}

/// Only the host knows which nodes there are now.
#[tokio::test]
async fn a_pod_is_bound_to_own_nodes_only() {
    let agent = Scripted::new().await;
    for (node, items, code) in [("beijing-1", json!([{}]), 201), ("hangzhou-1", json!([]), 422)] {
        let target = format!("/api/v1/nodes?limit=1&fieldSelector=metadata.name={node}&labelSelector=location=beijing");
        agent.on(expect("GET", &target).as_agent(), Reply::json(200, &json!({"items": items})));
        let binding = json!({"kind": "Binding", "apiVersion": "v1", "metadata": {"name": "a"},
            "target": {"kind": "Node", "name": node}});
        if code == 201 {
            let host =
                expect("POST", "/api/v1/namespaces/edge-ke/pods/a/binding").as_user(USER).with("/target/name", node);
            agent.on(host, Reply::json(201, &json!({"kind": "Status", "apiVersion": "v1", "status": "Success"})));
        }
        agent.send(ClientRequest::post("/api/v1/namespaces/edge/pods/a/binding", &binding)).await.expect(code);
    }
}

#[tokio::test]
async fn logs_and_the_servers_of_pods_are_not_mapped() {
    let agent = Scripted::new().await;
    let log = Reply::empty(200).with_header("content-type", "text/plain").with_body("edge-ke says\n");
    let host = expect("GET", "/api/v1/namespaces/edge-ke/pods/a/log?follow=1").as_user(USER);
    let response =
        agent.exchange(ClientRequest::get("/api/v1/namespaces/edge/pods/a/log?follow=1"), host, log.clone()).await;
    assert_eq!(&response.body[..], b"edge-ke says\n");
    let host =
        expect("GET", "/api/v1/namespaces/edge-ke/pods/a/proxy/x?q=1").as_user(USER).with_header("cookie", "a=b");
    let request = ClientRequest::get("/api/v1/namespaces/edge/pods/a/proxy/x?q=1").header("cookie", "a=b");
    agent.transcript();
    assert_eq!(&agent.exchange(request, host, log).await.body[..], b"edge-ke says\n");
    // The refusal of the host would be that of the pod, so the right is reviewed first.
    assert_eq!(agent.transcript()[0], format!("review {USER}: get pods/proxy a in edge-ke"));
}

#[tokio::test]
async fn refusals_of_the_host_are_in_virtual_names() {
    let agent = Scripted::new().await;
    let host = expect("GET", &format!("{HOST_MAPS}/a"));
    let message = "configmaps \"a\" is forbidden: User \"vc:ke:admin\" cannot get resource \"configmaps\" in API group \
                   \"\" in the namespace \"edge-ke\"";
    let reply = Reply::status(403, "Forbidden", message).with_header("warning", "299 - \"edge-ke is old\"");
    let response = agent.exchange(ClientRequest::get(&format!("{MAPS}/a")), host, reply).await;
    let (code, _, message) = response.refusal();
    assert_eq!(code, 403);
    assert!(message.contains("User \"admin\"") && message.ends_with("in the namespace \"edge\""), "{message}");
    assert_eq!(response.warnings(), ["299 - \"edge is old\""]);
}

/// kube-apiserver has no HEAD for its own resources.
#[tokio::test]
async fn head_has_no_body_and_the_length_of_get() {
    let agent = Scripted::new().await;
    let host = expect("HEAD", &format!("{HOST_MAPS}/a")).as_user(USER);
    let response =
        agent.exchange(ClientRequest::new("HEAD", &format!("{MAPS}/a")), host, Reply::empty(405)).await.expect(405);
    assert_eq!(response.body.len(), 0);
    let (gizmo, host) =
        ("/apis/example.com/v1/namespaces/edge/gizmos/a", "/apis/example.com/v1/namespaces/edge-ke/gizmos/a");
    agent.on(expect("HEAD", host).as_user(USER), Reply::empty(200));
    agent.on(expect("GET", host).as_user(USER), Reply::json(200, &map("edge-ke", "x")));
    let response = agent.send(ClientRequest::new("HEAD", gizmo)).await.expect(200);
    assert_eq!(response.body.len(), 0);
}

/// Another agent may have just created the namespace.
#[tokio::test]
async fn an_unknown_namespace_is_looked_up_once_and_may_exist() {
    let agent = Scripted::new().await;
    let new = json!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "new-ke", "uid": "n",
        "resourceVersion": "5", "labels": {"atoll.dev/virtual-cluster": "ke", "atoll.dev/namespace": "new"}},
        "status": {"phase": "Active"}});
    let missing = Reply::status(404, "NotFound", "namespaces \"new-ke\" not found");
    let post = ClientRequest::post("/api/v1/namespaces/new/configmaps", &map("new", "x"));
    let (code, _, message) =
        agent.exchange(post.clone(), expect("GET", "/api/v1/namespaces/new-ke").as_agent(), missing).await.refusal();
    assert_eq!((code, &*message), (404, "namespaces \"new\" not found"));
    agent.on(expect("GET", "/api/v1/namespaces/new-ke").as_agent(), Reply::json(200, &new));
    let host =
        expect("POST", "/api/v1/namespaces/new-ke/configmaps").as_user(USER).with("/metadata/namespace", "new-ke");
    agent.on(host, Reply::json(201, &map("new-ke", "x")));
    assert_eq!(agent.send(post).await.expect(201).json(), map("new", "x"));
}

/// The host has a namespace `operators-ke`, which is not the cluster's. Its name must not go upstream.
#[tokio::test]
async fn a_namespace_of_another_owner_is_an_empty_one() {
    let agent = Scripted::new().await;
    let host = expect("GET", "/api/v1/namespaces/taken.by.somebody.else/configmaps").as_agent();
    let request = ClientRequest::get("/api/v1/namespaces/operators/configmaps");
    assert_eq!(agent.exchange(request, host, Reply::json(200, &maps(&[]))).await.expect(200).json(), maps(&[]));
    assert_eq!(agent.send(ClientRequest::get("/api/v1/namespaces/operators/configmaps/a")).await.refusal().0, 404);
    // Nothing can be deleted there, so the client gets an empty list.
    let host = expect("GET", "/api/v1/namespaces/taken.by.somebody.else/configmaps").as_agent();
    let request = ClientRequest::delete("/api/v1/namespaces/operators/configmaps");
    assert_eq!(agent.exchange(request, host, Reply::json(200, &maps(&[]))).await.expect(200).json(), maps(&[]));
}

/// The response for the whole host is filtered, and not one byte of other owners remains.
#[tokio::test]
async fn a_list_of_all_namespaces_has_only_those_of_the_cluster() {
    let agent = Scripted::new().await;
    let list = maps(&[map("edge-hz", "s1"), map("edge-ke", "x"), map("kube-system", "s2"), map("default-ke", "y")]);
    let response = agent
        .exchange(
            ClientRequest::get("/api/v1/configmaps"),
            expect("GET", "/api/v1/configmaps").as_agent(),
            Reply::json(200, &list),
        )
        .await;
    assert_eq!(response.expect(200).json(), maps(&[map("edge", "x"), map("default", "y")]));
    assert_eq!(agent.transcript()[0], format!("review {USER}: list configmaps in atoll-root-ke"));
}

#[tokio::test]
async fn role_bindings_hide_the_mirrors() {
    let agent = Scripted::new().await;
    let path = |namespace: &str| format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings");
    let list =
        json!({"kind": "RoleBindingList", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {}, "items": []});
    for method in ["GET", "DELETE"] {
        let host = expect(method, &format!("{}?labelSelector=a=b,!atoll.dev/mirror", path("edge-ke"))).as_user(USER);
        let request = ClientRequest::new(method, &format!("{}?labelSelector=a%3Db", path("edge")));
        agent.exchange(request, host, Reply::json(200, &list)).await.expect(200);
    }
    let binding = json!({"kind": "RoleBinding", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "b"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "mine"},
        "subjects": [{"kind": "User", "name": "jane", "apiGroup": "rbac.authorization.k8s.io"},
            {"kind": "ServiceAccount", "name": "sa", "namespace": "default"}]});
    let host = expect("POST", &path("edge-ke")).as_user(USER).with("/roleRef/name", "vc:ke:mine");
    let host = host.with("/subjects/0/name", "vc:ke:jane").with("/subjects/1/namespace", "default-ke");
    agent.exchange(ClientRequest::post(&path("edge"), &binding), host, Reply::json(201, &binding)).await.expect(201);
}

//! Objects of two clusters on one host: each sees its own, under the names that it gave them.

use kube_wire::gvr::GroupResource;
use serde_json::{Value, json};

use crate::tests::agent::ClientRequest;
use crate::tests::dev::{Dev, names};

#[tokio::test(start_paused = true)]
async fn each_cluster_has_its_own_nodes_and_namespaces() {
    let dev = Dev::new().await;
    for (cluster, nodes) in [("ke", ["beijing-1", "beijing-2"]), ("hz", ["hangzhou-1", "hangzhou-2"])] {
        assert_eq!(names(&dev.send(ClientRequest::get("/api/v1/nodes").of(cluster)).await.expect(200)), nodes);
        let namespaces = names(&dev.send(ClientRequest::get("/api/v1/namespaces").of(cluster)).await.expect(200));
        assert_eq!(namespaces, ["default", "kube-node-lease", "kube-public", "kube-system"]);
    }
}

/// A new namespace can be used at once.
#[tokio::test(start_paused = true)]
async fn a_namespace_lives_and_ends() {
    let dev = Dev::new().await;
    let path = "/api/v1/namespaces/edge";
    let edge = json!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "edge", "labels": {"team": "a"}}});
    let created = dev.send(ClientRequest::post("/api/v1/namespaces", &edge)).await.expect(201).json();
    assert_eq!(created["metadata"]["labels"], json!({"team": "a", "kubernetes.io/metadata.name": "edge"}));
    let map = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}});
    dev.send(ClientRequest::post(&format!("{path}/configmaps"), &map)).await.expect(201);
    assert_eq!(dev.send(ClientRequest::post("/api/v1/namespaces", &edge)).await.refusal().1, "AlreadyExists");
    let stored = dev.on_host("/api/v1/namespaces/edge-ke").await.unwrap();
    assert_eq!(stored["metadata"]["labels"]["atoll.dev/virtual-cluster"], "ke");
    dev.send(ClientRequest::get(path).of("hz")).await.expect(404);
    // An apply of another one creates it.
    let new = json!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "new", "labels": {"team": "b"}}});
    let applied =
        dev.send(ClientRequest::apply("/api/v1/namespaces/new?fieldManager=m", &new)).await.expect(201).json();
    assert_eq!(applied["metadata"]["labels"]["team"], "b");
    dev.send(ClientRequest::apply("/api/v1/namespaces/new?fieldManager=m", &new)).await.expect(200);

    let mut watch =
        dev.agent.open(ClientRequest::get("/api/v1/namespaces?watch=1&fieldSelector=metadata.name%3Dedge")).await;
    dev.send(ClientRequest::delete(path)).await.expect(200);
    let mut last = Value::Null;
    while last["type"] != "DELETED" {
        last = watch.line().await;
        assert_eq!(last["object"]["metadata"]["name"], "edge");
    }
    dev.send(ClientRequest::get(path)).await.expect(404);
    assert_eq!(dev.on_host("/api/v1/namespaces/edge-ke").await, None);
}

/// The limit holds for all namespaces of the cluster, and for no other cluster.
#[tokio::test(start_paused = true)]
async fn the_number_of_objects_is_limited() {
    let dev = Dev::limited("{objectsOf: {secrets: 2}}").await;
    let secret = json!({"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "a"}});
    let create = |namespace: &str| ClientRequest::post(&format!("/api/v1/namespaces/{namespace}/secrets"), &secret);
    for namespace in ["default", "kube-public"] {
        dev.send(create(namespace)).await.expect(201);
    }
    let secrets = GroupResource { group: "", resource: "secrets" };
    let ke = "ke".parse().unwrap();
    dev.until(|| dev.usage.room(&ke, secrets, 0).is_err()).await;
    let refused = dev.send(create("kube-system")).await.expect(403).json();
    let message = "secrets is forbidden: exceeded quota: atoll, requested: count/secrets=1, used: count/secrets=2, \
                   limited: count/secrets=2";
    assert_eq!((&refused["message"], &refused["reason"]), (&json!(message), &json!("Forbidden")));
    let map = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}});
    dev.send(ClientRequest::post("/api/v1/namespaces/default/configmaps", &map)).await.expect(201);
    dev.send(create("default").of("hz")).await.expect(201);

    dev.send(ClientRequest::delete("/api/v1/namespaces/default/secrets/a")).await.expect(200);
    dev.until(|| dev.usage.room(&ke, secrets, 0).is_ok()).await;
    dev.send(create("kube-system")).await.expect(201);
}

/// Each verb, for kinds with and without a pod template.
#[tokio::test(start_paused = true)]
async fn objects_live_under_their_names() {
    let dev = Dev::new().await;
    let template = json!({"selector": {"matchLabels": {"app": "a"}},
        "template": {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}});
    for (group, resource, kind, spec, guard) in [
        ("/api/v1", "configmaps", "ConfigMap", Value::Null, None),
        ("/api/v1", "secrets", "Secret", Value::Null, None),
        ("/apis/apps/v1", "deployments", "Deployment", template.clone(), Some("/spec/template/spec/nodeSelector")),
    ] {
        let api_version = group.trim_start_matches("/apis/").trim_start_matches("/api/");
        let all = format!("{group}/namespaces/default/{resource}");
        let one = format!("{all}/a");
        let mut object =
            json!({"kind": kind, "apiVersion": api_version, "metadata": {"name": "a", "labels": {"x": "1"}}});
        if !spec.is_null() {
            object["spec"] = spec;
        }
        let created = dev.send(ClientRequest::post(&all, &object)).await.expect(201).json();
        assert_eq!(created["metadata"]["namespace"], "default");
        let host = format!("{group}/namespaces/default-ke/{resource}/a");
        let stored = dev.on_host(&host).await.unwrap();
        assert_eq!(stored["metadata"]["uid"], created["metadata"]["uid"]);
        if let Some(guard) = guard {
            assert_eq!(stored.pointer(guard), Some(&json!({"location": "beijing"})));
            assert_eq!(created.pointer(guard), None, "{created}");
        }
        // Another cluster's object of the same name is another one.
        dev.send(ClientRequest::get(&one).of("hz")).await.expect(404);
        dev.send(ClientRequest::post(&all, &object).of("hz")).await.expect(201);

        let mut changed = dev.send(ClientRequest::get(&one)).await.expect(200).json();
        changed["metadata"]["labels"]["x"] = "2".into();
        dev.send(ClientRequest::put(&one, &changed)).await.expect(200);
        assert_eq!(
            dev.send(ClientRequest::put(&one, &changed)).await.refusal().1,
            "Conflict",
            "the version is an old one"
        );
        let label = |value: &str| json!({"metadata": {"labels": {"x": value}}});
        dev.send(ClientRequest::merge(&one, &label("3"))).await.expect(200);
        dev.send(ClientRequest::strategic(&one, &label("4"))).await.expect(200);
        let operations = json!([{"op": "test", "path": "/metadata/labels/x", "value": "4"},
            {"op": "replace", "path": "/metadata/labels/x", "value": "5"}]);
        dev.send(ClientRequest::operations(&one, &operations)).await.expect(200);
        let mut applied = json!({"kind": kind, "apiVersion": api_version, "metadata": {"name": "a"}});
        applied["metadata"]["labels"] = json!({"y": "1"});
        let shown = dev.send(ClientRequest::apply(&format!("{one}?fieldManager=m"), &applied)).await.expect(200).json();
        assert_eq!(shown["metadata"]["labels"], json!({"x": "5", "y": "1"}));
        let stored = dev.on_host(&host).await.unwrap();
        if let Some(guard) = guard {
            assert_eq!(stored.pointer(guard), Some(&json!({"location": "beijing"})), "no patch removes the guard");
        }
        assert_eq!(dev.send(ClientRequest::new("HEAD", &one)).await.code, 405);

        assert_eq!(
            names(&dev.send(ClientRequest::get(&format!("{all}?labelSelector=x%3D5"))).await.expect(200)),
            ["a"]
        );
        let everywhere =
            dev.send(ClientRequest::get(&format!("{group}/{resource}?labelSelector=x"))).await.expect(200).json();
        let items = everywhere["items"].as_array().unwrap();
        assert_eq!((items.len(), &items[0]["metadata"]["namespace"]), (1, &"default".into()));
        dev.send(ClientRequest::delete(&one)).await.expect(200);
        dev.send(ClientRequest::get(&one)).await.expect(404);
        dev.send(ClientRequest::post(&all, &object)).await.expect(201);
        dev.send(ClientRequest::delete(&format!("{all}?labelSelector=x%3D1"))).await.expect(200);
        dev.send(ClientRequest::get(&one)).await.expect(404);
        dev.send(ClientRequest::get(&one).of("hz")).await.expect(200);
    }
}

/// The host's scheduler obeys the guard, and the nodes are those of the cluster.
#[tokio::test(start_paused = true)]
async fn pods_run_on_the_nodes_of_their_cluster() {
    let dev = Dev::new().await;
    for (cluster, location) in [("ke", "beijing"), ("hz", "hangzhou")] {
        let pods = "/api/v1/namespaces/default/pods";
        let mut watch = dev.agent.open(ClientRequest::get(&format!("{pods}?watch=1")).of(cluster)).await;
        let pod = json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a"},
            "spec": {"containers": [{"name": "c", "image": "i"}]}});
        dev.send(ClientRequest::post(pods, &pod).of(cluster)).await.expect(201);
        let mut shown = Value::Null;
        while shown["status"]["phase"] != "Running" {
            shown = watch.line().await["object"].take();
        }
        assert!(shown["spec"]["nodeName"].as_str().unwrap().starts_with(location), "{shown}");
        assert_eq!(shown["spec"].get("nodeSelector"), None);
    }
    let foreign = json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "b"},
        "spec": {"nodeName": "hangzhou-1", "containers": [{"name": "c", "image": "i"}]}});
    dev.send(ClientRequest::post("/api/v1/namespaces/default/pods", &foreign)).await.expect(422);
}

/// Lists in pages: the token is the client's alone.
#[tokio::test(start_paused = true)]
async fn a_list_in_pages_is_complete() {
    let dev = Dev::new().await;
    let maps = "/api/v1/namespaces/default/configmaps";
    for number in 0..5 {
        let map = json!({"kind": "ConfigMap", "apiVersion": "v1",
            "metadata": {"name": format!("m{number}"), "labels": {"x": "1"}}});
        dev.send(ClientRequest::post(maps, &map)).await.expect(201);
        dev.send(ClientRequest::post(maps, &map).of("hz")).await.expect(201);
    }
    for path in [maps, "/api/v1/configmaps"] {
        let (mut found, mut token) = (Vec::new(), String::new());
        loop {
            let page = dev
                .send(ClientRequest::get(&format!("{path}?labelSelector=x&limit=2&continue={token}")))
                .await
                .expect(200);
            found.extend(names(&page));
            token = page.json()["metadata"]["continue"].as_str().unwrap_or_default().to_owned();
            if token.is_empty() {
                break;
            }
        }
        assert_eq!(found, ["m0", "m1", "m2", "m3", "m4"], "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn tables_have_virtual_names() {
    let dev = Dev::new().await;
    let table = |path: &str| {
        ClientRequest::get(path).header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json")
    };
    let namespaces = dev.send(table("/api/v1/namespaces")).await.expect(200).json();
    let rows = namespaces["rows"].as_array().unwrap();
    let cells: Vec<_> = rows.iter().map(|row| row["cells"][0].clone()).collect();
    assert_eq!(cells, ["default", "kube-node-lease", "kube-public", "kube-system"]);
    let nodes = dev.send(table("/api/v1/nodes?includeObject=None").of("hz")).await.expect(200).json();
    assert_eq!(nodes["rows"].as_array().unwrap().len(), 2);
    assert!(nodes["rows"][0].get("object").is_none_or(Value::is_null), "{nodes}");
}

/// The Leases and the Events of own nodes, and the Service of the API server.
#[tokio::test(start_paused = true)]
async fn objects_of_the_host_are_projected() {
    let dev = Dev::new().await;
    let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
    assert_eq!(names(&dev.send(ClientRequest::get(leases)).await.expect(200)), ["beijing-1", "beijing-2"]);
    dev.send(ClientRequest::get(&format!("{leases}/hangzhou-1"))).await.expect(404);
    let events = dev.send(ClientRequest::get("/api/v1/namespaces/default/events").of("hz")).await.expect(200).json();
    let about: Vec<_> =
        events["items"].as_array().unwrap().iter().map(|event| &event["involvedObject"]["name"]).collect();
    assert!(about.iter().all(|name| name.as_str().unwrap().starts_with("hangzhou")) && about.len() == 2, "{about:?}");
    let services = dev.send(ClientRequest::get("/api/v1/namespaces/default/services")).await.expect(200);
    assert_eq!(names(&services), ["kubernetes"]);
    dev.send(ClientRequest::delete("/api/v1/namespaces/default/services/kubernetes")).await.expect(403);
    assert!(dev.on_host("/api/v1/namespaces/default/services/kubernetes").await.is_some());
}

//! Shared objects, of which the host has one for all clusters. `dev` has their life with a real store; here are the
//! requests.

use serde_json::{Value, json};
use test_host::{Reply, expect};

use crate::tests::agent::ClientRequest;
use crate::tests::scripted::Scripted;

const CLASSES: &str = "/apis/scheduling.k8s.io/v1/priorityclasses";

fn class(value: i64) -> Value {
    json!({"kind": "PriorityClass", "apiVersion": "scheduling.k8s.io/v1", "metadata": {"name": "a"}, "value": value})
}

fn stored(version: &str, value: i64) -> Value {
    let mut class = class(value);
    class["metadata"]["uid"] = "u".into();
    class["metadata"]["resourceVersion"] = version.into();
    class
}

fn missing() -> Reply {
    Reply::status(404, "NotFound", "priorityclasses.scheduling.k8s.io \"a\" not found")
}

#[tokio::test]
async fn an_object_of_the_operator_is_read_unchanged() {
    let agent = Scripted::new().await;
    let host = expect("GET", &format!("{CLASSES}/a")).as_agent();
    let response =
        agent.exchange(ClientRequest::get(&format!("{CLASSES}/a")), host, Reply::json(200, &stored("1", 1))).await;
    assert_eq!(response.expect(200).json(), stored("1", 1));
    let (code, _, message) = agent
        .exchange(
            ClientRequest::delete(&format!("{CLASSES}/a")),
            expect("GET", &format!("{CLASSES}/a")),
            Reply::json(200, &stored("1", 1)),
        )
        .await
        .refusal();
    assert_eq!(code, 403);
    assert!(message.contains("the operator of the host cluster created it"), "{message}");
}

/// A dry run first, then exactly that. A race with another cluster is solved.
#[tokio::test(start_paused = true)]
async fn a_creation_is_tried_and_repeated_after_a_race() {
    let agent = Scripted::new().await;
    let dry = || expect("POST", &format!("{CLASSES}?fieldManager=atoll:ke:kubectl&dryRun=All")).as_agent();
    let real = || expect("POST", &format!("{CLASSES}?fieldManager=atoll:ke:kubectl")).as_agent().with("/value", 1);
    let exists = Reply::status(409, "AlreadyExists", "priorityclasses.scheduling.k8s.io \"a\" already exists");
    agent.on(expect("GET", &format!("{CLASSES}/a")), missing());
    agent.on(dry(), Reply::json(201, &stored("", 1)));
    agent.on(real(), exists);
    agent.on(expect("GET", &format!("{CLASSES}/a")), missing());
    agent.on(dry(), Reply::json(201, &stored("", 1)));
    agent.on(real(), Reply::json(201, &stored("1", 1)));
    agent.send(ClientRequest::post(CLASSES, &class(1))).await.expect(201);
}

#[tokio::test]
async fn kinds_that_are_not_writable_are_not_written() {
    let agent = Scripted::new().await;
    let class = json!({"kind": "StorageClass", "apiVersion": "storage.k8s.io/v1", "metadata": {"name": "a"}});
    agent.always(test_host::standing::discovery(&[test_host::standing::Resource {
        group: "storage.k8s.io",
        version: "v1",
        resource: "storageclasses",
        kind: "StorageClass",
        is_namespaced: false,
        is_custom: false,
    }]));
    let (code, _, message) =
        agent.send(ClientRequest::post("/apis/storage.k8s.io/v1/storageclasses", &class)).await.refusal();
    assert_eq!(code, 403);
    assert!(message.contains("shared by all virtual clusters"), "{message}");
}

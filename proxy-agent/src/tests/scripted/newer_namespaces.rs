//! Lists that are newer than what the agent knows: another agent has just created a namespace, and an object in it.

use std::time::Duration;

use kube_wire::envelope::Envelope;
use kube_wire::proto::Writer;
use serde_json::{Value, json};
use test_host::{Reply, expect};
use tokio::time::sleep;

use crate::tests::agent::ClientRequest;
use crate::tests::scripted::{Scripted, known};

const PODS: &str = "/api/v1/pods";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// The time after which the host responds, or the agent learns of the namespace.
const LATER: Duration = Duration::from_millis(100);

fn pods(namespaces: &[&str]) -> Value {
    let pod = |namespace: &&str| json!({"metadata": {"name": "a", "namespace": namespace}});
    let items: Vec<_> = namespaces.iter().map(pod).collect();
    json!({"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}, "items": items})
}

/// The same in protobuf.
fn encoded(namespaces: &[&str]) -> Vec<u8> {
    let message = |number: u32, inside: &[u8]| {
        let mut message = Writer::new();
        message.bytes(number, inside);
        message.into_bytes()
    };
    // `metadata` and `items` of the list, `metadata` of a pod, and `name` and `namespace` in it.
    let pod = |namespace: &&str| [message(1, b"a"), message(3, namespace.as_bytes())].concat();
    let items = namespaces.iter().map(|namespace| message(2, &message(1, &pod(namespace))));
    let raw = [message(1, &message(2, b"7")), items.collect::<Vec<_>>().concat()].concat();
    Envelope { api_version: "v1", kind: "PodList", raw: &raw, ..Envelope::default() }.encode()
}

/// A namespace that is newer than all that the agent knows.
fn created(name: &str) -> Value {
    let mut namespace = known::own("ke", name);
    namespace["metadata"]["resourceVersion"] = "7".into();
    namespace
}

/// A host on which the virtual cluster has these namespaces, whatever the agent knows.
fn has_namespaces(agent: &Scripted, names: &'static [&'static str]) {
    agent.always(move |received| {
        let is_list = received.path() == "/api/v1/namespaces" && received.user().is_none();
        let is_of_cluster = received.query().contains("virtual-cluster");
        let items: Vec<_> = names.iter().map(|name| json!({"metadata": {"name": name}})).collect();
        let list = json!({"kind": "PartialObjectMetadataList", "metadata": {"resourceVersion": "9"}, "items": items});
        (is_list && is_of_cluster).then(|| Reply::json(200, &list))
    });
}

/// The namespaces of the pods in a list.
fn shown(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().unwrap().iter();
    items.map(|item| item["metadata"]["namespace"].as_str().unwrap()).collect()
}

/// A list waits for its seats, and the host for its storage. The names are those of the moment at which the host responds.
#[tokio::test(start_paused = true)]
async fn a_list_has_the_names_of_the_moment_of_the_response() {
    for media_type in ["application/json", PROTOBUF] {
        let agent = Scripted::new().await;
        let in_json = || pods(&["new-ke"]).to_string().into_bytes();
        let body = if media_type == PROTOBUF { encoded(&["new-ke"]) } else { in_json() };
        let reply = Reply::empty(200).with_header("content-type", media_type).with_body(body).after(2 * LATER);
        agent.on(expect("GET", PODS), reply);
        let learned = async {
            sleep(LATER).await;
            agent.namespaces.learn(&created("new")).unwrap();
        };
        let (response, ()) = tokio::join!(agent.send(ClientRequest::get(PODS).header("accept", media_type)), learned);
        let response = response.expect(200);
        let is_shown =
            if media_type == PROTOBUF { response.body == encoded(&["new"]) } else { response.json() == pods(&["new"]) };
        assert!(is_shown, "{response:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_waits_until_its_namespace_is_known() {
    for (accept, body) in [
        ("application/json", pods(&["edge-ke", "new-ke", "edge-hz", "newer-ke"]).to_string().into_bytes()),
        (PROTOBUF, encoded(&["edge-ke", "new-ke", "edge-hz", "newer-ke"])),
    ] {
        let agent = Scripted::new().await;
        has_namespaces(&agent, &["edge-ke", "new-ke", "newer-ke"]);
        agent.on(expect("GET", PODS), Reply::empty(200).with_header("content-type", accept).with_body(body));
        let learned = async {
            for name in ["new", "newer"] {
                sleep(LATER).await;
                agent.namespaces.learn(&created(name)).unwrap();
            }
        };
        let (response, ()) = tokio::join!(agent.send(ClientRequest::get(PODS).header("accept", accept)), learned);
        let response = response.expect(200);
        if accept == PROTOBUF {
            assert_eq!(response.body, encoded(&["edge", "new", "newer"]));
        } else {
            assert_eq!(shown(&response.json()), ["edge", "new", "newer"]);
        }
        let requests = agent.take_received().iter().filter(|received| received.path() == "/api/v1/namespaces").count();
        assert_eq!(requests, 1, "the response of the host serves the whole list");
    }
}

/// The client lists again. Otherwise, it would miss the object for ever.
#[tokio::test(start_paused = true)]
async fn a_list_ends_early_if_a_namespace_does_not_become_known() {
    let agent = Scripted::new().await;
    has_namespaces(&agent, &["edge-ke", "new-ke"]);
    agent.on(expect("GET", PODS), Reply::json(200, &pods(&["edge-ke", "new-ke"])));
    let error = agent.agent.try_send(ClientRequest::get(PODS)).await.unwrap_err();
    assert!(error.is_reset(), "{error}");
    // A list in protobuf begins when all of it is known.
    let body = Reply::empty(200).with_header("content-type", PROTOBUF).with_body(encoded(&["edge-ke", "new-ke"]));
    agent.on(expect("GET", PODS), body);
    let response = agent.send(ClientRequest::get(PODS).header("accept", PROTOBUF)).await;
    assert_eq!((response.code, &response.headers["retry-after"]), (503, &"1".parse().unwrap()));
    // So does a list for which the host does not say which namespaces exist.
    agent.always(|received| {
        (received.path() == "/api/v1/namespaces").then(|| Reply::status(500, "InternalError", "no storage"))
    });
    agent.on(expect("GET", PODS), Reply::json(200, &pods(&["new-ke"])));
    assert!(agent.agent.try_send(ClientRequest::get(PODS)).await.unwrap_err().is_reset());
    agent.check();
}

/// A volume can outlive the namespace of its claim, whose name then means nothing.
#[tokio::test(start_paused = true)]
async fn the_name_of_no_namespace_delays_no_list() {
    let agent = Scripted::new().await;
    has_namespaces(&agent, &["edge-ke"]);
    let volume = |name: &str, namespace: &str| json!({"metadata": {"name": name}, "spec": {"claimRef": {"namespace": namespace, "name": "c"}}});
    let volumes = "/api/v1/persistentvolumes";
    let items = json!([volume("a", "gone-ke"), volume("b", "edge-ke"), volume("c", "deleted-ke")]);
    let list = json!({"kind": "PersistentVolumeList", "apiVersion": "v1", "metadata": {}, "items": items});
    let began = tokio::time::Instant::now();
    let response =
        agent.exchange(ClientRequest::get(volumes), expect("GET", volumes), Reply::json(200, &list)).await.expect(200);
    assert_eq!(response.json()["items"], json!([volume("b", "edge")]));
    assert!(began.elapsed() < LATER);
}

/// The response to a write must not end early: the client could not know what was deleted.
#[tokio::test(start_paused = true)]
async fn a_write_waits_for_no_namespace() {
    let agent = Scripted::new().await;
    let target = "/api/v1/namespaces/edge/pods";
    let host = expect("DELETE", "/api/v1/namespaces/edge-ke/pods");
    let response =
        agent.exchange(ClientRequest::delete(target), host, Reply::json(200, &pods(&["edge-ke", "new-ke"]))).await;
    assert_eq!(shown(&response.expect(200).json()), ["edge"]);
}

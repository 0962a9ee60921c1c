//! Custom objects without namespaces: each cluster has its own, with another name on the host.

use serde_json::{Value, json};
use test_host::{Reply, expect};

use crate::tests::agent::ClientRequest;
use crate::tests::scripted::Scripted;

const WIDGETS: &str = "/apis/example.com/v1/widgets";
const METADATA: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";

/// A Widget of a cluster on the host.
fn stored(cluster: &str) -> Value {
    json!({"kind": "Widget", "apiVersion": "example.com/v1", "metadata": {"name": format!("a.{cluster}"), "uid": "u",
        "resourceVersion": "4", "labels": {"atoll.dev/virtual-cluster": cluster}}, "spec": {"size": 1}})
}

/// The same as a client sees it.
fn shown() -> Value {
    json!({"kind": "Widget", "apiVersion": "example.com/v1", "metadata": {"name": "a", "uid": "u",
        "resourceVersion": "4"}, "spec": {"size": 1}})
}

fn new() -> Value {
    json!({"kind": "Widget", "apiVersion": "example.com/v1", "metadata": {"name": "a"}, "spec": {"size": 1}})
}

fn missing() -> Reply {
    Reply::status(404, "NotFound", "widgets.example.com \"a.ke\" not found")
}

#[tokio::test]
async fn reads_show_own_objects_under_their_names() {
    let agent = Scripted::new().await;
    let host = format!("{WIDGETS}/a.ke");
    let own = Reply::json(200, &stored("ke"));
    let response =
        agent.exchange(ClientRequest::get(&format!("{WIDGETS}/a")), expect("GET", &host).as_agent(), own).await;
    let mut seen = response.expect(200).json();
    seen["metadata"].as_object_mut().unwrap().remove("labels");
    assert_eq!(seen, shown());
    // The operator has created an object of that name.
    let mut theirs = stored("ke");
    theirs["metadata"]["labels"] = json!({});
    let response = agent
        .exchange(ClientRequest::get(&format!("{WIDGETS}/a")), expect("GET", &host), Reply::json(200, &theirs))
        .await;
    assert_eq!(response.refusal().2, "widgets.example.com \"a\" not found");
    let list = json!({"kind": "WidgetList", "apiVersion": "example.com/v1", "metadata": {}, "items": [stored("ke")]});
    let host = expect(
        "GET",
        &format!("{WIDGETS}?fieldSelector=metadata.name=a.ke&labelSelector=atoll.dev/virtual-cluster=ke"),
    );
    let request = ClientRequest::get(&format!("{WIDGETS}?fieldSelector=metadata.name%3Da"));
    let response = agent.exchange(request, host.as_agent(), Reply::json(200, &list)).await.expect(200);
    assert_eq!(response.json()["items"][0]["metadata"]["name"], "a");
}

#[tokio::test]
async fn a_write_checks_the_owner_first() {
    let agent = Scripted::new().await;
    let held = || expect("GET", &format!("{WIDGETS}/a.ke")).as_agent().with_header("accept", METADATA);
    for (request, method, found, code) in [
        (ClientRequest::post(WIDGETS, &new()), "POST", None, 201),
        (ClientRequest::put(&format!("{WIDGETS}/a"), &new()), "PUT", Some("ke"), 200),
        (ClientRequest::merge(&format!("{WIDGETS}/a"), &json!({"spec": {"size": 1}})), "PATCH", Some("ke"), 200),
        (ClientRequest::delete(&format!("{WIDGETS}/a")), "DELETE", Some("ke"), 200),
    ] {
        agent.on(held(), found.map_or_else(missing, |cluster| Reply::json(200, &stored(cluster))));
        let path = if method == "POST" { WIDGETS.to_owned() } else { format!("{WIDGETS}/a.ke") };
        let mut host = expect(method, &path).as_agent();
        if matches!(method, "POST" | "PUT") {
            host = host.with("/metadata/name", "a.ke").with("/metadata/labels/atoll.dev~1virtual-cluster", "ke");
        }
        agent.on(host, Reply::json(code, &stored("ke")));
        assert_eq!(agent.send(request).await.expect(code).json()["metadata"]["name"], "a");
    }
}

/// The name is taken by the operator.
#[tokio::test]
async fn an_object_of_another_owner_is_not_written() {
    let agent = Scripted::new().await;
    let mut theirs = stored("ke");
    theirs["metadata"]["labels"] = json!({});
    let apply = || ClientRequest::apply(&format!("{WIDGETS}/a?fieldManager=m"), &new());
    for (request, code, reason) in [
        (ClientRequest::post(WIDGETS, &new()), 409, "Conflict"),
        (ClientRequest::put(&format!("{WIDGETS}/a"), &new()), 404, "NotFound"),
        (ClientRequest::delete(&format!("{WIDGETS}/a")), 404, "NotFound"),
        (apply(), 409, "Conflict"),
    ] {
        let held = expect("GET", &format!("{WIDGETS}/a.ke")).as_agent();
        let (is_code, is_reason, message) = agent.exchange(request, held, Reply::json(200, &theirs)).await.refusal();
        assert_eq!((is_code, &*is_reason), (code, reason), "{message}");
    }
}

/// An apply may create the object only if the caller may create it. Otherwise, it is limited to the existing object.
#[tokio::test]
async fn an_apply_needs_the_right_to_create() {
    let agent = Scripted::new().await;
    agent.denying(|question| question.contains(": create widgets"));
    let request = || ClientRequest::apply(&format!("{WIDGETS}/a?fieldManager=m"), &new());
    agent.on(expect("GET", &format!("{WIDGETS}/a.ke")), missing());
    assert_eq!(agent.send(request()).await.code, 403);
    agent.on(expect("GET", &format!("{WIDGETS}/a.ke")), Reply::json(200, &stored("ke")));
    let host = expect("PATCH", &format!("{WIDGETS}/a.ke?fieldManager=m")).as_agent().with("/metadata/uid", "u");
    agent.on(host.with("/metadata/name", "a.ke"), Reply::json(200, &stored("ke")));
    agent.send(request()).await.expect(200);
}

/// The host deletes by the label, so objects of others remain.
#[tokio::test]
async fn a_deletecollection_is_limited_by_the_label() {
    let agent = Scripted::new().await;
    let host = expect("DELETE", &format!("{WIDGETS}?labelSelector=a=b,atoll.dev/virtual-cluster=ke")).as_agent();
    let list = json!({"kind": "WidgetList", "apiVersion": "example.com/v1", "metadata": {}, "items": []});
    let request = ClientRequest::delete(&format!("{WIDGETS}?labelSelector=a%3Db"));
    agent.exchange(request, host, Reply::json(200, &list)).await.expect(200);
}

/// The agent needs the right to write such objects. Its own role grants it.
#[tokio::test(start_paused = true)]
async fn without_a_right_of_its_own_the_agent_writes_nothing() {
    let agent = Scripted::new().await;
    agent.always(|received| {
        let is_review = received.path() == "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        is_review.then(|| Reply::json(201, &json!({"status": {"allowed": false}})))
    });
    let (code, _, message) = agent.send(ClientRequest::post(WIDGETS, &new())).await.refusal();
    assert_eq!(code, 403);
    assert!(message.contains("has not granted the proxy-agent the right"), "{message}");
}

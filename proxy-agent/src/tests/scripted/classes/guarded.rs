//! The guard of pod templates in patches: no form of patch removes it, and none shows it.

use serde_json::{Value, json};
use test_host::{Expected, Reply, expect};

use crate::tests::agent::ClientRequest;
use crate::tests::scripted::Scripted;

const USER: &str = "vc:ke:admin";
const WEB: &str = "/apis/apps/v1/namespaces/edge/deployments/web";
const HOST_WEB: &str = "/apis/apps/v1/namespaces/edge-ke/deployments/web";
const SELECTOR: &str = "/spec/template/spec/nodeSelector";

/// A Deployment with this node selector, or without one.
fn deployment(selector: &Value) -> Value {
    let mut object = json!({"kind": "Deployment", "apiVersion": "apps/v1",
        "metadata": {"name": "web", "namespace": "edge-ke", "uid": "u", "resourceVersion": "4"},
        "spec": {"template": {"spec": {}}}});
    if !selector.is_null() {
        object["spec"]["template"]["spec"]["nodeSelector"] = selector.clone();
    }
    object
}

/// The same, whose node selector these managers have applied.
fn applied_by(selector: &Value, managers: &[&str]) -> Value {
    let fields = json!({"f:spec": {"f:template": {"f:spec": {"f:nodeSelector": {}}}}});
    let entry = |manager: &&str| json!({"manager": manager, "operation": "Apply", "fieldsV1": fields});
    let mut object = deployment(selector);
    object["metadata"]["managedFields"] = managers.iter().map(entry).collect();
    object
}

fn put() -> Expected {
    expect("PUT", HOST_WEB).as_user(USER)
}

/// The host applies the patch in a dry run, and the agent sends the result with the guard.
#[tokio::test(start_paused = true)]
async fn patches_that_would_remove_the_guard_become_updates() {
    let agent = Scripted::new().await;
    let guard = json!({"location": "beijing"});
    let template = |spec: Value| json!({"spec": {"template": {"spec": spec}}});
    for (request, result) in [
        (ClientRequest::merge(WEB, &template(json!({"nodeSelector": null}))), Value::Null),
        (ClientRequest::merge(WEB, &template(json!({"nodeSelector": {"location": null}}))), Value::Null),
        (ClientRequest::strategic(WEB, &template(json!({"nodeSelector": null}))), Value::Null),
        (ClientRequest::strategic(WEB, &template(json!({"$patch": "replace", "containers": []}))), Value::Null),
        (
            ClientRequest::strategic(WEB, &template(json!({"$retainKeys": ["containers"], "containers": []}))),
            Value::Null,
        ),
    ] {
        let described = format!("{request:?}");
        let dry = expect("PATCH", &format!("{HOST_WEB}?dryRun=All")).as_user(USER);
        agent.on(dry, Reply::json(200, &deployment(&result)));
        let put = put().with(SELECTOR, guard.clone()).with("/metadata/resourceVersion", "4");
        agent.on(put, Reply::json(200, &deployment(&guard)));
        let shown = agent.send(request).await.expect(200).json();
        assert_eq!(shown.pointer(SELECTOR), None, "{described}");
    }
}

/// A directive for a node selector that the client does not see has no effect.
#[tokio::test(start_paused = true)]
async fn a_moot_directive_is_dropped() {
    let agent = Scripted::new().await;
    let guard = json!({"location": "beijing"});
    agent.on(expect("GET", HOST_WEB).as_user(USER), Reply::json(200, &deployment(&guard)));
    let patch = json!({"spec": {"replicas": 2, "template": {"spec": {"nodeSelector": {"$patch": "delete"}}}}});
    let host = expect("PATCH", HOST_WEB).as_user(USER).with(SELECTOR, Value::Null).with("/spec/replicas", 2);
    agent
        .exchange(ClientRequest::strategic(WEB, &patch), host, Reply::json(200, &deployment(&guard)))
        .await
        .expect(200);
}

/// The client's view, the operation, and the update.
#[tokio::test(start_paused = true)]
async fn a_json_patch_applies_to_what_the_client_sees() {
    let agent = Scripted::new().await;
    let live = deployment(&json!({"location": "beijing", "disk": "ssd"}));
    for (patch, selector) in [
        (json!([{"op": "remove", "path": "/spec/template/spec/nodeSelector"}]), json!({"location": "beijing"})),
        (
            json!([{"op": "test", "path": "/spec/template/spec/nodeSelector", "value": {"disk": "ssd"}},
                {"op": "add", "path": "/spec/template/spec/nodeSelector/zone", "value": "a"}]),
            json!({"location": "beijing", "disk": "ssd", "zone": "a"}),
        ),
        (json!([{"op": "replace", "path": "/spec/template", "value": {"spec": {}}}]), json!({"location": "beijing"})),
    ] {
        agent.on(expect("GET", HOST_WEB).as_user(USER), Reply::json(200, &live));
        agent.on(put().with(SELECTOR, selector), Reply::json(200, &live));
        let shown = agent.send(ClientRequest::operations(WEB, &patch)).await.expect(200).json();
        assert_eq!(shown.pointer(SELECTOR), Some(&json!({"disk": "ssd"})));
    }
    // What the client does not see is not there.
    agent.on(expect("GET", HOST_WEB).as_user(USER), Reply::json(200, &live));
    let patch = json!([{"op": "remove", "path": "/spec/template/spec/nodeSelector/location"}]);
    agent.send(ClientRequest::operations(WEB, &patch)).await.expect(422);
}

/// The table of `write::patch::apply`.
#[tokio::test(start_paused = true)]
async fn an_apply_gets_the_guard_where_the_manager_owns_the_field() {
    let agent = Scripted::new().await;
    let guard = json!({"location": "beijing"});
    let missing = Reply::status(404, "NotFound", "deployments.apps \"web\" not found");
    let found = |object: &Value| Reply::json(200, object);
    for (row, live, selector, sent) in [
        ("creates the object", missing.clone(), Value::Null, guard.clone()),
        (
            "contains the field",
            found(&applied_by(&guard, &["m"])),
            json!({"a": "b"}),
            json!({"a": "b", "location": "beijing"}),
        ),
        ("lacks it and is the only owner", found(&applied_by(&guard, &["m"])), Value::Null, guard.clone()),
        ("lacks it and another one owns it", found(&applied_by(&guard, &["m", "other"])), Value::Null, Value::Null),
        ("lacks it and does not own it", found(&applied_by(&guard, &["other"])), Value::Null, Value::Null),
    ] {
        agent.on(expect("GET", HOST_WEB).as_agent(), live);
        let mut object = json!({"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": "web"},
            "spec": {"template": {"spec": {}}}});
        if !selector.is_null() {
            object["spec"]["template"]["spec"]["nodeSelector"] = selector;
        }
        let host = expect("PATCH", &format!("{HOST_WEB}?fieldManager=m")).as_user(USER).with(SELECTOR, sent);
        let request = ClientRequest::apply(&format!("{WEB}?fieldManager=m"), &object);
        let response = agent.exchange(request, host, Reply::json(200, &deployment(&guard))).await;
        assert_eq!(response.code, 200, "{row}");
    }
}

/// The creator owns the hidden field. For another manager that sets a node selector, this is no conflict: after the host
/// has tried the rest, the agent takes over the field.
#[tokio::test(start_paused = true)]
async fn a_conflict_about_the_hidden_field_is_none() {
    let agent = Scripted::new().await;
    let guard = json!({"location": "beijing"});
    let object = json!({"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": "web"},
        "spec": {"template": {"spec": {"nodeSelector": {"disk": "ssd"}}}}});
    let request = ClientRequest::apply(&format!("{WEB}?fieldManager=m"), &object);
    agent.on(expect("GET", HOST_WEB).as_agent(), Reply::json(200, &applied_by(&guard, &["creator"])));
    let dry =
        expect("PATCH", &format!("{HOST_WEB}?fieldManager=m&dryRun=All")).as_user(USER).with(SELECTOR, Value::Null);
    agent.on(dry, Reply::json(200, &deployment(&guard)));
    let forced = expect("PATCH", &format!("{HOST_WEB}?fieldManager=m&force=true")).as_user(USER);
    let forced =
        forced.with(SELECTOR, json!({"disk": "ssd", "location": "beijing"})).with("/metadata/resourceVersion", "4");
    agent.on(forced, Reply::json(200, &deployment(&json!({"disk": "ssd", "location": "beijing"}))));
    let shown = agent.send(request.clone()).await.expect(200).json();
    assert_eq!(shown.pointer(SELECTOR), Some(&json!({"disk": "ssd"})));
    // The host finds a conflict in the rest.
    agent.on(expect("GET", HOST_WEB).as_agent(), Reply::json(200, &applied_by(&guard, &["creator"])));
    let dry = expect("PATCH", &format!("{HOST_WEB}?fieldManager=m&dryRun=All"));
    agent.on(dry, Reply::status(409, "Conflict", "Apply failed with 1 conflict: conflict with \"a\": .spec.replicas"));
    assert_eq!(agent.send(request).await.refusal().0, 409);
}

//! Shared objects of two virtual clusters.

use http::Method;
use serde_json::{Value, json};

use crate::tests::agent::ClientRequest;
use crate::tests::dev::Dev;

const CLASSES: &str = "/apis/scheduling.k8s.io/v1/priorityclasses";

/// The class `a` of a cluster.
fn class(owner: &str, value: i64) -> Value {
    let metadata = json!({"name": "a", "labels": {"owner": owner}});
    json!({"kind": "PriorityClass", "apiVersion": "scheduling.k8s.io/v1", "metadata": metadata, "value": value})
}

impl Dev {
    async fn class(&self, cluster: &'static str, method: Method, body: Option<&Value>) -> (u16, Value) {
        let target = if method == Method::POST { CLASSES.to_owned() } else { format!("{CLASSES}/a") };
        let request = ClientRequest::new(method.as_str(), &target).of(cluster);
        let response = self.send(if let Some(body) = body { request.json(body) } else { request }).await;
        assert!(!String::from_utf8_lossy(&response.body).contains("atoll.dev"), "{:?}", response.body);
        (response.code, response.json())
    }

    async fn create(&self, cluster: &'static str, value: i64) -> u16 {
        self.class(cluster, Method::POST, Some(&class(cluster, value))).await.0
    }

    async fn update(&self, cluster: &'static str, value: i64) -> u16 {
        self.class(cluster, Method::PUT, Some(&class(cluster, value))).await.0
    }

    async fn delete(&self, cluster: &'static str) -> u16 {
        self.class(cluster, Method::DELETE, None).await.0
    }

    /// The labels that a cluster sees; null if it sees no object.
    async fn labels(&self, cluster: &'static str) -> Value {
        let (code, shown) = self.class(cluster, Method::GET, None).await;
        if code == 200 { shown["metadata"]["labels"].clone() } else { Value::Null }
    }

    /// The object on the host.
    async fn stored_class(&self) -> Option<Value> {
        self.on_host(&format!("{CLASSES}/a")).await
    }
}

#[tokio::test(start_paused = true)]
async fn one_object_is_had_by_two() {
    let dev = Dev::new().await;
    assert_eq!(dev.create("ke", 1).await, 201);
    assert_eq!(dev.labels("hz").await, Value::Null);
    assert_eq!((dev.update("hz", 1).await, dev.delete("hz").await), (404, 404));
    // With another specification, and then with the same one.
    assert_eq!((dev.create("hz", 2).await, dev.create("hz", 1).await, dev.create("hz", 1).await), (409, 201, 409));
    assert_eq!((dev.labels("ke").await, dev.labels("hz").await), (json!({"owner": "ke"}), json!({"owner": "hz"})));
    let labelled = json!({"metadata": {"labels": {"more": "x"}}});
    let shown = dev.send(ClientRequest::merge(&format!("{CLASSES}/a"), &labelled)).await.expect(200).json();
    assert_eq!(shown["metadata"]["labels"], json!({"owner": "ke", "more": "x"}));
    assert_eq!(dev.labels("hz").await, json!({"owner": "hz"}));
    assert_eq!((dev.delete("ke").await, dev.labels("ke").await), (200, Value::Null));
    assert_eq!((dev.labels("hz").await, dev.create("ke", 1).await), (json!({"owner": "hz"}), 201));
    assert_eq!((dev.delete("hz").await, dev.delete("ke").await), (200, 200));
    assert_eq!(dev.stored_class().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_change_takes_all() {
    let dev = Dev::new().await;
    dev.create("ke", 1).await;
    assert_eq!(dev.update("ke", 2).await, 200);
    assert_eq!(dev.create("hz", 2).await, 201);
    assert_eq!((dev.update("ke", 3).await, dev.update("hz", 4).await), (409, 409));
    let before = dev.stored_class().await;
    assert_eq!((dev.update("ke", 3).await, dev.update("hz", 4).await, dev.update("ke", 3).await), (409, 409, 409));
    assert_eq!(dev.stored_class().await, before, "a recorded change is recorded again");
    assert_eq!(before.unwrap()["value"], 2);
    assert_eq!((dev.update("hz", 3).await, dev.update("ke", 3).await), (200, 200));
    assert_eq!(dev.stored_class().await.unwrap()["value"], 3);
    // Changes that were requested earlier no longer count.
    assert_eq!(dev.update("hz", 4).await, 409);
    assert_eq!((dev.delete("ke").await, dev.update("hz", 4).await), (200, 200));
}

#[tokio::test(start_paused = true)]
async fn the_operators_stays_the_operators() {
    let dev = Dev::new().await;
    let mut operators = class("", 1);
    operators["metadata"]["labels"] = json!({"x": "y"});
    dev.operator.create(CLASSES, &operators).await.unwrap();
    assert_eq!((dev.create("ke", 1).await, dev.update("ke", 2).await, dev.delete("ke").await), (409, 403, 403));
    assert_eq!(dev.update("ke", 1).await, 200);
    assert_eq!(dev.labels("ke").await, json!({"owner": "ke", "x": "y"}));
    assert_eq!(dev.labels("hz").await, json!({"x": "y"}));
    assert_eq!(dev.delete("ke").await, 200);
    assert_eq!(dev.labels("ke").await, json!({"x": "y"}));
}

#[tokio::test(start_paused = true)]
async fn a_large_overlay_is_refused() {
    let dev = Dev::new().await;
    let mut large = class("ke", 1);
    large["metadata"]["annotations"] = json!({"a": "x".repeat(virtual_cluster::shared::MAX_OVERLAY)});
    let (code, status) = dev.class("ke", Method::POST, Some(&large)).await;
    assert_eq!(code, 422, "{status}");
    assert!(status["message"].as_str().unwrap().contains("at most 524288 bytes"), "{status}");
    assert_eq!(dev.stored_class().await, None);
}

/// An API server sends its warnings also with an error.
#[tokio::test(start_paused = true)]
async fn a_refusal_has_the_warnings() {
    let dev = Dev::new().await;
    assert_eq!(dev.create("ke", 1).await, 201);
    let class = class("hz", 2).to_string();
    let yaml = format!("# not JSON\n{}, \"value\": 2}}", class.strip_suffix('}').unwrap());
    let response =
        dev.send(ClientRequest::new("POST", CLASSES).of("hz").typed("application/yaml", yaml)).await.expect(409);
    let warnings = response.warnings();
    assert!(
        matches!(warnings[..], [warning] if warning.starts_with("299 - ") && warning.contains("value")),
        "{warnings:?}"
    );
}

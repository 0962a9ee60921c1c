//! Paths that are not resources.

use serde_json::json;
use test_host::{Reply, expect, standing};

use crate::tests::agent::ClientRequest;
use crate::tests::scripted::Scripted;

#[tokio::test]
async fn each_class_of_paths_has_its_callers() {
    let agent = Scripted::new().await;
    // By the rules of every caller.
    agent.always(standing::paths(&["/openid/*", "/metrics"]));
    for (path, code, anonymous) in [
        ("/livez", 200, 200),
        ("/readyz/etcd", 200, 200),
        ("/version", 200, 200),
        ("/api/v1", 200, 403),
        ("/openapi/v3", 200, 403),
        ("/openid/v1/jwks", 200, 200),
        ("/.well-known/openid-configuration", 403, 403),
        ("/metrics", 403, 403),
        ("/logs/x", 403, 403),
        ("/debug/pprof", 403, 403),
    ] {
        for (request, code) in [(ClientRequest::get(path), code), (ClientRequest::get(path).by_nobody(), anonymous)] {
            if code == 200 {
                agent.on(expect("GET", path).as_agent(), Reply::json(200, &json!({"kind": "Whatever"})));
            }
            agent.send(request).await.expect(code);
        }
    }
    for method in ["POST", "DELETE"] {
        assert_eq!(agent.send(ClientRequest::new(method, "/livez")).await.code, 403, "{method}");
    }
}

/// Discovery passes unchanged, except for kinds that the cluster does not have.
#[tokio::test]
async fn discovery_lacks_hidden_kinds() {
    let agent = Scripted::new().await;
    let resource = |name: &str| json!({"name": name, "namespaced": false, "kind": "K", "verbs": ["get"]});
    let list = |names: &[&str]| {
        json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "example.com/v1",
            "resources": names.iter().map(|name| resource(name)).collect::<Vec<_>>()})
    };
    // Something must have made the agent read discovery before.
    let gadgets = json!({"kind": "GadgetList", "apiVersion": "example.com/v1", "metadata": {}, "items": []});
    let host = expect("GET", "/apis/example.com/v1/gadgets");
    agent
        .exchange(ClientRequest::get("/apis/example.com/v1/gadgets"), host, Reply::json(200, &gadgets))
        .await
        .expect(200);
    let host = expect("GET", "/apis/example.com/v1").as_agent().without_header("if-none-match");
    let request = ClientRequest::get("/apis/example.com/v1").header("if-none-match", "\"1\"");
    let response = agent.exchange(request, host, Reply::json(200, &list(&["gadgets", "secretive", "widgets"]))).await;
    assert_eq!(response.expect(200).json(), list(&["gadgets", "widgets"]));
    let unchanged = Reply::empty(304);
    let host = expect("GET", "/openapi/v3/api/v1").as_agent().with_header("if-none-match", "\"1\"");
    let request = ClientRequest::get("/openapi/v3/api/v1").header("if-none-match", "\"1\"");
    assert_eq!(agent.exchange(request, host, unchanged).await.code, 304);
}

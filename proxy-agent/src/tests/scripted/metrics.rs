//! The phase `record`: which requests are counted, and as what.

use serde_json::json;
use test_host::{Reply, expect};

use crate::tests::agent::ClientRequest;
use crate::tests::scripted::Scripted;

#[tokio::test]
async fn responses_and_refusals_are_counted_by_cluster_verb_and_code() {
    let agent = Scripted::new().await;
    let found = Reply::json(200, &json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}}));
    let host = expect("GET", "/api/v1/namespaces/edge-ke/configmaps/a");
    agent.exchange(ClientRequest::get("/api/v1/namespaces/edge/configmaps/a"), host, found).await.expect(200);
    let missing = Reply::status(404, "NotFound", "configmaps \"b\" not found");
    let host = expect("GET", "/api/v1/namespaces/edge-ke/configmaps/b");
    agent.exchange(ClientRequest::get("/api/v1/namespaces/edge/configmaps/b"), host, missing).await.expect(404);
    // The agent refuses these itself: in the phases authorise and identify.
    agent.send(ClientRequest::get("/metrics")).await.expect(403);
    agent.send(ClientRequest::get("/api/v1/namespaces/edge/configmaps/a?limit=1&watch=%zz")).await.expect(400);
    let mut lines = agent.agent.metric("atoll_agent_requests_total");
    lines.sort();
    assert_eq!(
        lines,
        [
            r#"atoll_agent_requests_total{cluster="ke",code="200",verb="get"} 1"#,
            r#"atoll_agent_requests_total{cluster="ke",code="400",verb="other"} 1"#,
            r#"atoll_agent_requests_total{cluster="ke",code="403",verb="other"} 1"#,
            r#"atoll_agent_requests_total{cluster="ke",code="404",verb="get"} 1"#,
        ]
    );
}

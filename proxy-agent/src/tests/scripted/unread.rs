//! Request bytes that the agent has not read yet.

use std::time::Duration;

use serde_json::json;
use test_host::Reply;

use crate::tests::agent::ClientRequest;
use crate::tests::scripted::Scripted;

/// The time that the host takes for a review. The agent does not read a body before.
const SLOW: Duration = Duration::from_secs(2);

const MAPS: &str = "/api/v1/namespaces/edge/configmaps";

fn create(cluster: &'static str, length: usize) -> ClientRequest {
    let data = json!({"a": "x".repeat(length)});
    ClientRequest::post(
        MAPS,
        &json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}, "data": data}),
    )
    .of(cluster)
}

/// The tunnels share one budget. The cluster with the most unread bytes loses its streams, although another one has the
/// longest.
#[tokio::test(start_paused = true)]
async fn a_cluster_with_many_unread_bytes_loses_its_streams() {
    let agent = Scripted::new().await;
    agent.always(|received| received.path().ends_with("/configmaps").then(|| Reply::json(201, &received.json())));
    agent.always(|received| {
        received.is_review().then(|| Reply::json(201, &json!({"status": {"allowed": true}})).after(SLOW))
    });
    let tunnels = [agent.agent.clone(), agent.agent.on_another_tunnel().await];
    let mut greedy = Vec::new();
    for tunnel in &tunnels {
        greedy.push(tunnel.begin(create("ke", 900_000)).await);
    }
    let modest = tunnels[0].begin(create("hz", 1_000_000)).await;
    modest.response().await.expect(201);
    let mut codes = Vec::new();
    for waiting in greedy {
        codes.push(waiting.response().await.code);
    }
    codes.sort_unstable();
    assert_eq!(codes, [201, 400], "one of them has to go");
    agent.check();
}

//! Bytes that wait for the tunnel to send them.

use std::pin::pin;
use std::time::Duration;

use protocol::ClusterName;
use serde_json::json;
use test_host::{Reply, expect};
use tokio::time::timeout;
use tunnel::Reservation;

use crate::tests::agent::ClientRequest;
use crate::tests::scripted::Scripted;

/// Longer than an agent needs for anything here.
const MINUTE: Duration = Duration::from_secs(60);

const LOG: &str = "/api/v1/namespaces/edge/pods/a/log";

/// Uses up what may wait for tunnels of the cluster `ke`.
fn fill(agent: &Scripted) -> Reservation {
    let cluster = agent.clusters.get(&"ke".parse::<ClusterName>().unwrap()).unwrap();
    cluster.lasting.send_queue.reserve(16 << 20).expect("the share of one cluster")
}

#[tokio::test(start_paused = true)]
async fn a_response_waits_for_room_in_the_queue_of_its_cluster() {
    let agent = Scripted::new().await;
    let log = "line\n".repeat(5_000);
    let held = fill(&agent);
    let reply = || Reply::empty(200).with_body(log.clone());
    agent.on(expect("GET", "/api/v1/namespaces/edge-ke/pods/a/log"), reply());
    let mut open = agent.agent.open(ClientRequest::get(LOG)).await;
    {
        let mut rest = pin!(open.rest());
        assert!(timeout(MINUTE, rest.as_mut()).await.is_err());
        // Neither another cluster nor a short response waits.
        agent.on(expect("GET", "/api/v1/namespaces/edge-hz/pods/a/log"), reply());
        assert_eq!(agent.send(ClientRequest::get(LOG).of("hz")).await.body, log);
        let host = expect("GET", "/api/v1/namespaces/edge-ke/configmaps/a");
        let get = ClientRequest::get("/api/v1/namespaces/edge/configmaps/a");
        agent.exchange(get, host, Reply::json(200, &json!({}))).await.expect(200);
        drop(held);
        assert_eq!(rest.await, log);
    }
    agent.check();
}

#[tokio::test(start_paused = true)]
async fn a_session_waits_for_room_in_the_queue_of_its_cluster() {
    static BYTES: [u8; 25_000] = [b'x'; 25_000];
    let agent = Scripted::new().await;
    let exec = "/api/v1/namespaces/edge/pods/a/exec?command=sh&stdin=true";
    agent.on(expect("GET", "/api/v1/namespaces/edge-ke/pods/a/exec?command=sh&stdin=true"), Reply::switch("websocket"));
    let request = ClientRequest::get(exec).header("sec-websocket-version", "13").header("sec-websocket-key", "a2V5");
    let mut exec = agent.agent.upgrade(request, "websocket").await;
    let held = fill(&agent);
    {
        let mut echoed = pin!(exec.echoed(&BYTES));
        assert!(timeout(MINUTE, echoed.as_mut()).await.is_err());
        drop(held);
        assert_eq!(echoed.await, &BYTES[..]);
    }
    agent.check();
}

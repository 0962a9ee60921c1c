use std::sync::Arc;

use ::tunnel::Budget;
use h2::server::SendResponse;
use http::Response;
use protocol::registration::Mode;
use protocol::{ProtocolVersion, Refusal};
use tokio::sync::mpsc;

use super::*;
use crate::config::Cluster;
use crate::registry::Clusters;
use crate::tunnel::Origin;

/// An agent whose offers the proxy-server follows.
struct Agent {
    tunnel: Arc<Tunnel>,
    verdicts: mpsc::Receiver<Vec<u8>>,
    outbound: SendStream<Bytes>,
}

fn clusters(granted: &[(&str, &[&str])]) -> Clusters {
    Clusters::new(granted.iter().map(|(name, agents)| {
        Arc::new(Cluster {
            name: name.parse().unwrap(),
            agents: agents.iter().map(|agent| agent.parse().unwrap()).collect(),
            mode: Mode::Virtual,
            client_ca: None,
            oidc: None,
            api_server: None,
            destinations: Vec::new(),
            audit: None,
        })
    }))
}

fn offers(names: &[&str]) -> Vec<Offer> {
    names.iter().map(|name| Offer::new(name.parse().unwrap(), Mode::Virtual)).collect()
}

fn refused(reason: RefusalReason, names: &[&str], verdict: &Verdict) -> bool {
    let expected: Vec<ClusterName> = names.iter().map(|name| name.parse().unwrap()).collect();
    let refused: Vec<_> = verdict.refused.iter().map(|one| (one.refusal.reason, &one.clusters)).collect();
    refused == [(reason, &expected)] && verdict.refusal.as_ref().is_some_and(|refusal| refusal.reason == reason)
}

fn serves(registry: &Registry, cluster: &str, agent: &Agent) -> bool {
    let tunnels = registry.tunnels_of(&cluster.parse().unwrap()).unwrap_or_default();
    tunnels.iter().any(|tunnel| Arc::ptr_eq(tunnel, &agent.tunnel))
}

// === impl Agent ===

impl Agent {
    /// Registers an agent, and follows its stream of offers.
    async fn register(registry: &Arc<Registry>, id: &str, offered: &[&str]) -> Self {
        let (near, far) = tokio::io::duplex(64 * 1024);
        let (client, server) =
            tokio::join!(::tunnel::settings::client().handshake(near), ::tunnel::settings::server().handshake(far));
        let ((requests, connection), server) = (client.unwrap(), server.unwrap());
        let protocol = ProtocolVersion { major: 1, minor: 0 };
        let tunnel = Tunnel::new(Origin { protocol, ..Origin::agent(id) }, requests);
        let tasks = ops::drain::Tasks::new();
        tasks.spawn("connection", async move { drop(connection.await) });
        let (followed, registry, offered) = (Arc::clone(&tunnel), Arc::clone(registry), offers(offered));
        tasks.spawn("offers", async move {
            Offered::register((&registry, None), &followed, &offered).follow(true, pending()).await;
        });
        let (verdicts_to, verdicts) = mpsc::channel(8);
        let (stream_to, mut stream) = mpsc::channel(1);
        tasks.spawn("agent", serve(server, stream_to, verdicts_to));
        let mut respond: SendResponse<Bytes> = stream.recv().await.unwrap();
        let outbound = respond.send_response(Response::new(()), false).unwrap();
        Self { tunnel, verdicts, outbound }
    }

    async fn offer(&mut self, names: &[&str]) {
        let offers = line(&Offers { clusters: offers(names) });
        send_bytes(&mut self.outbound, Bytes::from(offers), false).await.unwrap();
    }

    /// The next verdict.
    async fn verdict(&mut self) -> Verdict {
        serde_json::from_slice(&self.verdicts.recv().await.unwrap()).unwrap()
    }
}

/// Passes on the only stream, and each verdict on it.
async fn serve(
    mut connection: h2::server::Connection<tokio::io::DuplexStream, Bytes>,
    stream: mpsc::Sender<SendResponse<Bytes>>,
    verdicts: mpsc::Sender<Vec<u8>>,
) {
    let (request, respond) = connection.accept().await.unwrap().unwrap();
    stream.send(respond).await.unwrap();
    let mut inbound = Inbound::new(request.into_body(), &Budget::new(1 << 20));
    let read = async {
        while let Some(Ok(chunk)) = poll_fn(|cx| inbound.poll_chunk(cx)).await {
            for verdict in chunk.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                verdicts.send(verdict.to_vec()).await.unwrap();
            }
        }
    };
    tokio::join!(read, async { while connection.accept().await.is_some() {} });
}

#[tokio::test(start_paused = true)]
async fn a_refused_cluster_is_served_after_a_reload_and_the_others_all_the_time() {
    let registry = Arc::new(Registry::new(clusters(&[("one", &["site-a"]), ("two", &["site-b"])])));
    let mut site = Agent::register(&registry, "site-a", &["one", "two"]).await;
    site.offer(&["one", "two"]).await;
    let verdict = site.verdict().await;
    assert!(refused(RefusalReason::NotGranted, &["two"], &verdict), "{verdict:?}");
    assert!(serves(&registry, "one", &site) && !serves(&registry, "two", &site));
    let end = registry.end_of(&"one".parse().unwrap()).unwrap();
    registry.reload(clusters(&[("one", &["site-a"]), ("two", &["site-a"])]));
    assert_eq!(site.verdict().await, Verdict::default());
    assert!(serves(&registry, "two", &site) && !end.is_cancelled());
    // A grant that is withdrawn.
    registry.reload(clusters(&[("one", &["site-a"])]));
    let verdict = site.verdict().await;
    assert!(refused(RefusalReason::NotGranted, &["two"], &verdict), "{verdict:?}");
    assert!(serves(&registry, "one", &site) && !end.is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn a_cluster_of_another_agent_is_taken_over_when_that_agent_leaves() {
    let registry = Arc::new(Registry::new(clusters(&[("one", &["site-a", "site-b"]), ("two", &["site-b"])])));
    let owner = Agent::register(&registry, "site-a", &["one"]).await;
    let mut other = Agent::register(&registry, "site-b", &["one", "two"]).await;
    other.offer(&["one", "two"]).await;
    let verdict = other.verdict().await;
    assert!(refused(RefusalReason::Conflict, &["one"], &verdict), "{verdict:?}");
    assert!(serves(&registry, "one", &owner) && serves(&registry, "two", &other));
    registry.remove(&owner.tunnel);
    // Nothing is sent to the proxy-server: it checks again by itself.
    assert_eq!(other.verdict().await, Verdict::default());
    assert!(serves(&registry, "one", &other));
}

#[tokio::test(start_paused = true)]
async fn each_offer_gets_a_verdict_also_if_it_is_the_same() {
    let registry = Arc::new(Registry::new(clusters(&[("one", &["site-a"])])));
    let mut site = Agent::register(&registry, "site-a", &["one", "nowhere"]).await;
    for _ in 0..2 {
        site.offer(&["one", "nowhere"]).await;
        let verdict = site.verdict().await;
        let refusal = verdict.refusal.unwrap();
        assert!(
            matches!(&refusal, Refusal { message, .. } if message.starts_with("cluster nowhere: not granted to agent site-a"))
        );
    }
    site.offer(&[]).await;
    assert_eq!(site.verdict().await, Verdict::default());
    assert!(!serves(&registry, "one", &site));
}

#[tokio::test(start_paused = true)]
async fn a_tunnel_that_can_serve_nothing_ends() {
    let registry = Arc::new(Registry::new(clusters(&[("one", &["site-a"]), ("two", &["site-b"])])));
    // By new offers.
    let mut site = Agent::register(&registry, "site-a", &["one"]).await;
    site.offer(&[]).await;
    assert_eq!(site.verdict().await, Verdict::default());
    assert!(!site.tunnel.end.is_cancelled(), "an agent may offer nothing");
    site.offer(&["two"]).await;
    assert!(refused(RefusalReason::NotGranted, &["two"], &site.verdict().await));
    timeout(Duration::from_secs(60), site.tunnel.end.cancelled()).await.unwrap();
    assert_eq!(registry.connected().tunnels().len(), 1, "it is listed until it is removed");
    registry.remove(&site.tunnel);

    // By a configuration, if it has waited for another agent's cluster.
    let registry = Arc::new(Registry::new(clusters(&[("one", &["site-a", "site-b"])])));
    let _owner = Agent::register(&registry, "site-a", &["one"]).await;
    let mut other = Agent::register(&registry, "site-b", &["one"]).await;
    other.offer(&["one"]).await;
    assert!(refused(RefusalReason::Conflict, &["one"], &other.verdict().await));
    assert_eq!(registry.connected().tunnels().len(), 2);
    assert!(!other.tunnel.end.is_cancelled());
    assert!(registry.reload(clusters(&[("one", &["site-a"])])).is_empty());
    assert!(refused(RefusalReason::NotGranted, &["one"], &other.verdict().await));
    timeout(Duration::from_secs(60), other.tunnel.end.cancelled()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_closing_tunnel_is_not_checked() {
    let registry = Arc::new(Registry::new(clusters(&[("one", &["site-a", "site-b"])])));
    let owner = Agent::register(&registry, "site-a", &["one"]).await;
    let mut other = Agent::register(&registry, "site-b", &["one"]).await;
    other.offer(&["one"]).await;
    assert!(refused(RefusalReason::Conflict, &["one"], &other.verdict().await));
    registry.remove(&other.tunnel);
    registry.remove(&owner.tunnel);
    let checked = timeout(Duration::from_secs(3600), other.verdict()).await;
    assert!(checked.is_err(), "{checked:?}");
}

#[tokio::test(start_paused = true)]
async fn a_tunnel_whose_agent_ends_the_stream_gets_no_more_requests() {
    let registry = Arc::new(Registry::new(clusters(&[("one", &["site-a"])])));
    let mut previous = Agent::register(&registry, "site-a", &["one"]).await;
    previous.offer(&["one"]).await;
    assert_eq!(previous.verdict().await, Verdict::default());
    let next = Agent::register(&registry, "site-a", &["one"]).await;
    assert!(serves(&registry, "one", &previous) && serves(&registry, "one", &next));
    for _ in 0..4 {
        previous.offer(&["one"]).await;
    }
    previous.outbound.send_data(Bytes::new(), true).unwrap();
    // The agent sends GOAWAY later.
    timeout(2 * MIN_INTERVAL, async {
        while serves(&registry, "one", &previous) {
            sleep(Duration::from_millis(1)).await;
        }
    })
    .await
    .unwrap();
    assert!(serves(&registry, "one", &next));
    // Its streams continue.
    assert!(!previous.tunnel.end.is_cancelled() && !previous.tunnel.leaving.is_cancelled());
    // A grant that is withdrawn ends them, although the registry does not know the tunnel any more.
    registry.reload(clusters(&[("one", &["site-b"])]));
    timeout(Duration::from_secs(5), previous.tunnel.end.cancelled()).await.unwrap();
}

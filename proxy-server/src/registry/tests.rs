use super::*;
use crate::tunnel::{NO_ROOM, Origin, TunnelError};

fn cluster(name: &str, agents: &[&str], mode: Mode) -> Arc<Cluster> {
    Arc::new(Cluster {
        name: name.parse().unwrap(),
        agents: agents.iter().map(|agent| agent.parse().unwrap()).collect(),
        mode,
        client_ca: None,
        oidc: None,
        api_server: (mode == Mode::Physical).then(|| "10.2.0.1:6443".parse().unwrap()),
        destinations: Vec::new(),
        audit: None,
    })
}

fn registry() -> Registry {
    Registry::new(Clusters::new([
        cluster("ke-beijing", &["site-a", "site-b"], Mode::Virtual),
        cluster("branch-7", &["branch-7"], Mode::Physical),
    ]))
}

fn offer(name: &str, mode: Mode) -> Offer {
    Offer::new(name.parse().unwrap(), mode)
}

async fn tunnel(agent: &str) -> Arc<Tunnel> {
    let (near, far) = tokio::io::duplex(4096);
    let (requests, _connection) = ::tunnel::settings::client().handshake(near).await.unwrap();
    drop(far);
    Tunnel::new(Origin::agent(agent), requests)
}

/// The names that are refused for one reason.
fn refused(reason: RefusalReason, names: &[&str], all: &[RefusedClusters]) {
    let clusters: Vec<_> = all.iter().map(|refused| (refused.refusal.reason, &*refused.clusters)).collect();
    let names: Vec<_> = names.iter().map(|name| name.parse().unwrap()).collect();
    assert_eq!(clusters, [(reason, &*names)]);
}

#[tokio::test]
async fn grants_come_from_the_configuration_only() {
    let registry = registry();
    let site = tunnel("site-a").await;
    let beijing = offer("ke-beijing", Mode::Virtual);
    for offers in
        [[offer("nowhere", Mode::Virtual)], [offer("branch-7", Mode::Physical)], [offer("ke-beijing", Mode::Physical)]]
    {
        let name = offers[0].name.as_str();
        assert_eq!(registry.check(&site.agent, &offers).unwrap_err().reason, RefusalReason::NotGranted);
        refused(RefusalReason::NotGranted, &[name], &registry.renew(&site, &offers));
        assert!(registry.cheapest(&beijing.name, cost_here).is_err());
    }
    assert_eq!(registry.check(&site.agent, &[]), Ok(()));
    assert_eq!(registry.renew(&site, std::slice::from_ref(&beijing)), []);
    assert!(Arc::ptr_eq(&registry.cheapest(&beijing.name, cost_here).unwrap(), &site));
}

#[tokio::test]
async fn a_refused_offer_does_not_affect_the_others() {
    let registry = registry();
    let (site, other) = (tunnel("site-a").await, tunnel("site-b").await);
    let [beijing, nowhere] = ["ke-beijing", "nowhere"].map(|name| offer(name, Mode::Virtual));
    let offers = [nowhere, beijing.clone(), offer("branch-7", Mode::Physical)];
    assert_eq!(registry.check(&site.agent, &offers), Ok(()));
    refused(RefusalReason::NotGranted, &["nowhere", "branch-7"], &registry.renew(&site, &offers));
    assert!(Arc::ptr_eq(&registry.cheapest(&beijing.name, cost_here).unwrap(), &site));
    // The agent that serves nothing is registered, and its offers are checked again.
    refused(RefusalReason::Conflict, &["ke-beijing"], &registry.renew(&other, std::slice::from_ref(&beijing)));
    let all: Vec<_> =
        registry.connected().refused(2).0.into_iter().map(|one| (one.cluster, one.agent, one.reason)).collect();
    let refused_offer = |cluster: &str, agent: &str, reason| (cluster.parse().unwrap(), agent.parse().unwrap(), reason);
    let expected = [
        refused_offer("branch-7", "site-a", RefusalReason::NotGranted),
        refused_offer("ke-beijing", "site-b", RefusalReason::Conflict),
        refused_offer("nowhere", "site-a", RefusalReason::NotGranted),
    ];
    assert_eq!(all, expected);
    // A replica does not count again, even if it offers the cluster in another mode.
    let replica = tunnel("site-a").await;
    registry.renew(&replica, &[offer("branch-7", Mode::Virtual), offer("ke-beijing", Mode::Physical)]);
    registry.renew(&replica, &[offer("branch-7", Mode::Virtual), offer("more", Mode::Virtual)]);
    let (shown, others) = registry.connected().refused(2);
    assert_eq!((shown.len(), others), (3, 1));
    let counts: Vec<_> = registry.connected().counts().into_iter().map(|(_, reason, count)| (reason, count)).collect();
    assert_eq!(counts, [(RefusalReason::NotGranted, 3), (RefusalReason::Conflict, 1)]);
    assert_eq!(registry.connected().tunnels().len(), 3);
    registry.remove(&replica);
    registry.remove(&site);
    assert_eq!(registry.renew(&other, std::slice::from_ref(&beijing)), []);
    assert!(Arc::ptr_eq(&registry.cheapest(&beijing.name, cost_here).unwrap(), &other));
    assert!(registry.connected().refused(2).0.is_empty());
}

#[tokio::test]
async fn a_cluster_that_is_offered_twice_is_refused() {
    let registry = registry();
    let site = tunnel("site-a").await;
    let beijing = offer("ke-beijing", Mode::Virtual);
    for again in [beijing.clone(), offer("ke-beijing", Mode::Physical)] {
        let offers = [beijing.clone(), again];
        refused(RefusalReason::NotGranted, &["ke-beijing"], &registry.renew(&site, &offers));
        assert!(registry.cheapest(&beijing.name, cost_here).is_err());
    }
}

#[tokio::test]
async fn one_identity_at_a_time_and_replicas_share() {
    let registry = registry();
    let beijing = offer("ke-beijing", Mode::Virtual);
    let (first, replica, other) = (tunnel("site-a").await, tunnel("site-a").await, tunnel("site-b").await);
    assert_eq!(registry.renew(&first, std::slice::from_ref(&beijing)), []);
    refused(RefusalReason::Conflict, &["ke-beijing"], &registry.renew(&other, std::slice::from_ref(&beijing)));
    assert_eq!(registry.renew(&replica, std::slice::from_ref(&beijing)), []);
    let turns = [(); 4].map(|()| Arc::ptr_eq(&registry.cheapest(&beijing.name, cost_here).unwrap(), &replica));
    assert!(turns == [true, false, true, false] || turns == [false, true, false, true], "{turns:?}");
    registry.remove(&first);
    assert!(Arc::ptr_eq(&registry.cheapest(&beijing.name, cost_here).unwrap(), &replica));
    registry.remove(&replica);
    let absent = registry.cheapest(&beijing.name, cost_here).unwrap_err();
    assert!(absent.since.is_some() && absent.to_string().contains("no agent connected (since 20"), "{absent}");
    assert_eq!(registry.renew(&other, &[beijing]), []);
}

/// A tunnel of site-a that a worker drives.
async fn tunnel_on(workers: &workers::Workers, number: usize) -> Arc<Tunnel> {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    workers.at(number).spawn(&ops::drain::Tasks::new(), "test", async move {
        assert!(sender.send(tunnel("site-a").await).is_ok());
    });
    receiver.await.unwrap()
}

#[tokio::test]
async fn one_worker_distributes_connections_to_all_tunnels() {
    let (registry, beijing) = (Arc::new(registry()), offer("ke-beijing", Mode::Virtual));
    let (workers, _threads) = workers::Workers::start(std::num::NonZeroUsize::new(2).unwrap()).unwrap();
    for number in [0, 1] {
        let tunnel = tunnel_on(&workers, number).await;
        assert_eq!(registry.renew(&tunnel, std::slice::from_ref(&beijing)), []);
    }
    let (sender, receiver) = tokio::sync::oneshot::channel();
    workers.at(0).spawn(&ops::drain::Tasks::new(), "test", async move {
        let connections = [(); 6].map(|()| registry.worker_of(&beijing.name).unwrap());
        let requests = [(); 6].map(|()| registry.cheapest(&beijing.name, cost_here).unwrap().worker.unwrap());
        sender.send((connections, requests)).unwrap();
    });
    let (connections, requests) = receiver.await.unwrap();
    let (here, there) = (workers.at(0).id(), workers.at(1).id());
    assert_eq!(connections.iter().filter(|worker| **worker == there).count(), 3, "{connections:?}");
    assert_eq!(requests, [here; 6], "a request prefers the tunnel of its own worker");
}

#[tokio::test]
async fn a_reload_that_withdraws_a_grant_returns_the_tunnels() {
    let registry = registry();
    let site = tunnel("site-a").await;
    assert_eq!(registry.renew(&site, &[offer("ke-beijing", Mode::Virtual)]), []);
    let orphans = registry.reload(Clusters::new([cluster("ke-beijing", &["site-b"], Mode::Virtual)]));
    assert_eq!(orphans.len(), 1);
    assert!(registry.cheapest(&"ke-beijing".parse().unwrap(), cost_here).is_err());
}

/// The offers are checked again after the reload.
#[tokio::test]
async fn a_reload_that_exchanges_grants_keeps_the_tunnel() {
    let mode = Mode::Virtual;
    let registry = Registry::new(Clusters::new([cluster("one", &["site-a"], mode), cluster("two", &["site-b"], mode)]));
    let site = tunnel("site-a").await;
    let [one, two] = ["one", "two"].map(|name| offer(name, mode));
    refused(RefusalReason::NotGranted, &["two"], &registry.renew(&site, &[one.clone(), two.clone()]));
    let exchanged = [cluster("one", &["site-b"], mode), cluster("two", &["site-a"], mode)];
    assert!(registry.reload(Clusters::new(exchanged)).is_empty());
    refused(RefusalReason::NotGranted, &["one"], &registry.renew(&site, &[one, two.clone()]));
    assert!(registry.cheapest(&two.name, cost_here).is_ok());
}

#[tokio::test]
async fn new_offers_change_only_what_differs() {
    let mode = Mode::Virtual;
    let registry = Registry::new(Clusters::new(["one", "two", "three"].map(|name| cluster(name, &["site-a"], mode))));
    let site = tunnel("site-a").await;
    let [one, two, three] = ["one", "two", "three"].map(|name| offer(name, mode));
    assert_eq!(registry.renew(&site, &[one.clone(), two.clone()]), []);
    let ends = registry.end_of(&one.name).unwrap();
    assert_eq!(registry.renew(&site, &[one.clone(), three.clone()]), []);
    assert!(
        registry.cheapest(&one.name, cost_here).is_ok()
            && registry.cheapest(&three.name, cost_here).is_ok()
            && !ends.is_cancelled()
    );
    assert!(registry.cheapest(&two.name, cost_here).unwrap_err().since.is_some());
    // What is refused is not served, and does not affect the rest.
    refused(RefusalReason::NotGranted, &["nowhere"], &registry.renew(&site, &[one.clone(), offer("nowhere", mode)]));
    assert!(
        registry.cheapest(&one.name, cost_here).is_ok()
            && registry.cheapest(&three.name, cost_here).is_err()
            && !ends.is_cancelled()
    );
    registry.remove(&site);
    assert!(registry.connected().tunnels().is_empty());
}

#[tokio::test]
async fn a_reload_ends_only_the_requests_for_removed_clusters() {
    let mode = Mode::Virtual;
    let registry = Registry::new(Clusters::new(["one", "two"].map(|name| cluster(name, &["site-a"], mode))));
    let site = tunnel("site-a").await;
    let [one, two] = ["one", "two"].map(|name| offer(name, mode));
    assert_eq!(registry.renew(&site, &[one.clone(), two.clone()]), []);
    let ends = [&one, &two].map(|offer| registry.end_of(&offer.name).unwrap());
    let mut rechecks = registry.rechecks();
    let lost = registry.reload(Clusters::new(["one", "three"].map(|name| cluster(name, &["site-a"], mode))));
    assert!(lost.is_empty(), "it still serves one");
    assert!(rechecks.has_changed().unwrap() && *rechecks.borrow_and_update() == 1);
    assert!(!ends[0].is_cancelled() && ends[1].is_cancelled());
    assert!(registry.end_of(&two.name).is_none() && registry.cheapest(&two.name, cost_here).is_err());
    assert!(!registry.end_of(&one.name).unwrap().is_cancelled());
    // The same name for another cluster, or another agent's: nothing of the old one goes on.
    registry.reload(Clusters::new([cluster("one", &["site-b"], mode)]));
    assert!(ends[0].is_cancelled() && !registry.end_of(&one.name).unwrap().is_cancelled());
}

/// A tunnel whose other end does this.
async fn tunnel_to<F: Future<Output = ()> + Send + 'static>(
    origin: Origin,
    end: impl FnOnce(h2::server::Connection<tokio::io::DuplexStream, bytes::Bytes>) -> F,
) -> Arc<Tunnel> {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let (client, server) =
        tokio::join!(::tunnel::settings::client().handshake(near), ::tunnel::settings::server().handshake(far));
    let (requests, connection) = client.unwrap();
    let tasks = ops::drain::Tasks::new();
    tasks.spawn("tunnel", async move { drop(connection.await) });
    tasks.spawn("end", end(server.unwrap()));
    Tunnel::new(origin, requests)
}

/// Registers a tunnel of site-a with an agent that does this with the other end.
async fn served_by<F: Future<Output = ()> + Send + 'static>(
    registry: &Registry,
    agent: impl FnOnce(h2::server::Connection<tokio::io::DuplexStream, bytes::Bytes>) -> F,
) -> Arc<Tunnel> {
    let tunnel = tunnel_to(Origin::agent("site-a"), agent).await;
    assert_eq!(registry.renew(&tunnel, &[offer("ke-beijing", Mode::Virtual)]), []);
    tunnel
}

#[tokio::test]
async fn a_closing_tunnel_gets_no_new_streams() {
    let (registry, beijing) = (registry(), offer("ke-beijing", Mode::Virtual));
    let (finish, finished) = tokio::sync::oneshot::channel::<()>();
    let closing = served_by(&registry, |mut agent| async move {
        let (_, mut respond) = agent.accept().await.unwrap().unwrap();
        agent.graceful_shutdown();
        let last = async {
            finished.await.unwrap();
            respond.send_response(http::Response::new(()), true).unwrap();
        };
        let ((), none) = tokio::join!(last, agent.accept());
        assert!(none.is_none(), "no stream begins on a closing tunnel");
    })
    .await;
    let watch = registry.reserve(&beijing.name, None).await.unwrap().open(http::Request::new(()), true).unwrap();
    let (_body, watch) = watch.split();
    while closing.reserve(None).await.is_ok() {
        tokio::task::yield_now().await;
    }
    let other = served_by(&registry, |mut agent| async move {
        while let Some(Ok((_, mut respond))) = agent.accept().await {
            respond.send_response(http::Response::new(()), true).unwrap();
        }
    })
    .await;
    // It has more streams than the closing one.
    let _streams = [other.reserve(None).await.unwrap(), other.reserve(None).await.unwrap()];
    for _ in 0..4 {
        let reservation = registry.reserve(&beijing.name, None).await.unwrap();
        assert!(Arc::ptr_eq(reservation.tunnel(), &other));
        let (_body, answer) = reservation.open(http::Request::new(()), true).unwrap().split();
        assert_eq!(answer.wait().await.unwrap().0.status(), http::StatusCode::OK);
    }
    assert_eq!(registry.connected().tunnels().len(), 1);
    // Its agent's offers are still checked, but they put nothing on it.
    assert_eq!(registry.renew(&closing, std::slice::from_ref(&beijing)), []);
    assert_eq!(registry.connected().tunnels().len(), 1);
    finish.send(()).unwrap();
    assert_eq!(watch.wait().await.unwrap().0.status(), http::StatusCode::OK);
}

/// A request that has met the GOAWAY of the agent on the way. `h2` sends the PONG that ends the first phase of a graceful shutdown
/// before the queued request.
#[tokio::test]
async fn a_request_that_a_closing_agent_ignores_is_unsent() {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let (client, server) =
        tokio::join!(::tunnel::settings::client().handshake(near), ::tunnel::settings::server().handshake(far));
    let ((requests, connection), mut agent) = (client.unwrap(), server.unwrap());
    let agent: &mut h2::server::Connection<_, bytes::Bytes> = &mut agent;
    let tunnel = Tunnel::new(Origin::agent("site-a"), requests);
    agent.graceful_shutdown();
    let accepted = std::future::poll_fn(|cx| std::task::Poll::Ready(agent.poll_accept(cx).is_ready())).await;
    assert!(!accepted, "no request was sent");
    let reservation = tunnel.reserve(None).await.unwrap();
    let (_body, answer) = reservation.open(http::Request::new(()), true).unwrap().split();
    let (answer, _ended, none) = tokio::join!(answer.wait(), connection, agent.accept());
    assert!(none.is_none(), "the agent ignores the request");
    let error = answer.map(drop).unwrap_err();
    assert!(matches!(error, TunnelError::Unsent { .. }), "{error:?}");
}

#[tokio::test]
async fn a_cluster_whose_last_tunnel_is_closing_has_no_agent() {
    let (registry, beijing) = (registry(), offer("ke-beijing", Mode::Virtual));
    let site = tunnel("site-a").await;
    assert_eq!(registry.renew(&site, std::slice::from_ref(&beijing)), []);
    let refused = registry.reserve(&beijing.name, None).await.unwrap_err();
    assert!(matches!(refused, OpenError::NoAgent(NoAgent { since: Some(_), .. })), "{refused}");
}

async fn peer() -> Arc<Tunnel> {
    let (near, far) = tokio::io::duplex(4096);
    let (requests, _connection) = ::tunnel::settings::client().handshake(near).await.unwrap();
    drop(far);
    Tunnel::new(Origin { is_peer: true, ..Origin::agent("proxy-servers") }, requests)
}

#[tokio::test]
async fn the_end_of_a_connection_is_no_lack_of_room() {
    let peer = || Origin { is_peer: true, ..Origin::agent("proxy-servers") };
    let refusing = tunnel_to(peer(), |mut end| async move {
        let (_, mut respond) = end.accept().await.unwrap().unwrap();
        respond.send_reset(NO_ROOM);
        end.accept().await;
    });
    let ending = tunnel_to(peer(), |mut end| async move {
        let (_, _respond) = end.accept().await.unwrap().unwrap();
        // The same reason, but for all streams: the request may have been executed.
        end.abrupt_shutdown(NO_ROOM);
        end.accept().await;
    });
    for (tunnel, is_full) in [(refusing.await, true), (ending.await, false)] {
        let (_body, pending) = tunnel.reserve(None).await.unwrap().open(http::Request::new(()), true).unwrap().split();
        let error = pending.wait().await.unwrap_err();
        assert_eq!(matches!(error, TunnelError::Full(_)), is_full, "{error:?}");
        assert_eq!(matches!(error, TunnelError::Broken { .. }), !is_full, "{error:?}");
    }
}

/// The offer of a proxy-server.
fn offer_of(agent: &str, name: &str, mode: Mode) -> Offer {
    Offer { agent: Some(agent.parse().unwrap()), ..offer(name, mode) }
}

#[tokio::test]
async fn a_tunnel_of_another_proxy_server_is_used_while_no_agent_is_connected() {
    let (registry, peer) = (registry(), peer().await);
    let name: ClusterName = "ke-beijing".parse().unwrap();
    let chosen = || registry.cheapest(&name, cost_here);
    let unknown = offer_of("site-a", "unknown", Mode::Virtual);
    assert_eq!(registry.renew(&peer, &[offer_of("site-a", "ke-beijing", Mode::Virtual), unknown]), []);
    assert!(Arc::ptr_eq(&chosen().unwrap(), &peer));
    assert!(Arc::ptr_eq(&registry.tunnels_of(&name).unwrap()[0], &peer));
    // A stream of another proxy-server never passes through a third one, and is not offered to one.
    assert!(registry.cheapest_own(&name, cost_here).is_err());
    assert_eq!(registry.own_offers(), []);

    let site = tunnel("site-a").await;
    assert_eq!(registry.renew(&site, &[offer("ke-beijing", Mode::Virtual)]), []);
    assert!(Arc::ptr_eq(&chosen().unwrap(), &site));
    assert_eq!(registry.own_offers(), [offer_of("site-a", "ke-beijing", Mode::Virtual)]);
    registry.remove(&site);
    assert!(Arc::ptr_eq(&chosen().unwrap(), &peer));

    // It no longer offers the cluster, or offers it in another mode, or is gone.
    assert_eq!(registry.renew(&peer, &[offer_of("site-a", "ke-beijing", Mode::Physical)]), []);
    assert!(chosen().is_err());
    assert_eq!(registry.renew(&peer, &[offer_of("site-a", "ke-beijing", Mode::Virtual)]), []);
    assert!(chosen().is_ok());
    registry.remove(&peer);
    assert!(chosen().is_err());
    assert_eq!(registry.renew(&peer, &[offer_of("site-a", "ke-beijing", Mode::Virtual)]), []);
    assert!(chosen().is_err(), "a closing tunnel does not enter again");
}

#[tokio::test]
async fn one_agent_serves_a_cluster_at_all_proxy_servers() {
    let (registry, peer) = (registry(), peer().await);
    let (first, second) = (tunnel("site-a").await, tunnel("site-b").await);
    let beijing = [offer("ke-beijing", Mode::Virtual)];
    registry.renew(&peer, &[offer_of("site-b", "ke-beijing", Mode::Virtual)]);
    refused(RefusalReason::Conflict, &["ke-beijing"], &registry.renew(&first, &beijing));
    assert_eq!(registry.renew(&second, &beijing), [], "a replica of the same agent");

    // Both have connected in the same moment: the first one by name stays.
    let rechecks = registry.rechecks();
    registry.renew(&peer, &[offer_of("site-a", "ke-beijing", Mode::Virtual)]);
    assert!(rechecks.has_changed().unwrap(), "all offers are checked again");
    refused(RefusalReason::Conflict, &["ke-beijing"], &registry.renew(&second, &beijing));
    assert_eq!(registry.renew(&first, &beijing), []);
    registry.renew(&peer, &[offer_of("site-b", "ke-beijing", Mode::Virtual)]);
    assert_eq!(registry.renew(&first, &beijing), []);
}

#[tokio::test]
async fn an_agent_behind_another_proxy_server_needs_a_grant_of_this_one() {
    let (registry, peer) = (registry(), peer().await);
    let name: ClusterName = "ke-beijing".parse().unwrap();
    for offer in [offer("ke-beijing", Mode::Virtual), offer_of("site-c", "ke-beijing", Mode::Virtual)] {
        registry.renew(&peer, &[offer]);
        assert!(registry.cheapest(&name, cost_here).is_err());
    }
    registry.renew(&peer, &[offer_of("site-b", "ke-beijing", Mode::Virtual)]);
    assert!(registry.cheapest(&name, cost_here).is_ok());
    let end = registry.end_of(&name).unwrap();
    registry.reload(Clusters::new([cluster("ke-beijing", &["site-a", "site-b"], Mode::Virtual)]));
    assert!(!end.is_cancelled() && registry.cheapest(&name, cost_here).is_ok());
    registry.reload(Clusters::new([cluster("ke-beijing", &["site-a"], Mode::Virtual)]));
    assert!(end.is_cancelled() && registry.cheapest(&name, cost_here).is_err());
}

#[tokio::test]
async fn the_loss_of_an_agent_elsewhere_is_recent() {
    let (registry, peer) = (registry(), peer().await);
    let name: ClusterName = "ke-beijing".parse().unwrap();
    assert!(!registry.cheapest(&name, cost_here).unwrap_err().is_recent());
    registry.renew(&peer, &[offer_of("site-a", "ke-beijing", Mode::Virtual)]);
    registry.peers().heard(&peer);
    assert_eq!(registry.peers().known().len(), 1);
    registry.remove(&peer);
    assert!(registry.cheapest(&name, cost_here).unwrap_err().is_recent());
    assert!(registry.peers().known().is_empty() && registry.peers().was_known());
}

use super::*;

fn cluster(name: &str, agents: &[&str], mode: Mode) -> Arc<Cluster> {
    Arc::new(Cluster {
        name: name.parse().unwrap(),
        agents: agents.iter().map(|agent| agent.parse().unwrap()).collect(),
        mode,
        client_ca: None,
        api_server: (mode == Mode::Physical).then(|| "10.2.0.1:6443".parse().unwrap()),
    })
}

fn registry() -> Registry {
    Registry::new(Clusters::new([
        cluster("ke-beijing", &["site-a", "site-b"], Mode::Virtual),
        cluster("branch-7", &["branch-7"], Mode::Physical),
    ]))
}

fn offer(name: &str, mode: Mode) -> Offer {
    Offer { name: name.parse().unwrap(), mode }
}

async fn tunnel(agent: &str) -> Arc<Tunnel> {
    let (near, far) = tokio::io::duplex(4096);
    let (requests, _connection) = ::tunnel::settings::client().handshake(near).await.unwrap();
    drop(far);
    Tunnel::new(agent.parse().unwrap(), "1".into(), "0".into(), requests)
}

fn reason(result: Result<(), Refusal>) -> RefusalReason {
    result.unwrap_err().reason
}

#[tokio::test]
async fn grants_come_from_the_configuration_only() {
    let registry = registry();
    let site = tunnel("site-a").await;
    let beijing = offer("ke-beijing", Mode::Virtual);
    let refused = [
        vec![offer("nowhere", Mode::Virtual)],
        vec![offer("branch-7", Mode::Physical)],
        vec![offer("ke-beijing", Mode::Physical)],
        // All of it or nothing.
        vec![beijing.clone(), offer("branch-7", Mode::Physical)],
    ];
    for offers in refused {
        assert_eq!(reason(registry.register(&site, &offers)), RefusalReason::NotGranted, "{offers:?}");
        assert!(registry.tunnel(&beijing.name).is_err());
    }
    registry.register(&site, std::slice::from_ref(&beijing)).unwrap();
    assert!(Arc::ptr_eq(&registry.tunnel(&beijing.name).unwrap(), &site));
}

#[tokio::test]
async fn one_identity_at_a_time_and_replicas_share() {
    let registry = registry();
    let beijing = offer("ke-beijing", Mode::Virtual);
    let (first, replica, other) = (tunnel("site-a").await, tunnel("site-a").await, tunnel("site-b").await);
    registry.register(&first, std::slice::from_ref(&beijing)).unwrap();
    assert_eq!(reason(registry.register(&other, std::slice::from_ref(&beijing))), RefusalReason::Conflict);
    registry.register(&replica, std::slice::from_ref(&beijing)).unwrap();
    registry.remove(&first);
    assert!(Arc::ptr_eq(&registry.tunnel(&beijing.name).unwrap(), &replica));
    registry.remove(&replica);
    let absent = registry.tunnel(&beijing.name).unwrap_err();
    assert!(absent.since.is_some() && absent.to_string().contains("no agent connected for 0 s"), "{absent}");
    registry.register(&other, &[beijing]).unwrap();
}

#[tokio::test]
async fn a_reload_that_takes_a_grant_back_gives_up_its_tunnels() {
    let registry = registry();
    let site = tunnel("site-a").await;
    registry.register(&site, &[offer("ke-beijing", Mode::Virtual)]).unwrap();
    let orphans = registry.reload(Clusters::new([cluster("ke-beijing", &["site-b"], Mode::Virtual)]));
    assert_eq!(orphans.len(), 1);
    assert!(registry.tunnel(&"ke-beijing".parse().unwrap()).is_err());
}

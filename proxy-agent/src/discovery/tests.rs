use tokio::task::JoinSet;

use super::*;
use host_client::testing::{FakeServer, World};

const PODS: GroupVersionResource<'_> = GroupVersionResource { group: "", version: "v1", resource: "pods" };
const THINGS: GroupVersionResource<'_> =
    GroupVersionResource { group: "example.com", version: "v1", resource: "things" };

fn discovery(world: &World, server: &FakeServer) -> Arc<Discovery> {
    Arc::new(Discovery::new(world.host(&[server], &ops::drain::Tasks::new()), Customs::default(), Arc::default()))
}

/// Responds to one read like a host that has only pods.
async fn answer(server: &mut FakeServer) {
    for _ in 0..4 {
        let received = server.next_request().await;
        match &*received.path() {
            "/api" => received.answer(r#"{"versions": ["v1"]}"#),
            "/api/v1" => received.answer(r#"{"resources": [{"name": "pods", "namespaced": true, "kind": "Pod"}]}"#),
            "/apis" => received.answer(r#"{"groups": []}"#),
            _ => received.answer_with(404, ""),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_host_is_not_waited_for_in_turn() {
    let world = World::default();
    let mut server = world.server("a", 100);
    let discovery = discovery(&world, &server);
    let begun = Instant::now();
    let looking: JoinSet<_> = std::iter::repeat_with(|| {
        let discovery = Arc::clone(&discovery);
        async move { discovery.resource(PODS).await }
    })
    .take(20)
    .collect();
    let _unanswered = server.next_request().await;
    for found in looking.join_all().await {
        assert!(!matches!(found, Ok(Some(_))));
    }
    // There is one read, for which all look-ups wait.
    assert!(begun.elapsed() <= 2 * READ_TIMEOUT, "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn the_last_result_is_used_while_the_host_does_not_respond() {
    let world = World::default();
    let mut server = world.server("a", 100);
    let discovery = discovery(&world, &server);
    let (found, ()) = tokio::join!(discovery.resource(PODS), answer(&mut server));
    assert_eq!(found.unwrap().unwrap().kind, "Pod");

    sleep(2 * REFRESH_INTERVAL).await;
    let begun = Instant::now();
    let known = async {
        let _unanswered = server.next_request().await;
        let known = discovery.resource(PODS).await.unwrap();
        assert_eq!((known.is_some(), begun.elapsed()), (true, Duration::ZERO));
        std::future::pending::<()>().await;
    };
    tokio::select! {
        unknown = discovery.resource(THINGS) => assert!(unknown.unwrap().is_none()),
        () = known => unreachable!("it is pending"),
    }
    assert_eq!(begun.elapsed(), READ_TIMEOUT);
}

/// A client that leaves at once and asks again causes no more reads than one that waits.
#[tokio::test(start_paused = true)]
async fn a_look_up_that_is_dropped_counts() {
    let world = World::default();
    let mut server = world.server("a", 100);
    let discovery = discovery(&world, &server);
    let begun = Instant::now();
    for count in 0..3 {
        tokio::select! {
            biased;
            _unanswered = server.next_request() => {}
            _ = discovery.resource(PODS) => unreachable!("the host does not respond"),
        }
        assert_eq!(begun.elapsed(), count * RETRY_INTERVAL);
    }
    let (found, ()) = tokio::join!(discovery.resource(PODS), answer(&mut server));
    assert!(found.unwrap().is_some());
}

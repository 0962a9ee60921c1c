use rewrite::mapping::Owner;
use rewrite::name::{CLUSTER_LABEL, NAMESPACE_LABEL};
use serde_json::json;
use tokio::sync::mpsc;

use super::*;

struct Script(mpsc::Receiver<Change>);

impl Following for Script {
    async fn next(&mut self) -> Change {
        match self.0.recv().await {
            Some(change) => change,
            None => std::future::pending().await,
        }
    }
}

fn cluster() -> ClusterName {
    ClusterName::new("vc").unwrap()
}

fn namespace(name: &str, version: u64) -> Value {
    json!({"metadata": {
        "name": format!("{name}-vc"), "uid": format!("uid-{name}"), "resourceVersion": version.to_string(),
        "labels": {CLUSTER_LABEL: "vc", NAMESPACE_LABEL: name},
    }, "status": {"phase": "Active"}})
}

async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn the_index_is_empty_before_the_first_list_is_complete() {
    let namespaces = Namespaces::new([cluster()]);
    let (host, events) = mpsc::channel(8);
    let script = async {
        let mut events = namespaces.subscribe();
        host.send(Change::Applied(namespace("edge", 3))).await.unwrap();
        host.send(Change::Applied(json!({"metadata": {"name": "default", "uid": "d", "resourceVersion": "1"}})))
            .await
            .unwrap();
        settle().await;
        assert!(!namespaces.is_synced() && namespaces.index().owner(b"edge-vc").is_none());
        host.send(Change::Synced).await.unwrap();
        namespaces.synced().await;
        assert!(matches!(namespaces.index().owner(b"edge-vc"), Some(Owner::Virtual { .. })));
        assert_eq!(namespaces.index().owner(b"default"), Some(&Owner::Host));

        // The index has the state from a response at once, and the later event changes nothing.
        let born = namespaces.learn(&namespace("born", 9)).unwrap().unwrap();
        assert_eq!((born.host.as_str(), &*born.uid, born.phase), ("born-vc", "uid-born", Phase::Active));
        assert!(namespaces.index().owner(b"born-vc").is_some());
        host.send(Change::Applied(namespace("born", 9))).await.unwrap();
        let mut ending = namespace("born", 12);
        ending["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        host.send(Change::Applied(ending)).await.unwrap();
        settle().await;
        assert_eq!(namespaces.member(&born.host).unwrap().phase, Phase::Terminating);
        host.send(Change::Deleted(namespace("born", 13))).await.unwrap();
        settle().await;
        assert!(namespaces.member(&born.host).is_none());

        let changed = |name| Some(NamespaceEvent::Changed(HostNamespace::new(name).unwrap()));
        assert_eq!(events.next().await, changed("edge-vc"));
        for _ in 0..3 {
            assert_eq!(events.next().await, changed("born-vc"));
        }
    };
    tokio::select! {
        () = namespaces.follow(Script(events)) => {}
        () = script => {}
    }
}

#[tokio::test]
async fn a_slow_subscriber_checks_everything() {
    let namespaces = Namespaces::new([cluster()]);
    let mut events = namespaces.subscribe();
    for version in 1..=u64::try_from(BACKLOG).unwrap() + 1 {
        namespaces.learn(&namespace(&format!("n{version}"), version)).unwrap();
    }
    assert_eq!(events.next().await, Some(NamespaceEvent::Everything));
    assert!(matches!(events.next().await, Some(NamespaceEvent::Changed(_))));
}

//! Scenarios: what the host sends about RBAC, and when rights are checked.

use std::collections::{HashMap, HashSet};
use std::future::poll_fn;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use h2::SendStream;
use host_client::testing::{Behaviour, FakeServer, World};
use ops::drain::Tasks;
use serde_json::{Value, json};
use tokio::task::yield_now;
use tokio::time::{advance, interval, sleep, timeout};

use super::scopes::{CLUSTER_REVIEWS, LOOK};
use super::*;
use crate::permission::{Permission, ReviewValidity};

const GROUP: &str = "/apis/rbac.authorization.k8s.io/v1/";

/// A host, and the rights of watches on it.
struct Site {
    server: FakeServer,
    rights: Arc<Rights>,
    /// How often the answers for each virtual cluster were forgotten.
    forgotten: Arc<Mutex<HashMap<String, usize>>>,
    tasks: Tasks,
}

/// The right of a user in a namespace, as the host sees it.
#[derive(Clone, Default)]
struct Host {
    revoked: Arc<Mutex<HashSet<usize>>>,
    reviews: Arc<AtomicUsize>,
    at_a_time: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

impl Site {
    fn new() -> Self {
        let (world, tasks) = (World::default(), Tasks::new());
        let server = world.server("a", 100);
        let api = Api::new(world.host(&[&server], &tasks));
        let forgotten: Arc<Mutex<HashMap<String, usize>>> = Arc::default();
        let forget = Arc::clone(&forgotten);
        let rights = Arc::new(Rights::new(move |cluster| {
            *forget.lock().unwrap().entry(cluster.to_string()).or_default() += 1;
        }));
        let kept = Arc::clone(&rights);
        tasks.spawn_until_cancelled("rights", async move { kept.keep(&api).await });
        Self { server, rights, forgotten, tasks }
    }

    /// A host whose RBAC is watched, and the streams of the watches.
    async fn watched() -> (Self, HashMap<String, SendStream<Bytes>>) {
        let mut site = Self::new();
        let streams = site.answer(4, 10).await;
        site.are_current(4).await;
        // The first lists count as a change.
        advance(Duration::from_secs(10)).await;
        (site, streams)
    }

    /// Answers lists with this version until this many watches have begun.
    async fn answer(&mut self, watches: usize, version: u64) -> HashMap<String, SendStream<Bytes>> {
        let mut streams = HashMap::new();
        while streams.len() < watches {
            let received = self.server.next_request().await;
            let path = received.path();
            if path == "/readyz" {
                // The first request after a break, depending on the random pauses of the retries.
                received.answer("ok");
                continue;
            }
            let (resource, query) = path.strip_prefix(GROUP).unwrap().split_once('?').unwrap();
            if query == "limit=1" {
                let list =
                    json!({"metadata": {"resourceVersion": version.to_string(), "continue": "x"}, "items": [{}]});
                received.answer_with(200, list.to_string());
            } else {
                let from = format!("watch=true&allowWatchBookmarks=true&resourceVersion={version}&");
                assert!(query.starts_with(&from), "{path}");
                streams.insert(resource.to_owned(), received.begin());
            }
        }
        streams
    }

    /// Waits until this many watches are current.
    async fn are_current(&self, count: usize) {
        let until = async {
            let mut ticks = interval(Duration::from_millis(100));
            while self.rights.current_watches() != count {
                ticks.tick().await;
            }
        };
        timeout(Duration::from_secs(200), until).await.unwrap();
    }

    fn scope(&self, cluster: &str, namespace: &str) -> Arc<Scope> {
        self.rights.scope(&cluster.parse().unwrap(), &HostNamespace::new(namespace).unwrap())
    }

    /// The right of a user to a watch in `edge-ke`.
    fn permission(&self, host: &Host, user: usize) -> Permission {
        let (cluster, namespace) = ("ke".parse().unwrap(), HostNamespace::new("edge-ke").unwrap());
        let host = host.clone();
        Permission::new(&self.rights, &cluster, &namespace, &self.tasks, move |_| {
            let host = host.clone();
            Box::pin(async move { Some(host.review(user).await) })
        })
    }
}

impl Host {
    async fn review(&self, user: usize) -> bool {
        self.reviews.fetch_add(1, Ordering::Relaxed);
        let now = self.at_a_time.fetch_add(1, Ordering::Relaxed) + 1;
        self.most.fetch_max(now, Ordering::Relaxed);
        for _ in 0..10 {
            yield_now().await;
        }
        self.at_a_time.fetch_sub(1, Ordering::Relaxed);
        !self.revoked.lock().unwrap().contains(&user)
    }

    fn reviews(&self) -> usize {
        self.reviews.swap(0, Ordering::Relaxed)
    }
}

fn send(stream: &mut SendStream<Bytes>, event: &str, object: &Value) {
    let frame = json!({"type": event, "object": object});
    stream.send_data(format!("{frame}\n").into(), false).unwrap();
}

fn object(namespace: &str, name: &str, version: u64) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
        "metadata": {"name": name, "namespace": namespace, "resourceVersion": version.to_string()}})
}

/// Sends a bookmark to each watch.
fn bookmarks(streams: &mut HashMap<String, SendStream<Bytes>>, version: u64) {
    for stream in streams.values_mut() {
        send(stream, "BOOKMARK", &json!({"metadata": {"resourceVersion": version.to_string()}}));
    }
}

/// Ends when the right has ended, as a quiet watch does.
async fn ends(permission: &mut Permission) {
    poll_fn(|cx| match permission.poll_known(cx) {
        Poll::Ready(false) => Poll::Ready(()),
        Poll::Ready(true) | Poll::Pending => Poll::Pending,
    })
    .await;
}

async fn is_allowed(permission: &mut Permission) -> bool {
    poll_fn(|cx| permission.poll_allowed(cx)).await
}

#[tokio::test(start_paused = true)]
async fn a_change_begins_rounds_where_it_can_change_rights() {
    let (site, mut streams) = Site::watched().await;
    let scopes = [("ke", "edge-ke"), ("ke", "atoll-root-ke"), ("hz", "edge-hz")];
    let scopes = scopes.map(|(cluster, namespace)| site.scope(cluster, namespace));
    for (resource, namespace, name, expected) in [
        ("roles", "edge-ke", "a", [2, 0, 0]),
        ("rolebindings", "atoll-root-ke", "a", [0, 2, 0]),
        ("rolebindings", "kube-system", "a", [0, 0, 0]),
        ("clusterroles", "", "vc:ke:a", [2, 2, 0]),
        ("clusterroles", "", "view", [2, 2, 2]),
        ("clusterrolebindings", "", "a", [2, 2, 2]),
    ] {
        for (event, version) in [("ADDED", 11), ("MODIFIED", 12), ("DELETED", 13)] {
            let before = scopes.each_ref().map(|scope| scope.round());
            send(streams.get_mut(resource).unwrap(), event, &object(namespace, name, version));
            sleep(Duration::from_secs(10)).await;
            let mut begun = scopes.each_ref().map(|scope| scope.round());
            begun.iter_mut().zip(before).for_each(|(round, before)| *round -= before);
            assert_eq!(begun, expected, "{resource} {namespace}/{name} {event}");
        }
    }
    let forgotten = site.forgotten.lock().unwrap();
    assert_eq!((forgotten["ke"], forgotten["hz"]), (48, 12), "answers are forgotten in each round");
}

#[tokio::test(start_paused = true)]
async fn a_quiet_watch_ends_with_the_right() {
    let (site, mut streams) = Site::watched().await;
    let host = Host::default();
    let (mut jane, mut joe) = (site.permission(&host, 1), site.permission(&host, 2));
    host.revoked.lock().unwrap().insert(1);
    send(streams.get_mut("rolebindings").unwrap(), "DELETED", &object("edge-ke", "a", 11));
    timeout(Duration::from_secs(5), ends(&mut jane)).await.unwrap();
    timeout(Duration::from_secs(60), ends(&mut joe)).await.unwrap_err();
    assert!(is_allowed(&mut joe).await);
}

/// The first review is answered by an API server that does not know of the change yet.
#[tokio::test(start_paused = true)]
async fn a_lagging_api_server_does_not_keep_a_right_alive() {
    let (site, mut streams) = Site::watched().await;
    let host = Host::default();
    let mut jane = site.permission(&host, 1);
    sleep(Duration::from_secs(2)).await;
    send(streams.get_mut("rolebindings").unwrap(), "DELETED", &object("edge-ke", "a", 11));
    let revoked = Arc::clone(&host.revoked);
    site.tasks.spawn("lag", async move {
        sleep(Duration::from_secs(1)).await;
        revoked.lock().unwrap().insert(1);
    });
    timeout(Duration::from_secs(5), ends(&mut jane)).await.unwrap();
    assert_eq!(host.reviews(), 2);
}

#[tokio::test(start_paused = true)]
async fn events_cost_no_reviews_while_rbac_does_not_change() {
    let (site, mut streams) = Site::watched().await;
    let host = Host::default();
    let mut jane = site.permission(&host, 1);
    for second in 0..200 {
        assert!(is_allowed(&mut jane).await);
        if second % 60 == 0 {
            bookmarks(&mut streams, 20);
        }
        sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(host.reviews(), 0);
    // Other authorisers can revoke a right without an event.
    // A check is due after 300 s at the latest, and a watch may end after 330 s.
    for second in 0..108 {
        assert!(is_allowed(&mut jane).await);
        if second % 60 == 0 {
            bookmarks(&mut streams, 30);
        }
        sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(host.reviews(), 1);
}

/// A virtual cluster changes RBAC all the time, and has many watches.
#[tokio::test(start_paused = true)]
async fn a_flood_of_changes_causes_few_reviews() {
    let (site, mut streams) = Site::watched().await;
    let host = Host::default();
    let mut watches: Vec<_> = (0..50).map(|user| site.permission(&host, user)).collect();
    for version in 0..100 {
        send(streams.get_mut("roles").unwrap(), "MODIFIED", &object("edge-ke", "a", 11 + version));
        sleep(Duration::from_millis(30)).await;
        for watch in &mut watches {
            let _ = watch.poll_known(&mut Context::from_waker(Waker::noop()));
        }
    }
    for watch in &mut watches {
        assert!(is_allowed(watch).await);
    }
    let (reviews, most) = (host.reviews(), host.most.load(Ordering::Relaxed));
    assert!((50..=200).contains(&reviews), "{reviews} in three seconds");
    assert!(most <= CLUSTER_REVIEWS, "{most} at a time");
}

/// During a break, a right is checked before each event. A change in the meantime arrives when the watch continues.
#[tokio::test(start_paused = true)]
async fn a_break_of_a_watch_hides_no_change() {
    let (mut site, mut streams) = Site::watched().await;
    let host = Host::default();
    let mut jane = site.permission(&host, 1);
    let scope = site.scope("ke", "edge-ke");
    bookmarks(&mut streams, 20);
    sleep(Duration::from_secs(1)).await;
    site.server.kill();
    site.are_current(0).await;
    assert!(is_allowed(&mut jane).await);
    assert_eq!(host.reviews(), 1);
    host.revoked.lock().unwrap().insert(1);
    site.server.behave(Behaviour::Serve);
    let mut streams = site.answer(4, 20).await;
    send(streams.get_mut("rolebindings").unwrap(), "DELETED", &object("edge-ke", "a", 21));
    timeout(Duration::from_secs(5), ends(&mut jane)).await.unwrap();
    site.are_current(4).await;
    assert_eq!(scope.round(), 2, "the change alone");
}

#[tokio::test(start_paused = true)]
async fn after_a_gap_all_rights_are_checked() {
    let (mut site, mut streams) = Site::watched().await;
    let scopes = [site.scope("ke", "edge-ke"), site.scope("hz", "edge-hz")];
    let stream = streams.get_mut("roles").unwrap();
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired", "code": 410});
    send(stream, "ERROR", &status);
    sleep(Duration::from_millis(1)).await;
    assert_eq!(site.rights.current_watches(), 3, "at once");
    assert!(!scopes[0].is_current());
    let _streams = site.answer(1, 50).await;
    site.are_current(4).await;
    let rounds = || scopes.each_ref().map(|scope| scope.round());
    assert!(rounds().iter().all(|round| *round > 0), "before anybody relies on the watch");
    sleep(Duration::from_secs(10)).await;
    assert_eq!(rounds(), [2; 2]);
}

#[tokio::test(start_paused = true)]
async fn a_silent_watch_is_not_current() {
    let (site, mut streams) = Site::watched().await;
    let host = Host::default();
    let mut jane = site.permission(&host, 1);
    for _ in 0..3 {
        sleep(Duration::from_secs(60)).await;
        bookmarks(&mut streams, 20);
        assert_eq!(site.rights.current_watches(), 4);
    }
    site.are_current(0).await;
    assert!(is_allowed(&mut jane).await);
    assert_eq!(host.reviews(), 1);
    bookmarks(&mut streams, 30);
    site.are_current(4).await;
}

#[tokio::test(start_paused = true)]
async fn scopes_end_with_their_watches() {
    let (site, _streams) = Site::watched().await;
    let (host, other) = (Host::default(), site.scope("hz", "edge-ke"));
    let jane = site.permission(&host, 1);
    let scope = site.scope("ke", "edge-ke");
    assert!(!Arc::ptr_eq(&scope, &other), "the namespace has got another owner");
    assert_eq!(site.rights.scopes.len(), (1, 2));
    drop((jane, scope, other));
    sleep(LOOK).await;
    assert_eq!(site.rights.scopes.len(), (0, 0));
}

/// The answer to an earlier review of the caller may be cached, and no watch of its scope was open.
#[tokio::test(start_paused = true)]
async fn a_watch_soon_after_a_change_begins_without_cached_reviews() {
    let (site, mut streams) = Site::watched().await;
    let forgotten = |site: &Site| site.forgotten.lock().unwrap().get("ke").copied().unwrap_or_default();
    let before = forgotten(&site);
    drop(site.scope("ke", "edge-ke"));
    assert_eq!(forgotten(&site), before, "nothing has changed");
    send(streams.get_mut("rolebindings").unwrap(), "DELETED", &object("edge-ke", "a", 11));
    sleep(Duration::from_secs(4)).await;
    drop(site.scope("ke", "other-ke"));
    assert_eq!(forgotten(&site), before, "another namespace");
    let scope = site.scope("ke", "edge-ke");
    assert_eq!(forgotten(&site), before + 1, "before the caller is reviewed");
    // The caches of API servers may have lagged.
    sleep(Duration::from_secs(4)).await;
    assert_eq!((scope.round(), forgotten(&site)), (2, before + 3));
}

/// As in the cache of reviews, which keeps the validity after the watch has ended.
#[tokio::test(start_paused = true)]
async fn a_validity_outlives_its_watch_until_the_next_round() {
    let (site, mut streams) = Site::watched().await;
    let host = Host::default();
    let validity = |site: &Site| site.permission(&host, 1).validity();
    let (earlier, other) = (validity(&site), site.scope("hz", "edge-hz"));
    for _ in 0..4 {
        sleep(Duration::from_secs(30)).await;
        bookmarks(&mut streams, 20);
        assert!(earlier.holds());
    }
    assert!(Arc::ptr_eq(&site.scope("ke", "edge-ke"), earlier.scope()), "the same rounds");
    send(streams.get_mut("roles").unwrap(), "MODIFIED", &object("edge-hz", "a", 21));
    sleep(Duration::from_secs(5)).await;
    assert!(other.round() > 0);
    assert!(earlier.holds(), "another namespace");
    send(streams.get_mut("rolebindings").unwrap(), "DELETED", &object("edge-ke", "a", 22));
    sleep(Duration::from_millis(1_100)).await;
    assert!(!earlier.holds());
    let later = validity(&site);
    sleep(Duration::from_secs(5)).await;
    let soon = validity(&site);
    assert!(!later.holds() && !soon.holds(), "the caches of API servers may have lagged");
    sleep(Duration::from_secs(5)).await;
    let latest = validity(&site);
    assert!(latest.holds() && !soon.holds());
    streams.clear();
    sleep(Duration::from_secs(10)).await;
    assert!(!latest.holds(), "RBAC is not watched");
}

/// An open watch checks its right again after a change. That review is valid for the next watch.
#[tokio::test(start_paused = true)]
async fn a_check_gets_the_validity_of_its_answer() {
    let (site, mut streams) = Site::watched().await;
    let (cluster, namespace) = ("ke".parse().unwrap(), HostNamespace::new("edge-ke").unwrap());
    let checked: Arc<Mutex<Vec<ReviewValidity>>> = Arc::default();
    let given = Arc::clone(&checked);
    let mut jane = Permission::new(&site.rights, &cluster, &namespace, &site.tasks, move |validity| {
        given.lock().unwrap().push(validity);
        Box::pin(async { Some(true) })
    });
    send(streams.get_mut("rolebindings").unwrap(), "ADDED", &object("edge-ke", "a", 11));
    let holding = || checked.lock().unwrap().iter().map(ReviewValidity::holds).collect::<Vec<_>>();
    timeout(Duration::from_secs(20), ends(&mut jane)).await.unwrap_err();
    assert_eq!(holding(), [false; 2], "too soon after a change");
    for _ in 0..5 {
        bookmarks(&mut streams, 20);
        timeout(Duration::from_secs(60), ends(&mut jane)).await.unwrap_err();
    }
    assert_eq!(holding(), [false, false, true], "the next round");
}

#[tokio::test(start_paused = true)]
async fn no_validity_holds_for_more_than_five_minutes() {
    let (site, mut streams) = Site::watched().await;
    let validity = site.permission(&Host::default(), 1).validity();
    for second in 0..300 {
        sleep(Duration::from_secs(1)).await;
        if second % 60 == 0 {
            bookmarks(&mut streams, 20);
        }
        // A round lasts for 240 to 300 s.
        assert!(second >= 239 || validity.holds(), "{second}");
    }
    assert_eq!(site.rights.current_watches(), 4);
    assert!(!validity.holds());
    drop(validity);
    sleep(LOOK).await;
    assert_eq!(site.rights.scopes.len(), (0, 0));
}

//! A feed between a host in memory and watches of many virtual clusters.
#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test")]

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use feeds::{
    Begun, Bypass, Collection, Feeds, Membership, Move, Moves, Permission, Placed, Placement, Rights, WatchBody,
    WatchQuery,
};
use h2::SendStream;
use host_client::api::Api;
use host_client::testing::{FakeServer, ReceivedRequest, World};
use http::{HeaderMap, Method};
use http_body::Body as _;
use hub::{ClusterId, Place, ResourceVersion};
use ops::drain::Tasks;
use rewrite::HostNamespace;
use serde_json::{Value, json};
use tokio::sync::broadcast;
use tokio::time::timeout;

const CLUSTERS: u32 = 50;
const PATH: &str = "/api/v1/configmaps";

/// A namespace that does not exist until it has an owner.
const UNKNOWN: &str = "unknown";

/// Lists of this namespace show how new the host is.
const NOBODYS: &str = "taken.by.somebody.else";

/// The namespace `n7` belongs to the cluster 7, unless it has another owner.
#[derive(Clone, Debug)]
struct Owners {
    others: Arc<Mutex<HashMap<String, Place>>>,
    moves: broadcast::Sender<Move>,
}

struct OwnerMoves(broadcast::Receiver<Move>);

impl Owners {
    fn new() -> Self {
        Self { others: Arc::default(), moves: broadcast::Sender::new(8) }
    }

    fn set(&self, namespace: &str, place: Place) {
        self.others.lock().unwrap().insert(namespace.to_owned(), place);
        self.moves.send(Move::Namespace(HostNamespace::new(namespace).unwrap())).unwrap();
    }
}

impl Placement for Owners {
    type Moves = OwnerMoves;

    async fn place(&self, membership: Membership, namespace: &str, _: ResourceVersion) -> Placed {
        Placed::Now(self.place_of(membership, namespace).unwrap_or(Place::Nobody))
    }

    fn place_of(&self, _: Membership, namespace: &str) -> Option<Place> {
        if namespace == UNKNOWN && !self.others.lock().unwrap().contains_key(UNKNOWN) {
            return None;
        }
        let number = namespace.strip_prefix('n').and_then(|number| number.parse().ok());
        let own = number.map_or(Place::Nobody, |number| Place::One(ClusterId(number)));
        Some(self.others.lock().unwrap().get(namespace).cloned().unwrap_or(own))
    }

    fn namespaces_of(&self, membership: Membership, cluster: ClusterId) -> Vec<HostNamespace> {
        let mut names: Vec<String> = self.others.lock().unwrap().keys().cloned().collect();
        names.push(format!("n{}", cluster.0));
        names.sort();
        names.dedup();
        names.retain(|name| self.place_of(membership, name) == Some(Place::One(cluster)));
        names.iter().map(|name| HostNamespace::new(name).unwrap()).collect()
    }

    fn moves(&self) -> OwnerMoves {
        OwnerMoves(self.moves.subscribe())
    }
}

impl Moves for OwnerMoves {
    async fn next(&mut self) -> Move {
        match self.0.recv().await {
            Ok(change) => change,
            Err(_) => std::future::pending().await,
        }
    }
}

struct Site {
    server: FakeServer,
    feeds: Arc<Feeds<Owners>>,
    owners: Owners,
    _tasks: Tasks,
}

impl Site {
    fn new() -> Self {
        Self::with_memory(96 << 20)
    }

    fn with_memory(memory: usize) -> Self {
        let (world, tasks) = (World::default(), Tasks::new());
        let server = world.server("a", 100);
        let api = Api::new(world.host(&[&server], &tasks));
        let owners = Owners::new();
        let feeds = Arc::new(Feeds::new(&api, owners.clone(), memory, &tasks));
        Self { server, feeds, owners, _tasks: tasks }
    }

    /// A host with these objects at version 10, a feed that has read them, and the stream of the feed's watch.
    async fn with(objects: &[Value]) -> (Self, SendStream<Bytes>) {
        Self::new().filled(objects).await
    }

    /// A feed that has read these objects of the host.
    async fn filled(self, objects: &[Value]) -> (Self, SendStream<Bytes>) {
        let mut site = self;
        for cluster in [998, 999] {
            let feeds = Arc::clone(&site.feeds);
            tokio::spawn(
                async move { begin(&feeds, &collection(), query(cluster, "resourceVersion=10"), always()).await },
            );
        }
        site.list(10, objects).await;
        let stream = site.watched_from(10).await;
        assert!(site.feeds.feeds()[0].reached(ResourceVersion::new(10)).await);
        (site, stream)
    }

    async fn list(&mut self, version: u64, objects: &[Value]) {
        let received = self.server.next_request().await;
        assert_eq!(received.path(), format!("{PATH}?limit=500"));
        let list = json!({"metadata": {"resourceVersion": version.to_string()}, "items": objects});
        received.answer_with(200, list.to_string());
    }

    async fn watched_from(&mut self, version: u64) -> SendStream<Bytes> {
        let received = self.server.next_request().await;
        let from = format!("/api/v1/configmaps?watch=true&allowWatchBookmarks=true&resourceVersion={version}&");
        assert!(received.path().starts_with(&from), "{}", received.path());
        received.begin()
    }

    /// Answers reads of the newest version with 20, and lists of namespaces at the version 30, until no request has come for
    /// three seconds.
    async fn answer_lists(&mut self, objects_in: impl Fn(&str) -> Vec<Value>) {
        while let Ok(received) = timeout(Duration::from_secs(3), self.server.next_request()).await {
            let namespace = received.path().split('/').nth(4).unwrap_or_default().to_owned();
            if namespace == NOBODYS {
                received.answer_with(200, r#"{"metadata":{"resourceVersion":"20"},"items":[]}"#);
                continue;
            }
            let list = json!({"metadata": {"resourceVersion": "30"}, "items": objects_in(&namespace)});
            received.answer_with(200, list.to_string());
        }
    }

    async fn watch(&self, cluster: u32, text: &str) -> WatchBody {
        match begin(&self.feeds, &collection(), query(cluster, text), always()).await {
            Ok(Begun::Watch(body)) => body,
            refused => panic!("{refused:?}"),
        }
    }

    /// Whether a watch gets 410.
    async fn is_expired(&self, cluster: u32, version: u64) -> bool {
        let query = query(cluster, &format!("resourceVersion={version}"));
        matches!(begin(&self.feeds, &collection(), query, always()).await, Ok(Begun::Expired(_)))
    }
}

/// What the agent does with a watch.
async fn begin(
    feeds: &Feeds<Owners>,
    collection: &Collection,
    query: WatchQuery,
    permission: Permission,
) -> Result<Begun, Bypass> {
    let feed = feeds.ready(collection, &query).await?;
    feeds.begin(&feed, query, permission).await
}

/// A permission that is never revoked.
fn always() -> Permission {
    permission(|| true)
}

/// A permission for as long as `is_allowed` says. No changes of rights are watched.
fn permission(is_allowed: impl Fn() -> bool + Send + Sync + 'static) -> Permission {
    let (rights, namespace) = (Rights::new(|_| {}), HostNamespace::new("n1").unwrap());
    Permission::new(&rights, &"ke".parse().unwrap(), &namespace, &Tasks::new(), move || {
        let is_allowed = is_allowed();
        Box::pin(async move { Some(is_allowed) })
    })
}

fn collection() -> Collection {
    let (api_version, kind) = ("v1".into(), "ConfigMap".into());
    Collection { path: PATH.into(), api_version, kind, membership: Membership::Namespaced }
}

fn query(cluster: u32, text: &str) -> WatchQuery {
    let uri = format!("{PATH}?watch=true&allowWatchBookmarks=true&{text}").parse().unwrap();
    WatchQuery::read(&Method::GET, &uri, &HeaderMap::new(), ClusterId(cluster)).unwrap()
}

fn object(namespace: &str, name: &str, version: u64, app: &str) -> Value {
    let labels = json!({"app": app});
    json!({"metadata": {"name": name, "namespace": namespace, "resourceVersion": version.to_string(), "labels": labels}})
}

fn with_kind(mut object: Value) -> Value {
    object["kind"] = "ConfigMap".into();
    object["apiVersion"] = "v1".into();
    object
}

fn send(stream: &mut SendStream<Bytes>, event: &str, object: Value) {
    let frame = json!({"type": event, "object": with_kind(object)});
    stream.send_data(format!("{frame}\n").into(), false).unwrap();
}

/// The next event: its type, and its object.
async fn next(body: &mut WatchBody) -> Option<(String, Value)> {
    let mut text = Vec::new();
    while !text.ends_with(b"}\n") {
        let frame = std::future::poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await?;
        text.extend_from_slice(&frame.unwrap().into_data().unwrap());
    }
    let mut event: Value = serde_json::from_slice(&text).unwrap();
    Some((event["type"].as_str().unwrap().to_owned(), event["object"].take()))
}

fn is_silent(body: &mut WatchBody) -> bool {
    matches!(Pin::new(body).poll_frame(&mut Context::from_waker(Waker::noop())), Poll::Pending)
}

const INITIAL: &str = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion";

#[tokio::test(start_paused = true)]
async fn one_list_and_one_watch_serve_all_clusters() {
    let (mut site, mut stream) = Site::with(&[object("n7", "a", 3, "x"), object("kube-system", "b", 4, "x")]).await;
    let mut bodies = Vec::new();
    for number in 0..CLUSTERS {
        bodies.push(site.watch(number, &format!("{INITIAL}=0")).await);
    }
    for (number, body) in bodies.iter_mut().enumerate() {
        if number == 7 {
            let added = ("ADDED".to_owned(), with_kind(object("n7", "a", 3, "x")));
            assert_eq!(next(body).await.unwrap(), added, "items of a list have no kind, events have one");
        }
        let (event, mark) = next(body).await.unwrap();
        assert_eq!((event.as_str(), &mark["metadata"]["resourceVersion"]), ("BOOKMARK", &json!("10")));
        assert_eq!(mark["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    }
    send(&mut stream, "ADDED", object("n9", "c", 11, "x"));
    send(&mut stream, "MODIFIED", object("kube-system", "b", 12, "x"));
    assert_eq!(next(&mut bodies[9]).await.unwrap(), ("ADDED".to_owned(), with_kind(object("n9", "c", 11, "x"))));
    for body in &mut bodies {
        assert!(is_silent(body));
    }
    drop(bodies);
    // The watch of the host ends. The next one continues, and clients notice nothing.
    let mut body = site.watch(9, "resourceVersion=11").await;
    stream.send_data(Bytes::new(), true).unwrap();
    let mut stream = site.watched_from(12).await;
    send(&mut stream, "DELETED", object("n9", "c", 13, "x"));
    assert_eq!(next(&mut body).await.unwrap(), ("DELETED".to_owned(), with_kind(object("n9", "c", 13, "x"))));
}

#[tokio::test(start_paused = true)]
async fn what_a_selector_no_longer_matches_is_deleted() {
    let (site, mut stream) = Site::with(&[object("n1", "a", 3, "x")]).await;
    let mut body = site.watch(1, "resourceVersion=10&labelSelector=app%3Dx").await;
    send(&mut stream, "MODIFIED", object("n1", "a", 11, "y"));
    // The former object, with the version of the event.
    assert_eq!(next(&mut body).await.unwrap(), ("DELETED".to_owned(), with_kind(object("n1", "a", 11, "x"))));
    send(&mut stream, "MODIFIED", object("n1", "a", 12, "x"));
    assert_eq!(next(&mut body).await.unwrap(), ("ADDED".to_owned(), with_kind(object("n1", "a", 12, "x"))));
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_with_the_right_to_it() {
    let (site, mut stream) = Site::with(&[]).await;
    let is_allowed = Arc::new(AtomicBool::new(true));
    let seen = Arc::clone(&is_allowed);
    let permission = permission(move || seen.load(Ordering::Relaxed));
    let begun = begin(&site.feeds, &collection(), query(1, "resourceVersion=10"), permission).await;
    let Ok(Begun::Watch(mut body)) = begun else { panic!("{begun:?}") };
    tokio::time::sleep(Duration::from_secs(1)).await;
    send(&mut stream, "ADDED", object("n1", "a", 11, "x"));
    assert_eq!(next(&mut body).await.unwrap().0, "ADDED");
    is_allowed.store(false, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(1)).await;
    send(&mut stream, "ADDED", object("n1", "b", 12, "x"));
    assert_eq!(next(&mut body).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_410_of_the_host_ends_the_watches() {
    let (mut site, mut stream) = Site::with(&[object("n1", "a", 3, "x")]).await;
    let mut body = site.watch(1, "resourceVersion=10").await;
    send(&mut stream, "ADDED", object("n2", "a", 11, "x"));
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired", "code": 410});
    stream.send_data(format!("{}\n", json!({"type": "ERROR", "object": status})).into(), false).unwrap();
    let (event, status) = next(&mut body).await.unwrap();
    assert_eq!((event.as_str(), &status["code"]), ("ERROR", &json!(410)));
    assert_eq!(next(&mut body).await, None);
    site.list(50, &[object("n1", "b", 40, "x")]).await;
    let _stream = site.watched_from(50).await;
    // The host has no events after 11, and neither has the feed. It may have those after 12.
    assert!(site.is_expired(1, 11).await);
    let refused = begin(&site.feeds, &collection(), query(1, "resourceVersion=12"), always()).await;
    assert_eq!(refused.unwrap_err(), Bypass::BeforeWindow);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_of_the_host_sends_the_watches_there() {
    let (mut site, mut stream) = Site::with(&[object("n1", "a", 3, "x")]).await;
    let mut body = site.watch(1, "resourceVersion=10").await;
    stream.send_data(Bytes::new(), true).unwrap();
    let refuse = |received: ReceivedRequest| {
        let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403});
        received.answer_with(403, status.to_string());
    };
    refuse(site.server.next_request().await);
    assert_eq!(next(&mut body).await, None, "the client resumes at the host");
    let refused = begin(&site.feeds, &collection(), query(1, "resourceVersion=10"), always()).await;
    assert_eq!(refused.unwrap_err(), Bypass::Closed);
    refuse(site.server.next_request().await);
    site.list(20, &[object("n1", "b", 15, "x")]).await;
    let _stream = site.watched_from(20).await;
    let mut body = site.watch(1, &format!("{INITIAL}=0")).await;
    assert_eq!(next(&mut body).await.unwrap().1, with_kind(object("n1", "b", 15, "x")));
}

#[tokio::test(start_paused = true)]
async fn a_quiet_watch_gets_bookmarks() {
    let (site, mut stream) = Site::with(&[]).await;
    let mut body = site.watch(1, "resourceVersion=10").await;
    send(&mut stream, "BOOKMARK", json!({"metadata": {"resourceVersion": "30"}}));
    let (event, mark) = next(&mut body).await.unwrap();
    assert_eq!((event.as_str(), &mark["metadata"]["resourceVersion"]), ("BOOKMARK", &json!("30")));
    assert!(is_silent(&mut body));
}

#[tokio::test(start_paused = true)]
async fn the_newest_state_needs_a_bookmark_of_the_host() {
    let (mut site, mut stream) = Site::with(&[object("n1", "a", 3, "x")]).await;
    let feeds = Arc::clone(&site.feeds);
    let text = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    let begun = tokio::spawn(async move { begin(&feeds, &collection(), query(1, text), always()).await });
    let received = site.server.next_request().await;
    assert_eq!(received.path(), format!("/api/v1/namespaces/{NOBODYS}/configmaps?limit=1"));
    received.answer_with(200, r#"{"metadata":{"resourceVersion":"20"},"items":[{}]}"#);
    // An event between the two.
    send(&mut stream, "ADDED", object("n1", "b", 11, "x"));
    let received = site.server.next_request().await;
    assert!(received.path().contains("&timeoutSeconds=3"), "{}", received.path());
    let mut brief = received.begin();
    send(&mut brief, "ADDED", object("n1", "b", 11, "x"));
    send(&mut brief, "MODIFIED", object("n1", "b", 15, "x"));
    send(&mut brief, "BOOKMARK", json!({"metadata": {"resourceVersion": "21"}}));
    let Begun::Watch(mut body) = begun.await.unwrap().unwrap() else { panic!("no watch") };
    for (name, version) in [("a", 3), ("b", 15)] {
        let added = ("ADDED".to_owned(), with_kind(object("n1", name, version, "x")));
        assert_eq!(next(&mut body).await.unwrap(), added);
    }
    let (event, mark) = next(&mut body).await.unwrap();
    assert_eq!((event.as_str(), &mark["metadata"]["resourceVersion"]), ("BOOKMARK", &json!("21")));
    // The next watch of the host begins at once, and is not brief.
    brief.send_data(Bytes::new(), true).unwrap();
    let received = site.server.next_request().await;
    assert!(received.path().contains("resourceVersion=21&") && !received.path().contains("timeoutSeconds=3&"));
}

#[tokio::test(start_paused = true)]
async fn a_host_without_such_a_bookmark_serves_the_newest_state_itself() {
    let (mut site, _stream) = Site::with(&[]).await;
    let feeds = Arc::clone(&site.feeds);
    let begun = tokio::spawn(async move { begin(&feeds, &collection(), query(1, ""), always()).await });
    let received = site.server.next_request().await;
    received.answer_with(200, r#"{"metadata":{"resourceVersion":"20"},"items":[]}"#);
    assert_eq!(begun.await.unwrap().unwrap_err(), Bypass::Timeout);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_changes_its_owner_ends_the_watches_of_both() {
    let (mut site, mut stream) = Site::with(&[object("n1", "a", 3, "x"), object("n2", "b", 4, "x")]).await;
    let mut bodies = Vec::new();
    for cluster in [1, 2, 3] {
        bodies.push(site.watch(cluster, "resourceVersion=10").await);
    }
    site.owners.set("n1", Place::One(ClusterId(2)));
    for body in &mut bodies[..2] {
        let (event, status) = next(body).await.unwrap();
        assert_eq!((event.as_str(), &status["code"]), ("ERROR", &json!(410)));
        assert_eq!(next(body).await, None);
    }
    assert!(is_silent(&mut bodies[2]), "another cluster");
    assert!(site.is_expired(1, 10).await && site.is_expired(2, 10).await, "while the feed lists");
    let name = |namespace: &str| if namespace == "n1" { "a" } else { "b" };
    site.answer_lists(|namespace| vec![object(namespace, name(namespace), 4, "x")]).await;
    send(&mut stream, "BOOKMARK", json!({"metadata": {"resourceVersion": "31"}}));
    assert!(site.feeds.feeds()[0].reached(ResourceVersion::new(31)).await);
    let mut body = site.watch(2, &format!("{INITIAL}=30")).await;
    for (namespace, name) in [("n1", "a"), ("n2", "b")] {
        assert_eq!(next(&mut body).await.unwrap().1, with_kind(object(namespace, name, 4, "x")));
    }
    let (event, _) = next(&mut body).await.unwrap();
    assert_eq!(event, "BOOKMARK");
    let mut former = site.watch(1, &format!("{INITIAL}=30")).await;
    assert_eq!(next(&mut former).await.unwrap().0, "BOOKMARK", "it has no object any more");
    assert!(site.is_expired(2, 19).await);
    // The client has listed at the host meanwhile, so it need not list again.
    let at_the_host = begin(&site.feeds, &collection(), query(2, "resourceVersion=25"), always()).await;
    assert_eq!(at_the_host.unwrap_err(), Bypass::BeforeWindow);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_is_listed_while_events_arrive() {
    let (mut site, mut stream) = Site::with(&[object("n1", "a", 3, "x"), object("n1", "b", 4, "x")]).await;
    let mut other = site.watch(3, "resourceVersion=10").await;
    site.owners.set("n1", Place::One(ClusterId(2)));
    let received = site.server.next_request().await;
    assert!(received.path().contains(NOBODYS), "{}", received.path());
    assert!(site.is_expired(2, 25).await, "no version after the change is known");
    received.answer_with(200, r#"{"metadata":{"resourceVersion":"11"},"items":[]}"#);
    let first = site.server.next_request().await;
    for (version, is_expired) in [(10, true), (11, false)] {
        assert_eq!(site.is_expired(2, version).await, is_expired, "{version} during the list");
    }
    send(&mut stream, "ADDED", object("n3", "c", 12, "x"));
    send(&mut stream, "MODIFIED", object("n1", "a", 13, "x"));
    send(&mut stream, "DELETED", object("n1", "b", 14, "x"));
    assert_eq!(next(&mut other).await.unwrap().1["metadata"]["name"], "c");
    assert!(site.feeds.feeds()[0].reached(ResourceVersion::new(14)).await);
    let mut next_list = Some(first);
    for namespace in ["n1", "n2"] {
        let received = match next_list.take() {
            Some(first) => first,
            None => site.server.next_request().await,
        };
        assert!(received.path().contains(&format!("/{namespace}/")), "{}", received.path());
        let items =
            if namespace == "n1" { vec![object("n1", "a", 3, "x"), object("n1", "b", 4, "x")] } else { Vec::new() };
        received.answer_with(200, json!({"metadata": {"resourceVersion": "11"}, "items": items}).to_string());
    }
    assert!(timeout(Duration::from_secs(1), site.server.next_request()).await.is_err(), "the lists are complete");
    let mut body = site.watch(2, &format!("{INITIAL}=11")).await;
    assert_eq!(next(&mut body).await.unwrap().1, with_kind(object("n1", "a", 13, "x")));
    assert_eq!(next(&mut body).await.unwrap().0, "BOOKMARK", "b was deleted after the list");
}

/// The host is asked only for versions that it has told itself.
#[tokio::test(start_paused = true)]
async fn a_version_of_a_client_does_not_refresh_the_feed() {
    let (mut site, _stream) = Site::with(&[]).await;
    let future = format!("{INITIAL}={}", u64::MAX);
    let refused = begin(&site.feeds, &collection(), query(1, &future), always()).await;
    assert_eq!(refused.unwrap_err(), Bypass::Timeout);
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(!site.server.has_request());
}

/// What does not fit is listed again after ten minutes, and not at once, also if it is closed within its list.
#[tokio::test(start_paused = true)]
async fn a_cluster_that_does_not_fit_is_not_listed_in_a_loop() {
    let large = |namespace: &str, name: &str, version| {
        let mut object = object(namespace, name, version, "x");
        object["data"] = json!({"text": "x".repeat(110_000)});
        object
    };
    let others: Vec<_> = (1..=8).chain([10]).map(|number| large(&format!("n{number}"), "a", number)).collect();
    let (mut site, _stream) = Site::with_memory(1 << 20).filled(&others).await;
    site.owners.set("more", Place::One(ClusterId(20)));
    site.owners.set("n10", Place::One(ClusterId(20)));
    let newest = site.server.next_request().await;
    newest.answer_with(200, r#"{"metadata":{"resourceVersion":"10"},"items":[]}"#);
    let mut lists = Vec::new();
    while let Ok(received) = timeout(Duration::from_secs(5 * 60), site.server.next_request()).await {
        let namespace = received.path().split('/').nth(4).unwrap_or_default().to_owned();
        if received.path().contains("watch=") {
            continue;
        }
        let items = if namespace == "n10" { vec![large("n10", "a", 10), large("n10", "b", 9)] } else { Vec::new() };
        lists.push(namespace);
        assert!(lists.len() < 20, "{lists:?}");
        // The hub frees memory between two lists.
        tokio::time::sleep(Duration::from_secs(2)).await;
        received.answer_with(200, json!({"metadata": {"resourceVersion": "10"}, "items": items}).to_string());
    }
    assert_eq!(lists, ["more", "n10", "n20"]);
}

/// A cluster is removed, and added again: it gets the objects of all its namespaces.
#[tokio::test(start_paused = true)]
async fn a_cluster_that_comes_back_has_all_its_objects() {
    let (mut site, mut stream) = Site::with(&[object("n1", "a", 3, "x"), object("more", "b", 4, "x")]).await;
    let list_all = async |site: &mut Site| {
        let name = |namespace: &str| if namespace == "more" { "b" } else { "a" };
        site.answer_lists(|namespace| vec![object(namespace, name(namespace), 4, "x")]).await;
    };
    site.owners.set("more", Place::One(ClusterId(1)));
    list_all(&mut site).await;
    for namespace in ["n1", "more"] {
        site.owners.set(namespace, Place::Nobody);
    }
    list_all(&mut site).await;
    for namespace in ["n1", "more"] {
        site.owners.set(namespace, Place::One(ClusterId(1)));
    }
    list_all(&mut site).await;
    send(&mut stream, "BOOKMARK", json!({"metadata": {"resourceVersion": "31"}}));
    assert!(site.feeds.feeds()[0].reached(ResourceVersion::new(31)).await);
    let mut body = site.watch(1, &format!("{INITIAL}=30")).await;
    for (namespace, name) in [("more", "b"), ("n1", "a")] {
        assert_eq!(next(&mut body).await.unwrap().1, with_kind(object(namespace, name, 4, "x")));
    }
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_joins_brings_its_objects() {
    let (mut site, mut stream) = Site::with(&[object("kube-system", "a", 3, "x")]).await;
    let mut body = site.watch(1, "resourceVersion=10").await;
    site.owners.set("empty", Place::One(ClusterId(1)));
    send(&mut stream, "BOOKMARK", json!({"metadata": {"resourceVersion": "20"}}));
    assert_eq!(next(&mut body).await.unwrap().0, "BOOKMARK", "a namespace without objects changes nothing");
    site.owners.set("kube-system", Place::One(ClusterId(1)));
    assert_eq!(next(&mut body).await.unwrap().0, "ERROR");
    let is_there = |namespace: &str| namespace == "kube-system";
    let objects = |namespace: &str| is_there(namespace).then(|| object(namespace, "a", 3, "x")).into_iter().collect();
    site.answer_lists(objects).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    // The list is newer than the last event, so the driver asks for a bookmark.
    let feeds = Arc::clone(&site.feeds);
    let begun =
        tokio::spawn(async move { begin(&feeds, &collection(), query(1, &format!("{INITIAL}=0")), always()).await });
    let brief = site.server.next_request().await;
    assert!(brief.path().contains("&timeoutSeconds=3"), "{}", brief.path());
    let mut brief = brief.begin();
    send(&mut brief, "BOOKMARK", json!({"metadata": {"resourceVersion": "31"}}));
    let Ok(Begun::Watch(mut body)) = begun.await.unwrap() else { panic!("no watch") };
    assert_eq!(next(&mut body).await.unwrap().1, with_kind(object("kube-system", "a", 3, "x")));
}

/// The feed of the namespaces can be later than that of their objects.
#[tokio::test(start_paused = true)]
async fn an_object_that_comes_before_its_namespace_is_not_lost() {
    let (mut site, mut stream) = Site::with(&[]).await;
    let mut body = site.watch(1, "resourceVersion=10").await;
    send(&mut stream, "ADDED", object(UNKNOWN, "a", 11, "x"));
    assert!(site.feeds.feeds()[0].reached(ResourceVersion::new(11)).await);
    assert!(is_silent(&mut body));
    site.owners.set(UNKNOWN, Place::One(ClusterId(1)));
    assert_eq!(next(&mut body).await.unwrap().0, "ERROR", "clients list again");
    let objects = |namespace: &str| (namespace == UNKNOWN).then(|| object(UNKNOWN, "a", 11, "x")).into_iter().collect();
    site.answer_lists(objects).await;
    send(&mut stream, "BOOKMARK", json!({"metadata": {"resourceVersion": "31"}}));
    assert!(site.feeds.feeds()[0].reached(ResourceVersion::new(31)).await);
    let mut body = site.watch(1, &format!("{INITIAL}=30")).await;
    assert_eq!(next(&mut body).await.unwrap().1, with_kind(object(UNKNOWN, "a", 11, "x")));
}

/// Nodes, for example: each request selects those of its virtual cluster.
#[tokio::test(start_paused = true)]
async fn everybody_gets_the_selected_objects_of_a_cluster_scoped_resource() {
    let node = |name: &str, version: u64, app: &str| {
        let metadata = json!({"name": name, "resourceVersion": version.to_string(), "labels": {"app": app}});
        with_kind(json!({"metadata": metadata}))
    };
    let mut site = Site::new();
    let nodes = Collection { membership: Membership::Everybody, ..collection() };
    let watch =
        async |site: &Site, cluster, text: &str| begin(&site.feeds, &nodes, query(cluster, text), always()).await;
    assert_eq!(watch(&site, 1, "resourceVersion=10").await.unwrap_err(), Bypass::Few);
    assert_eq!(watch(&site, 2, "resourceVersion=10").await.unwrap_err(), Bypass::Closed);
    site.list(10, &[node("a", 3, "x"), node("b", 4, "y")]).await;
    let mut stream = site.watched_from(10).await;
    assert!(site.feeds.feeds()[0].reached(ResourceVersion::new(10)).await);
    let mut bodies = Vec::new();
    for (cluster, app) in [(1, "x"), (2, "y")] {
        let begun = watch(&site, cluster, &format!("{INITIAL}=0&labelSelector=app%3D{app}")).await;
        let Ok(Begun::Watch(body)) = begun else { panic!("{begun:?}") };
        bodies.push(body);
    }
    for (body, (name, version, app)) in bodies.iter_mut().zip([("a", 3, "x"), ("b", 4, "y")]) {
        assert_eq!(next(body).await.unwrap(), ("ADDED".to_owned(), node(name, version, app)));
        assert_eq!(next(body).await.unwrap().0, "BOOKMARK");
    }
    // The node changes its cluster.
    send(&mut stream, "MODIFIED", node("a", 11, "y"));
    assert_eq!(next(&mut bodies[0]).await.unwrap(), ("DELETED".to_owned(), node("a", 11, "x")));
    assert_eq!(next(&mut bodies[1]).await.unwrap(), ("ADDED".to_owned(), node("a", 11, "y")));
}

/// Objects of everybody stay in memory, whichever cluster the hub stops to serve.
#[tokio::test(start_paused = true)]
async fn objects_of_everybody_that_do_not_fit_are_watched_at_the_host() {
    let mut site = Site::with_memory(1 << 20);
    let nodes = Collection { membership: Membership::Everybody, ..collection() };
    let watch =
        async |site: &Site, cluster| begin(&site.feeds, &nodes, query(cluster, "resourceVersion=10"), always()).await;
    assert_eq!(watch(&site, 1).await.unwrap_err(), Bypass::Few);
    assert_eq!(watch(&site, 2).await.unwrap_err(), Bypass::Closed);
    let large: Vec<_> = (0..3)
        .map(|number| {
            let mut object = with_kind(json!({"metadata": {"name": format!("n{number}"), "resourceVersion": "3"}}));
            object["data"] = "x".repeat(400 << 10).into();
            object
        })
        .collect();
    site.list(10, &large).await;
    let _stream = site.watched_from(10).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(site.feeds.feeds().iter().all(|feed| feed.has_ended()));
    assert_eq!(site.feeds.memory(), 0);
    for _ in 0..3 {
        assert_eq!(watch(&site, 1).await.unwrap_err(), Bypass::Closed);
    }
    assert!(!site.server.has_request(), "it does not list again at once");
}

/// A custom kind can be deleted, and defined again with another scope.
#[tokio::test(start_paused = true)]
async fn a_kind_with_another_scope_gets_another_feed() {
    let (mut site, mut stream) = Site::with(&[object("n1", "a", 3, "x")]).await;
    let mut body = site.watch(1, "resourceVersion=10").await;
    let everybody = Collection { membership: Membership::Everybody, ..collection() };
    let watch = async |site: &Site, text: &str| begin(&site.feeds, &everybody, query(1, text), always()).await;
    assert_eq!(watch(&site, "resourceVersion=10").await.unwrap_err(), Bypass::Closed);
    assert_eq!(next(&mut body).await, None, "the watch of the former kind ends");
    let unscoped = with_kind(json!({"metadata": {"name": "b", "resourceVersion": "15"}}));
    site.list(20, std::slice::from_ref(&unscoped)).await;
    let _stream = site.watched_from(20).await;
    let begun = watch(&site, &format!("{INITIAL}=0")).await;
    let Ok(Begun::Watch(mut body)) = begun else { panic!("{begun:?}") };
    assert_eq!(next(&mut body).await.unwrap(), ("ADDED".to_owned(), unscoped));
    assert_eq!(next(&mut body).await.unwrap().0, "BOOKMARK");
    // The former feed is no longer read, whatever arrives for it.
    send(&mut stream, "ADDED", object("n1", "c", 21, "x"));
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(is_silent(&mut body) && stream.send_data(Bytes::new(), false).is_err());
}

/// The first watches of the new kind can begin before discovery knows its scope.
#[tokio::test(start_paused = true)]
async fn an_object_without_a_namespace_ends_the_feed_of_a_namespaced_kind() {
    let (site, mut stream) = Site::with(&[]).await;
    let mut body = site.watch(1, "resourceVersion=10").await;
    send(&mut stream, "ADDED", json!({"metadata": {"name": "b", "resourceVersion": "11"}}));
    assert_eq!(next(&mut body).await, None);
    assert!(site.feeds.feeds().iter().all(|feed| feed.has_ended()));
}

#[tokio::test(start_paused = true)]
async fn a_feed_opens_for_eight_open_watches_of_one_cluster() {
    let mut site = Site::new();
    let watch = async |site: &Site| {
        let begun = begin(&site.feeds, &collection(), query(1, "resourceVersion=10"), always()).await;
        begun.map(drop).unwrap_err()
    };
    let mut at_host = Vec::new();
    for _ in 0..8 {
        assert_eq!(watch(&site).await, Bypass::Few);
        // Those that have ended do not count.
        at_host.pop();
        at_host.extend([site.feeds.count_at_host(&collection()), site.feeds.count_at_host(&collection())]);
        at_host.truncate(7);
    }
    assert_eq!(watch(&site).await, Bypass::Few);
    at_host.push(site.feeds.count_at_host(&collection()));
    assert_eq!(watch(&site).await, Bypass::Closed, "the feed is open, and lists");
    site.list(10, &[]).await;
    let _stream = site.watched_from(10).await;
    site.watch(1, "resourceVersion=10").await;
}

#[tokio::test(start_paused = true)]
async fn a_feed_opens_for_the_second_cluster_and_ends_without_watches() {
    let mut site = Site::new();
    let watch = async |site: &Site, cluster| {
        begin(&site.feeds, &collection(), query(cluster, "resourceVersion=10"), always()).await
    };
    assert_eq!(watch(&site, 1).await.unwrap_err(), Bypass::Few);
    assert_eq!(watch(&site, 1).await.unwrap_err(), Bypass::Few);
    // The host can continue a watch while the feed lists. A state must wait.
    assert_eq!(watch(&site, 2).await.unwrap_err(), Bypass::Closed);
    let state = begin(&site.feeds, &collection(), query(2, "resourceVersion=0"), always()).await;
    assert_eq!(state.unwrap_err(), Bypass::Timeout);
    site.list(10, &[]).await;
    let stream = site.watched_from(10).await;
    let body = site.watch(1, "resourceVersion=10").await;
    tokio::time::sleep(Duration::from_secs(250)).await;
    drop(site.watch(2, "resourceVersion=10").await);
    assert!(!site.server.has_request(), "the feed still has a watch");
    drop(body);
    tokio::time::sleep(Duration::from_secs(302)).await;
    // The feed has ended. A new one needs two clusters again.
    assert_eq!(watch(&site, 1).await.unwrap_err(), Bypass::Few);
    drop(stream);
}
